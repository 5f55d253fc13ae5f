"""docs/tracking.md: its programs run, its commands are understood, and its tables name what is there."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from pipeflow import from_items
from pipeflow.cli import main
from pipeflow.lowering.engines import ray_metrics
from pipeflow.tracking import report_to
from tests.cli.small import FLAGS, run_command
from tests.tracking.reports import RECORD, report

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "tracking.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
# Every service is asked for by name, where it is not installed too.
_PACKAGES = {"WandB": "wandb", "MLflow": "mlflow"}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(program: str) -> dict[str, object]:
    names: dict[str, object] = {"__name__": "tracking"}
    exec(compile(program, "docs/tracking.md", "exec", dont_inherit=True), names)
    return names


def test_the_plan_leaves_its_curves(capsys: pytest.CaptureFixture[str]) -> None:
    small = "PPOConfig(num_envs=2, fragment_length=32, minibatch_size=64, hidden=(8,))"
    run(PROGRAMS[0].replace("PPOConfig()", small).replace("take(20)", "take(3)"))
    assert len(capsys.readouterr().out.splitlines()) == 3
    names = {path.name.partition(".tfevents")[0] for path in Path("runs/mine").iterdir()}
    assert names == {"progress.csv", "events.out"}


def test_the_tracker_of_ones_own_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    made = run(PROGRAMS[1] + "\ntracker = Print()\n")["tracker"]
    list((from_items([report(1, 2.0)]) | report_to(made)).run())  # type: ignore[arg-type]  # of the document
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("100 {'episodes/return': 2.0")
    assert second == "the end"


@pytest.mark.parametrize("program", PROGRAMS[2:])
def test_the_other_programs_run(program: str) -> None:
    for tracker, package in _PACKAGES.items():
        if tracker in program:
            pytest.importorskip(
                package, reason=f"{package} is not installed: pip install 'pipeflow[{package}]'"
            )
    run(program)


def commands() -> list[str]:
    """The lines that call pipeflow."""
    return [line.strip() for line in DOCUMENT.splitlines() if line.startswith("    pipeflow ")]


def test_every_command_is_tested() -> None:
    assert commands() == [
        "pipeflow train ppo --steps 100000 --logdir runs/one",
        "pipeflow train ppo --track wandb --track-project balance",
        "pipeflow train ppo --track mlflow --track-project balance",
        "pipeflow train ppo --until-return 475 --video --logdir runs/filmed",
        "pipeflow eval runs/filmed --episodes 3 --video films",
        "pipeflow train impala --engine ray --metrics",
    ]


def test_the_folder_has_what_the_table_says() -> None:
    table = DOCUMENT.partition("| file |")[2].partition("\n\n")[0]
    named = {name.rstrip("/").removesuffix("...") for name in re.findall(r"`([\w.]+/?)`", table)}
    assert main([*commands()[0].split()[1:], *FLAGS, "--steps", "200", "--quiet"]) == 0
    found = {re.sub(r"(tfevents).*", r"\1", path.name) for path in Path("runs/one").iterdir()}
    assert found == named - {"videos"}


@pytest.mark.slow
@pytest.mark.parametrize("command", commands()[1:3])
def test_the_commands_with_services_run(command: str) -> None:
    service = command.split()[4]
    pytest.importorskip(service, reason=f"{service} is not installed: pip install 'pipeflow[{service}]'")
    run_command(*command.split()[1:], *FLAGS, "--steps", "200", WANDB_MODE="offline")
    assert Path({"wandb": "wandb", "mlflow": "mlflow.db"}[service]).exists()


@pytest.mark.slow
def test_the_commands_with_videos_run() -> None:
    pytest.importorskip("moviepy", reason="moviepy is not installed: pip install 'pipeflow[video]'")
    train, evaluate = commands()[3:5]
    run_command(*train.replace("475", "1").split()[1:], *FLAGS, "--steps", "2000", SDL_VIDEODRIVER="dummy")
    assert len(list(Path("runs/filmed/videos").glob("*.mp4"))) == 1
    run_command(*evaluate.split()[1:], SDL_VIDEODRIVER="dummy")
    assert len(list(Path("films").glob("*.mp4"))) == 3


@pytest.mark.ray
@pytest.mark.slow
def test_the_command_with_metrics_runs() -> None:
    run_command(*commands()[5].split()[1:], "--steps", "200", "--quiet")


def test_the_curves_are_those_of_the_table() -> None:
    table = DOCUMENT.partition("| curve |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`(\w+/[\w.]+)`", table))
    shown = {*replace(RECORD, evaluation=RECORD.report.episodes).curves()}
    assert {name for name in shown if not name.startswith("learner/")} | {"learner/..."} == named


def test_the_metrics_are_those_of_the_table() -> None:
    named = set(re.findall(r"`ray_pipeflow_(\w+)`", DOCUMENT))
    of_nodes = {figure.name + "_total" * figure.total for figure in ray_metrics._OF_NODES}
    assert named == of_nodes | {figure.name + "_total" * figure.total for figure in ray_metrics._OF_RUN}
