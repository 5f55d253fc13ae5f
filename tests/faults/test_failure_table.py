"""docs/failures.md: every row of its table names tests that are there, and no injected fault is missing in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "docs" / "failures.md").read_text(encoding="utf-8")
ROWS = [line for line in TABLE.splitlines() if "`test_" in line]


def _tests(pattern: str) -> set[str]:
    """The names of the tests in some files."""
    texts = (file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob(pattern))
    return {name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.strip("| ").partition(" |")[0])
def test_a_row_tells_fault_outcome_time_and_loss_and_names_tests_that_are_there(row: str) -> None:
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert len(cells) == 5
    assert all(cells)
    assert set(re.findall(r"`(test_\w+)`", cells[4])) - _tests("test_*.py") == set()


def test_no_injected_fault_is_missing_in_the_table() -> None:
    assert _tests("test_injected_faults.py") - set(re.findall(r"`(test_\w+)`", TABLE)) == set()
