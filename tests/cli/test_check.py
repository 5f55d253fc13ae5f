"""`pipeflow check` finds every planted fault at its line and nothing in right plans, and says what stops it."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
import yaml

from pipeflow.algorithms.catalogue import CATALOGUE, entry_of
from pipeflow.algorithms.dqn import DQNConfig, dqn
from pipeflow.algorithms.impala import IMPALAConfig, impala
from pipeflow.cli import main
from pipeflow.cli.type_checking import type_findings
from pipeflow.dsl.lint import lint
from scripts import write_findings
from tests.algorithms.small import small_plan
from tests.cli.small import COMMAND, ENVIRONMENT, ROOT

HEAD = """\
from __future__ import annotations

from pipeflow import Stream, actors, drain, from_items, gather_sync, take
from tests.typing.domain import RolloutWorker, Trajectories, gae, workers

"""
LINES = HEAD.count("\n")


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The module `plans.py`, to be written by the test; it is forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "plans", raising=False)
    return tmp_path / "plans.py"


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int) -> str:
    assert main(["check", "--no-types", *words]) == code
    captured = capsys.readouterr()
    return captured.err if code == 2 else captured.out


# Every fault is found


def test_each_planted_fault_is_found_alone_and_the_page_shows_what_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert write_findings.main(["--check"]) == 0, capsys.readouterr().err


def test_a_page_that_shows_anything_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = tmp_path / "check.md"
    page = write_findings.DOCUMENT.read_text(encoding="utf-8")
    changed.write_text(page.replace("take 1 or more", "take 2 or more"), encoding="utf-8")
    monkeypatch.setattr(write_findings, "DOCUMENT", changed)
    assert write_findings.main(["--check"]) == 1
    assert "renew it with python scripts/write_findings.py" in capsys.readouterr().err
    assert write_findings.main([]) == 0
    assert changed.read_text(encoding="utf-8") == page


# Nothing is found where nothing is wrong


@pytest.mark.parametrize("name", [entry.name for entry in CATALOGUE])
def test_nothing_is_found_in_the_plans_of_the_algorithms(name: str) -> None:
    algorithm = entry_of(name).load()
    assert lint(small_plan(name)) == []
    assert lint(algorithm.plan(algorithm.configuration())) == []


def test_nothing_is_found_in_them_with_their_options() -> None:
    full = DQNConfig(double=True, dueling=True, n_step=3, prioritised=True)
    assert lint(dqn(full)) == []
    for config in (IMPALAConfig(replay_share=1.0), IMPALAConfig(aggregators=2)):
        assert lint(impala(config)) == []


@pytest.mark.parametrize("name", ["a2c", "ppo", "ddppo", "maml"])
def test_the_synchronous_algorithms_may_claim_to_be_on_policy(name: str) -> None:
    assert lint(small_plan(name), on_policy=True) == []


@pytest.mark.parametrize("name", ["a3c", "impala", "appo", "dqn", "apex", "two-trainers"])
def test_the_others_may_not(name: str) -> None:
    assert lint(small_plan(name), on_policy=True) != []


@pytest.mark.parametrize("name", ["interleaved", "own_algorithm"])
def test_nothing_is_found_in_the_examples_that_have_plans(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = said(capsys, str(ROOT / "examples" / f"{name}.py"), code=0)
    assert out == f"checked {'2 plans' if name == 'interleaved' else '1 plan'}, found no faults\n"


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
    assert first.endswith("put a stage between them that makes Trajectories  [PF100]")
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


# The formats


FAULTY = HEAD + "plan = from_items([1]) | take(0)\n"
MESSAGE = "take(0) lets nothing pass, and nothing before it is asked for an item; take 1 or more"


def test_text_is_a_line_a_finding_and_a_summary(write: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write.write_text(FAULTY)
    assert said(capsys, "plans.py", code=1) == (
        f"plans.py:{LINES + 1}: error: {MESSAGE}  [PF102]\nchecked 1 plan, found 1 fault\n"
    )


def test_annotations_of_a_workflow(write: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write.parent / "50%, mine"
    folder.mkdir()
    (folder / "odd.py").write_text(FAULTY)
    assert said(capsys, "50%, mine/odd.py", "--format", "github", code=1).splitlines() == [
        f"::error file=50%25%2C mine/odd.py,line={LINES + 1},title=PF102::{MESSAGE}",
        "checked 1 plan, found 1 fault",
    ]


def test_a_warning_is_one_in_every_format(write: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write.write_text(HEAD + "plan = from_items([1]) | drain\n")
    assert ": warning: " in said(capsys, "plans.py", code=1)
    assert said(capsys, "plans.py", "--format=github", code=1).startswith("::warning ")
    assert json.loads(said(capsys, "plans.py", "--format=json", code=1))[0]["severity"] == "warning"


def test_json_is_a_list(write: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write.write_text(FAULTY)
    assert json.loads(said(capsys, "plans.py", "--format", "json", code=1)) == [
        {"path": "plans.py", "line": LINES + 1, "severity": "error", "code": "PF102", "message": MESSAGE}
    ]
    assert json.loads(said(capsys, "plans.py", "--format", "json", "--ignore", "PF102", code=0)) == []


def test_what_a_module_prints_is_no_part_of_the_output(
    write: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write.write_text(
        HEAD
        + "print('imported')\n\ndef plan() -> Stream[int]:\n    print('built')\n    return from_items([1])\n"
    )
    assert main(["check", "plans.py", "--no-types", "--format=json"]) == 0
    captured = capsys.readouterr()
    assert (json.loads(captured.out), captured.err) == ([], "imported\nbuilt\n")


# Types


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


# What users copy

PAGE = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_command_of_the_page_finds_nothing() -> None:
    command = shlex.split(re.findall(r"^    pipeflow (check .*)$", PAGE, re.MULTILINE)[0])
    done = subprocess.run([*COMMAND, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "checked 2 plans, found no faults\n"), done.stderr


def test_the_page_has_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--help"]) == 0
    helped = capsys.readouterr().out
    options = re.findall(r"^\| `(--[a-z-]+)", PAGE, re.MULTILINE)
    assert set(options) == {"--on-policy", "--no-types", "--ignore", "--format", "--debug"}
    assert [option for option in options if option not in helped and option != "--debug"] == []


def test_the_plan_of_the_page_is_checked(write: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    write.write_text(snippet)
    assert said(capsys, "plans.py:ppo_small", code=0) == "checked 1 plan, found no faults\n"


def test_the_hook_is_one_that_pre_commit_takes_and_its_words_check_a_file(
    write: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = ROOT / ".pre-commit-hooks.yaml"
    pre_commit(["validate-manifest", str(manifest)])
    (hook,) = yaml.safe_load(manifest.read_text(encoding="utf-8"))
    assert hook["id"] == "pipeflow-check"
    assert hook["language"] == "system"
    program, *words = shlex.split(hook["entry"])
    assert program == "pipeflow"
    write.write_text(FAULTY)
    assert main([*words, "plans.py", "--no-types"]) == 1
    assert MESSAGE in capsys.readouterr().out


def test_the_configuration_of_the_page_is_one_that_pre_commit_takes(tmp_path: Path) -> None:
    (snippet,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    config = tmp_path / ".pre-commit-config.yaml"
    config.write_text(snippet)
    pre_commit(["validate-config", str(config)])
    (repository,) = yaml.safe_load(snippet)["repos"]
    assert [hook["id"] for hook in repository["hooks"]] == ["pipeflow-check"]


def pre_commit(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflow_ends_with_a_check_that_annotates(
    write: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workflow = yaml.safe_load((ROOT / "examples" / "github_workflow.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["check"]["steps"]
    program, *words = shlex.split(steps[-1]["run"])
    assert program == "pipeflow"
    write.write_text(FAULTY)
    words = [word.replace("my_package.plans", "plans.py") for word in words]
    assert main([*words, "--no-types"]) == 1
    assert capsys.readouterr().out.startswith("::error file=plans.py,line=")
