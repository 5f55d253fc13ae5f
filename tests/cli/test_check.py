"""`pipeflow check` finds every planted fault at its line and nothing in right plans, and says what stops it."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pipeflow import Stream
from pipeflow.algorithms.catalogue import CATALOGUE, entry_of
from pipeflow.algorithms.dqn import DQNConfig, dqn
from pipeflow.algorithms.impala import IMPALAConfig, impala
from pipeflow.cli import main
from pipeflow.dsl import nodes
from pipeflow.dsl.lint import lint
from pipeflow.dsl.nodes import Node
from scripts import write_findings
from tests.algorithms.small import small_plan
from tests.cli.checking import FAULTY, HEAD, LINES, MESSAGE, said
from tests.cli.small import COMMAND, ROOT

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


# The plans that train by replay, with their weights left out


@pytest.mark.parametrize("name", ["dqn", "apex", "ppo", "impala"])
def test_the_workers_of_an_algorithm_without_its_weights_are_named(name: str) -> None:
    (finding,) = lint(Stream(without_weights(small_plan(name).node)))
    assert finding.code == "PF204"
    assert ("by way of ReplayBuffer" in finding.message) == (name in ("dqn", "apex"))


def without_weights(node: Node) -> Node:
    """The plan as it would be had no `sync_weights` been written."""
    match node:
        case nodes.SyncWeights():
            return without_weights(node.input)
        case nodes.Union():
            branches = tuple(without_weights(branch) for branch in node.branches)
            return dataclasses.replace(node, branches=branches)
        case nodes.OneInput():
            return dataclasses.replace(node, input=without_weights(node.input))
        case _:
            return node


def test_the_guide_to_replay_is_right_and_without_its_weights_is_told_what_is_missing(
    write: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = (ROOT / "docs" / "guides" / "replay.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)[0].partition("\nfor report")[0]
    write.write_text(code)
    assert said(capsys, "plans.py:plan", code=0) == "checked 1 plan, found no faults\n"
    faulty = write.with_name("without_weights.py")
    faulty.write_text(code.replace("    | sync_weights(learner, workers)\n", ""))
    (line, _) = said(capsys, f"{faulty.name}:plan", code=1).splitlines()
    assert "never gets the weights of DQNLearner, which learns from its items by way of ReplayBuffer" in line
    assert line.endswith("[PF204]")


# The formats


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
