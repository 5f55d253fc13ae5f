"""What mypy says is among the findings of `pipeflow check`, and what keeps mypy from saying it is one line."""

from __future__ import annotations

import importlib.util
import subprocess
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from pipeflow.cli import main
from pipeflow.cli.type_checking import type_findings
from tests.cli.checking import FAULTY, HEAD, LINES, MESSAGE
from tests.cli.small import COMMAND, ENVIRONMENT, ROOT


def test_types_are_what_mypy_says_under_its_codes(tmp_path: Path) -> None:
    file = tmp_path / "typed.py"
    file.write_text("def double(number: int) -> int:\n    return str(number)\n\n\ndef f(x):\n    return x\n")
    assert [(found.code, found.severity, found.site.line) for found in type_findings([file])] == [
        ("return-value", "error", 2),
        ("no-untyped-def", "error", 5),
    ]


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
