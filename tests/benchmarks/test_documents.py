"""The documents' tables: how they are made, and that those in the documents are of the committed results."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.documents import (
    DOCUMENT,
    NAMES,
    README,
    SUMMARY,
    between,
    cases_table,
    replace_between,
    section,
    stored,
    summary,
    targets_table,
)
from benchmarks.harness import ROOT, Case, Result, Target, read

TARGETS = [Target("× a loop's time", 0.9, "at most", 1.0), Target("× the rate", 2500.0, "at least", 3000.0)]


def test_the_page_shows_the_committed_results() -> None:
    for name, path in stored().items():
        assert between(DOCUMENT, name) == section(path)


def test_the_readme_sums_up_the_committed_results() -> None:
    assert between(README, SUMMARY) == summary([read(path) for path in stored().values()])


def test_every_benchmark_has_its_place_on_the_page() -> None:
    programs = {path.stem.removeprefix("bench_") for path in (ROOT / "benchmarks").glob("bench_*.py")}
    assert programs - {"learning"} <= set(NAMES)  # which has a page of its own
    for name in NAMES:
        between(DOCUMENT, name)


def test_a_row_shows_medians_and_the_first_ones_multiple_of_each_peer() -> None:
    cases = [
        Case("sync", "µs", {"ours": [1.0, 3.0], "loop": [2.0, 2.0], "iter": [4.0, 6.0]}),
        Case("async", "µs", {"ours": [1200.0], "loop": [1000.0]}),
    ]
    assert cases_table(cases).splitlines() == [
        "|  | ours | loop | iter |",
        "| --- | ---: | ---: | ---: |",
        "| sync, µs | 2 | 2 (1×) | 5 (0.375×) |",
        "| async, µs | 1,200 | 1,000 (1.2×) | – |",
    ]


def test_targets_say_whether_they_are_reached() -> None:
    assert targets_table(TARGETS).splitlines()[2:] == [
        "| 0.9 | × a loop's time | at most 1 | yes |",
        "| 2,500 | × the rate | at least 3000 | **no** |",
    ]
    assert summary([Result("overhead", [], TARGETS)]).splitlines()[2:] == [
        "| `overhead` | 0.9 | × a loop's time | at most 1 | yes |",
        "| `overhead` | 2,500 | × the rate | at least 3000 | **no** |",
    ]


def test_only_what_is_between_the_markers_is_replaced(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("before\n<!-- a -->\nold\n<!-- /a -->\nafter\n")
    replace_between(document, "a", "new")
    assert document.read_text() == "before\n<!-- a -->\nnew\n<!-- /a -->\nafter\n"
    assert between(document, "a") == "new"


def test_a_document_without_the_markers_is_an_error(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("<!-- /a --> <!-- a -->")
    with pytest.raises(ValueError, match=r"page\.md has no <!-- a --> followed by <!-- /a -->"):
        between(document, "a")
