"""Which plans `pipeflow check` finds in a module, and what it says where it cannot build them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeflow.cli import main
from tests.cli.checking import HEAD, LINES, said

# Which plans


def test_a_module_has_its_streams_and_what_its_functions_make(
    write: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write.write_text(
        HEAD
        + "part = from_items([1])\n"
        + "whole = part | take(0)\n\n"
        + "def made() -> Stream[int]:\n    return from_items([2]) | take(0)\n\n"
        + "def with_default(count: int = 0) -> Stream[int]:\n    return inner() | take(count)\n\n"
        + "def inner() -> Stream[int]:\n    return from_items([3]) | take(0)\n\n"
        + "def needing(count: int) -> Stream[int]:\n    return from_items([4]) | take(0)\n\n"
        + "def number() -> int:\n    raise AssertionError\n"
    )
    out = said(capsys, "plans.py", code=1)
    lines = [int(line.split(":")[1]) for line in out.splitlines()[:-1]]
    assert [line - LINES for line in lines] == [2, 5, 8, 11]
    assert out.splitlines()[-1] == "checked 3 plans, found 4 faults"


def test_one_plan_by_its_name_in_a_module_by_its_name(
    write: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write.write_text(HEAD + "good = from_items([1])\nbad = from_items([2]) | take(0)\n")
    assert said(capsys, "plans:good", code=0) == "checked 1 plan, found no faults\n"
    out = said(capsys, "plans:good", "plans:bad", code=1)
    assert out.splitlines()[-1] == "checked 2 plans, found 1 fault"


def test_nothing_is_started(write: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write.write_text(
        HEAD
        + "class Worker:\n    def __init__(self) -> None:\n        raise AssertionError\n\n"
        + "    def sample(self) -> int:\n        return 1\n\n"
        + "plan = actors(Worker, 2).produce(Worker.sample) | gather_sync()\n"
    )
    assert said(capsys, "plans.py", code=0) == "checked 1 plan, found no faults\n"


def test_parts_that_do_not_fit_are_a_finding_at_their_line_and_the_other_plans_are_checked(
    write: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write.write_text(
        HEAD
        + "def misfit() -> Stream[Trajectories]:\n"
        + "    return workers.produce(RolloutWorker.sample) | gather_sync() | gae() | gae()\n\n"
        + "def empty() -> Stream[int]:\n    return from_items([1]) | take(0)\n"
    )
    first, second, summary = said(capsys, "plans.py", code=1).splitlines()
    assert first.startswith(f"plans.py:{LINES + 2}: error: advantages takes Trajectories")
    assert "; put a stage between them that makes Trajectories, or put this one before advantages" in first
    assert first.endswith("which is given Trajectories  [PF100]")
    assert second.startswith(f"plans.py:{LINES + 5}: error: take(0)")
    assert summary == "checked 1 plan, found 2 faults"


# What stops the check


@pytest.mark.parametrize(
    ("text", "plan", "problem"),
    [
        (
            "import no_such_package\n",
            "",
            "plans.py cannot be imported: plans.py:1: ModuleNotFoundError: No",
        ),
        ("def plan(:\n", "", "plans.py cannot be imported: plans.py:1: SyntaxError: invalid syntax"),
        ("x = 1 / 0\n", "", "plans.py cannot be imported: plans.py:1: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)\n", "", "plans.py cannot be imported: plans.py:2: SystemExit: 3"),
        ("x = 1\n", "", "plans.py has no plan: no stream on its top level"),
        ("x = 1\n", ":y", "plans.py:y: the module has nothing of the name y"),
        ("x = 1\n", ":x", "plans.py:x is of type int; name a stream or a function that makes one"),
        ("def f(n, *rest): ...\n", ":f", "plans.py:f takes n; name a function without arguments"),
        ("def f(): ...\n", ":f", "plans.py:f makes NoneType, not a stream"),
        ("def f(): return {}['a']\n", ":f", "plans.py:f cannot be built: plans.py:1: KeyError: 'a'; --debug"),
        (
            HEAD + "def f(): return workers.produce(RolloutWorker.sample)\n",
            ":f",
            "which is still in its shards; gather it",
        ),
        (
            HEAD + "print(list(from_items([1]).run()))\n",
            "",
            f"plans.py:{LINES + 1}: a plan is run while it is only to be built; put what runs it under if",
        ),
    ],
)
def test_what_cannot_be_built_is_one_line(
    write: Path, capsys: pytest.CaptureFixture[str], text: str, plan: str, problem: str
) -> None:
    write.write_text(text)
    err = said(capsys, f"plans.py{plan}", code=2)
    assert err.startswith("pipeflow: error: ")
    assert problem in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "check needs a plan, as in pipeflow check my_module:my_plan, or a module with plans"),
        (["missing.py"], "there is no file missing.py; give a module by its dotted name or by its path"),
        (["no_such_module"], "there is no module no_such_module; give its dotted name"),
        (["no_such_package.plans"], "cannot find no_such_package.plans: ModuleNotFoundError: No module"),
        (["math"], "there is no module math"),
        (["..plans"], "cannot find ..plans: "),
        ([":plan"], "cannot find : "),
        (
            ["plans.py", "--ignore", "PF999"],
            "there is no finding PF999; docs/check.md lists them, PF100 to PF306",
        ),
        (["plans.py", "--format", "xml"], "--format"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str], problem: str
) -> None:
    err = said(capsys, *words, code=2)
    assert problem in err
    assert err.count("\n") == 1


def test_debug_shows_where_a_module_raises(write: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write.write_text("x = 1 / 0\n")
    assert main(["check", "--no-types", "plans.py", "--debug"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last)")
    assert f'File "{write}", line 1' in err


def test_a_package_that_raises_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = tmp_path / "raising_package"
    package.mkdir()
    (package / "__init__.py").write_text("x = 1 / 0\n")
    (package / "plans.py").write_text("")
    err = said(capsys, "raising_package.plans", code=2)
    assert "cannot find raising_package.plans: ZeroDivisionError: division by zero" in err
    assert err.count("\n") == 1
