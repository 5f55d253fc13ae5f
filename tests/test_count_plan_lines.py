"""The line counter behind the README's comparison: what a line is, and when a table is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import count_plan_lines
from scripts.count_plan_lines import BEGIN, END, CountError, check, count_lines, main, replaced, table

PLAN = '''\
"""A module with a plan."""

import os


def helper() -> int:
    return 1


@decorated
def plan(
    workers: int,  # a comment behind code
) -> str:
    """Build it.

    Over several lines.
    """
    # A comment of its own.
    text = """two
    # lines of a string"""

    def inner() -> str:
        "Inner docstring."
        return text

    return (
        inner()
    )


def after() -> int:
    return 2
'''


def test_counts_what_is_neither_blank_nor_comment_nor_docstring() -> None:
    # Signature 3, the string's statement 2, inner 2, the return statement 3.
    assert count_lines(PLAN, "plan") == 10


def test_a_function_of_one_line_counts_one() -> None:
    assert count_lines('def plan() -> None: "Docstring on the def line."\n', "plan") == 1


def test_blank_lines_inside_a_string_do_not_count() -> None:
    assert count_lines('def plan() -> str:\n    return """a\n\n    b"""\n', "plan") == 3


def test_characters_of_several_bytes_do_not_shift_the_end() -> None:
    assert count_lines('def plan() -> str:\n    """γλ."""\n    return "γλ"\nx = 1\n', "plan") == 2


def test_an_unknown_function_is_refused_by_name() -> None:
    with pytest.raises(CountError, match="no function 'absent'"):
        count_lines(PLAN, "absent")


def test_the_table_sets_the_counts_beside_rllib_flow_and_states_the_rule() -> None:
    lines = table({"PPO": 12, "SAC": 20}).splitlines()
    assert "| PPO | 12 | 30 |" in lines
    assert "| Ape-X | – | 72 |" in lines
    assert "| SAC | 20 | – |" in lines
    assert "neither blank nor comment nor docstring" in lines[-1]


def test_a_replaced_table_passes_the_check_and_leaves_the_rest() -> None:
    document = replaced(f"before\n{BEGIN}\nold\n{END}\nafter\n", table({"PPO": 12}))
    check(document, table({"PPO": 12}))
    assert document.startswith(f"before\n{BEGIN}\n| plan |")
    assert document.endswith(f"\n{END}\nafter\n")
    assert "old" not in document


def test_another_count_fails_the_check() -> None:
    document = replaced(f"{BEGIN}\n{END}\n", table({"PPO": 12}))
    with pytest.raises(CountError, match="not what the sources count"):
        check(document, table({"PPO": 13}))


@pytest.mark.parametrize("document", ["", BEGIN, f"{END}\n{BEGIN}"])
def test_a_document_without_both_markers_in_order_is_refused(document: str) -> None:
    with pytest.raises(CountError, match="needs a line"):
        check(document, "")


@pytest.fixture
def one_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root whose only plan has ten lines; returns a document with an empty place for the table."""
    (tmp_path / "plan.py").write_text(PLAN, encoding="utf-8")
    monkeypatch.setattr(count_plan_lines, "ROOT", tmp_path)
    monkeypatch.setattr(count_plan_lines, "PLANS", {"PPO": ("plan.py", "plan")})
    document = tmp_path / "README.md"
    document.write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    return document


def test_the_command_prints_the_table(one_plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "| PPO | 10 | 30 |" in capsys.readouterr().out


def test_the_command_fails_on_a_stale_file_until_it_is_written(
    one_plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check", str(one_plan)]) == 1
    assert f"{one_plan}: the table" in capsys.readouterr().err
    assert main(["--write", str(one_plan)]) == 0
    assert main(["--check", str(one_plan)]) == 0


def test_the_command_names_the_module_without_the_function(
    one_plan: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(count_plan_lines, "PLANS", {"PPO": ("plan.py", "absent")})
    assert main([]) == 1
    assert "plan.py: no function 'absent'" in capsys.readouterr().err
