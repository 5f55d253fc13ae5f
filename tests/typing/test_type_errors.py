"""docs/type_errors.md says of ten mistakes what the checkers say, and what it says to write instead is accepted."""

from __future__ import annotations

import importlib

import pytest

from scripts.write_type_errors import CORRECTIONS, DOCUMENT, LESSONS, main, page
from tests.typing.conftest import Reports


def test_the_page_has_the_checkers_own_words(mypy_reports: Reports, pyright_reports: Reports) -> None:
    wanted = page(
        [report for reports in mypy_reports.values() for report in reports],
        [report for reports in pyright_reports.values() for report in reports],
    )
    assert DOCUMENT.read_text(encoding="utf-8") == wanted, "renew it: python scripts/write_type_errors.py"


def test_each_mistake_has_its_correction() -> None:
    corrections = importlib.import_module("tests.typing.accept.corrections")
    functions = {name for name in vars(corrections) if name in {lesson.function for lesson in LESSONS}}
    assert functions == {lesson.function for lesson in LESSONS}
    assert CORRECTIONS.is_file()
    assert len(LESSONS) == 10


@pytest.mark.slow
def test_the_script_finds_the_page_current() -> None:
    assert main(["--check"]) == 0
