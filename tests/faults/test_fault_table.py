"""docs/faults_of_flow.md: every fault has its row, and every test that a row names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "docs" / "faults_of_flow.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TABLE.splitlines()
    if re.match(r"\| \d+b? \|", line)
]
FAULTS = [*map(str, range(1, 11)), "10b", *map(str, range(11, 27))]


def _tests() -> set[str]:
    """The names of all tests of the repository."""
    texts = (file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
    return {name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}


def test_every_fault_has_a_row_in_order() -> None:
    assert [row[0] for row in ROWS] == FAULTS


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_names_tests_that_are_there_and_are_of_its_fault(row: list[str]) -> None:
    number, named = row[0], re.findall(r"`(test_\w+)`", row[3])
    assert set(named) - _tests() == set()
    prefix = f"test_fault_{number.removesuffix('b').zfill(2)}{'b' if number.endswith('b') else ''}_"
    assert any(name.startswith(prefix) for name in named)


def test_no_test_of_a_fault_is_missing_in_the_table() -> None:
    of_faults = {name for name in _tests() if name.startswith("test_fault_")}
    assert of_faults - set(re.findall(r"`(test_\w+)`", TABLE)) == set()
