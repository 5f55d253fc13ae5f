"""What mypy says is among the findings of `pipeflow check`, and what keeps mypy from saying it is one line."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from pipeflow.cli import check, main
from pipeflow.cli.type_checking import type_findings
from pipeflow.dsl.findings import Finding
from pipeflow.dsl.sites import Site
from tests.cli.checking import FAULTY, HEAD, LINES, MESSAGE
from tests.cli.small import COMMAND, ENVIRONMENT, ROOT


def test_types_are_what_mypy_says_under_its_codes(tmp_path: Path) -> None:
    file = tmp_path / "typed.py"
    file.write_text("def double(number: int) -> int:\n    return str(number)\n\n\ndef f(x):\n    return x\n")
    assert [(found.code, found.severity, found.site.line) for found in type_findings([file])] == [
        ("return-value", "error", 2),
        ("no-untyped-def", "error", 5),
    ]


RETURNED = """\
from collections.abc import Callable
from typing import Any


def misfit() -> str:
    return (
        "1"
        + 1j
    )


def untyped(function: Callable[[], Any]) -> int:
    def inner() -> int:
        return ""
    return function()
"""


def test_any_is_not_said_to_be_returned_where_that_follows_from_a_misfit(tmp_path: Path) -> None:
    file = tmp_path / "returned.py"
    file.write_text(RETURNED)
    assert [(found.code, found.site.line) for found in type_findings([file])] == [
        ("operator", 8),
        ("return-value", 14),
    ]
    # A file of its own: mypy knows a file by its size and the second in which it was written.
    file = tmp_path / "returned_alone.py"
    file.write_text(RETURNED.replace("+ 1j", '+ "1"').replace('return ""', "return 1"))
    assert [(found.code, found.site.line) for found in type_findings([file])] == [("no-any-return", 15)]


def test_what_ends_mypy_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], write: Path) -> None:
    (tmp_path / "mypy.ini").write_text("[mypy]\nplugins = no_such_plugin\n")
    write.write_text(FAULTY)
    assert main(["check", "plans.py"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("pipeflow: error: mypy came to no end: ")
    assert "no_such_plugin" in err
    assert err.count("\n") == 1


def test_without_mypy_is_said_what_to_install(
    write: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write.write_text(FAULTY)
    find = importlib.util.find_spec

    def all_but_mypy(name: str) -> ModuleSpec | None:
        return None if name == "mypy" else find(name)

    monkeypatch.setattr(importlib.util, "find_spec", all_but_mypy)
    assert main(["check", "plans.py"]) == 2
    assert capsys.readouterr().err == (
        "pipeflow: error: mypy is not installed; pip install 'pipeflow[check]', or pass --no-types to look at "
        "the plans alone\n"
    )


def test_a_misfit_that_the_plan_refuses_too_is_one_fault_with_the_plans_words_as_a_note(
    write: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write.write_text(HEAD + "wrong = from_items([1]) | drain | take(2)\n")
    line = LINES + 1
    misfit = Finding("operator", "error", "it does not fit", Site(str(write), line))

    def misfits(files: Sequence[Path]) -> list[Finding]:
        return [misfit]

    monkeypatch.setattr(check, "type_findings", misfits)
    assert main(["check", "plans.py"]) == 1
    first, second, summary = capsys.readouterr().out.splitlines()
    assert first == f"plans.py:{line}: error: it does not fit  [operator]"
    assert second.startswith(f"plans.py:{line}: note: take(2) would never get an item")
    assert second.endswith("  [PF100]")
    assert summary == "checked no plans, found 1 fault"
    assert main(["check", "plans.py", "--ignore", "operator"]) == 1
    assert capsys.readouterr().out.startswith(f"plans.py:{line}: error: take(2) would")


@pytest.mark.slow
def test_both_kinds_of_findings_in_one_list(write: Path) -> None:
    write.write_text(
        HEAD
        + "plan = from_items([1]) | take(0)\n"
        + "wrong = actors(RolloutWorker, 2, 'seven').produce(RolloutWorker.sample) | gather_sync()\n"
    )
    done = subprocess.run(
        [*COMMAND, "check", "plans.py"],
        cwd=write.parent,
        env=ENVIRONMENT | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    misfit = 'Argument 3 to "actors" has incompatible type "str"; expected "int"'
    assert done.stdout.splitlines() == [
        f"plans.py:{LINES + 1}: error: {MESSAGE}  [PF102]",
        f"plans.py:{LINES + 2}: error: {misfit}  [arg-type]",
        "checked 2 plans, found 2 faults",
    ]
