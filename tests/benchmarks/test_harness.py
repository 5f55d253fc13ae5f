"""The harness: who is measured when, what a ratio is, when a target is reached, how results are stored."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.harness import (
    Case,
    Contestant,
    Result,
    Target,
    measure,
    options,
    read,
    significant,
    subject,
    thinned,
    write,
)

CASE = Case("trivial items", "µs an item", {"ours": [1.0, 2.0, 9.0], "peer": [2.0, 8.0, 3.0]})


def test_contestants_take_turns_and_each_round_is_begun_by_another_one() -> None:
    order: list[str] = []

    def contestant(name: str) -> Contestant:
        def measured() -> float:
            order.append(name)
            return float(len(order))

        return measured

    figures = measure({name: contestant(name) for name in "abc"}, 3)
    assert "".join(order) == "abcabcbcacab"
    assert figures == {"a": [4.0, 9.0, 11.0], "b": [5.0, 7.0, 12.0], "c": [6.0, 8.0, 10.0]}


def test_without_a_warm_up_the_first_round_counts() -> None:
    assert measure({"a": lambda: 1.0}, 2, warm_up=False) == {"a": [1.0, 1.0]}


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    assert CASE.median("ours") == 2.0
    assert CASE.ratio("ours", "peer") == 0.5  # of 0.5, 0.25 and 3, where the medians' ratio is 2/3


@pytest.mark.parametrize(
    ("target", "reached"),
    [
        (Target("", 1.02, "at most", 1.02), True),
        (Target("", 1.0200001, "at most", 1.02), True),  # as it is shown
        (Target("", 1.021, "at most", 1.02), False),
        (Target("", 3.0, "at least", 3.0), True),
        (Target("", 2.99, "at least", 3.0), False),
    ],
)
def test_a_target_is_reached_by_the_figure_that_is_shown(target: Target, reached: bool) -> None:
    assert target.reached is reached


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    result = Result("overhead", [CASE], [Target("× a loop", 0.5, "at most", 1.0)], {"curve": [1, 2]})
    path = write(result, tmp_path)
    assert path == tmp_path / "overhead.json"
    assert read(path) == result
    stored = json.loads(path.read_text())
    assert stored["cases"][0]["medians"] == {"ours": 2.0, "peer": 3.0}
    assert stored["targets"][0]["reached"] is True
    assert {"date", "command", "processor", "cores", "memory_gib", "python", "versions"} <= set(
        stored["about"]
    )
    assert "torch" in stored["about"]["versions"]


def program(folder: Path, text: str) -> str:
    path = folder / "program.py"
    path.write_text(text)
    return str(path)


def test_a_subjects_last_line_is_its_figures(tmp_path: Path) -> None:
    text = "import json, sys\nprint('noise')\nprint(json.dumps({'rate': float(sys.argv[1])}))"
    assert subject(Path(sys.executable), program(tmp_path, text), "2.5") == {"rate": 2.5}


def test_a_subject_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"ended with 1: (.|\n)*ZeroDivisionError"):
        subject(Path(sys.executable), program(tmp_path, "1 / 0"))


@pytest.mark.parametrize(
    ("figure", "shown"), [(8123.456, 8123.0), (0.0123456, 0.01235), (float("inf"), float("inf"))]
)
def test_figures_keep_four_digits(figure: float, shown: float) -> None:
    assert significant(figure) == shown


def test_a_quick_look_is_an_option() -> None:
    assert options("what it does", ["--quick"]).quick
    assert not options("what it does", []).quick


@pytest.mark.parametrize(
    ("length", "points", "kept"), [(3, 5, [0, 1, 2]), (6, 3, [1, 3, 5]), (7, 3, [0, 3, 6])]
)
def test_a_curve_is_thinned_to_its_last_point(length: int, points: int, kept: list[int]) -> None:
    assert thinned(list(range(length)), points) == kept
