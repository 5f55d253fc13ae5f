"""docs/reports.md: every report of its kinds has a row, and every test that a row names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TABLE.splitlines()
    if re.match(r"\| B\d+ \|", line)
]
REPORTS = [
    16, 17, 31, 32, 34, 40, 41, 56, 58, 95, 97, 98, 100, 101, 103, 104, 106, 107, 109, 110, 112, 113, 115, 116,
    118, 119, 125, 127, 128,
]  # fmt: skip


def _tests(pattern: str = "test_*.py") -> set[str]:
    """The names of the tests in some files."""
    texts = (file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob(pattern))
    return {name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}


def test_every_report_has_a_row_in_order() -> None:
    assert [row[0] for row in ROWS] == [f"B{number}" for number in REPORTS]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_is_complete_and_names_tests_that_are_there(row: list[str]) -> None:
    assert len(row) == 6
    assert all(row)
    assert row[2] in ("checkpoint", "hangs", "memory", "metrics", "Ray", "seeds", "workers")
    named = set(re.findall(r"`(test_\w+)`", row[5]))
    assert named
    assert named - _tests() == set()


def test_a_test_of_a_report_stands_in_the_row_of_its_number() -> None:
    for name in _tests("test_reports.py"):
        number = re.findall(r"^test_b(\d+)_", name)[0]
        assert [row[0] for row in ROWS if f"`{name}`" in row[5]] == [f"B{number}"]
