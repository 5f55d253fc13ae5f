"""`--track` and `--video`: what they leave behind, and what is refused before anything is trained."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pipeflow.cli import main
from pipeflow.cli.tracking import Service, trackers_of
from pipeflow.state.values import Json
from pipeflow.tracking import MLflow, Tracker, WandB
from tests.cli.small import COMMAND, ENVIRONMENT, FLAGS, STEPS_PER_UPDATE, rows_of, run_command
from tests.tracking.offline import offline_runs

THREE, SIX = str(3 * STEPS_PER_UPDATE), str(6 * STEPS_PER_UPDATE)


def nothing(*words: str) -> None:
    """Finds no package, and requires none."""


def error_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert not Path("run").exists()
    return line


@pytest.mark.slow
def test_wandb_has_the_curves_of_the_run_and_of_its_resumption() -> None:
    pytest.importorskip("wandb", reason="wandb is not installed: pip install 'pipeflow[wandb]'")
    offline = {"WANDB_MODE": "offline", "WANDB_PROJECT": "of the variable"}
    run_command("train", "ppo", *FLAGS, "--steps", THREE, "--logdir", "run", "--track", "wandb", **offline)
    (first,) = offline_runs(Path())
    assert (first.project, first.name, first.exit_code) == ("of the variable", "run", 0)
    assert (first.config["algorithm"], first.config["fragment_length"]) == ("ppo", 32)
    run_command("train", "--resume", "run", "--steps", SIX, **offline)
    first, second = offline_runs(Path())
    assert second.run_id == first.run_id
    logged = [(point["steps"], point["learner/policy_loss"]) for point in (*first.history, *second.history)]
    assert logged == [(int(row["steps"]), float(row["policy_loss"])) for row in rows_of(Path("run"))]
    # A run that branches off in a folder of its own is another run.
    run_command("train", "--resume", "run", "--steps", str(2 * int(SIX)), "--logdir", "branch", **offline)
    *_, third = offline_runs(Path())
    assert (third.run_id != first.run_id, third.name) == (True, "branch")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")
def test_mlflow_has_the_curves_of_the_run_and_of_its_resumption(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed: pip install 'pipeflow[mlflow]'")
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed: pip install 'pipeflow[mlflow]'")
    flags = ("--track", "mlflow", "--track-project", "balance", "--track-name", "first")
    run_command("train", "ppo", *FLAGS, "--steps", THREE, "--logdir", "run", *flags)
    run_command("train", "--resume", "run", "--steps", SIX)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{os.getcwd()}/mlflow.db")
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("balance")
    (found,) = client.search_runs([experiment.experiment_id])
    assert (found.info.run_name, found.info.status) == ("first", "FINISHED")
    assert (found.data.params["algorithm"], found.data.params["env.env"]) == ("ppo", "CartPole-v1")
    losses = client.get_metric_history(found.info.run_id, "learner/policy_loss")
    assert [(point.step, point.value) for point in sorted(losses, key=lambda point: point.step)] == [
        (int(row["steps"]), float(row["policy_loss"])) for row in rows_of(Path("run"))
    ]


@pytest.mark.slow
def test_a_service_that_refuses_ends_in_one_line_and_leaves_no_folder() -> None:
    pytest.importorskip("wandb", reason="wandb is not installed: pip install 'pipeflow[wandb]'")
    words = ("train", "ppo", *FLAGS, "--logdir", "run", "--track", "wandb")
    keyless = {name: value for name, value in ENVIRONMENT.items() if not name.startswith("WANDB_")}
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, env=keyless | {"HOME": os.getcwd()}
    )
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("pipeflow: ")]
    assert line.startswith("pipeflow: error: W&B cannot start a run: ")
    assert "Traceback" not in done.stderr
    assert not Path("run").exists()


def test_a_missing_package_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeflow.tracking.errors.find_spec", nothing)
    train = ("train", "ppo", "--logdir", "run")
    assert error_of(capsys, *train, "--track", "mlflow") == (
        "pipeflow: error: MLflow needs mlflow, which is not installed: pip install 'pipeflow[mlflow]'"
    )
    assert error_of(capsys, *train, "--video") == (
        "pipeflow: error: a video needs moviepy, which is not installed: pip install 'pipeflow[video]'"
    )


def test_a_run_is_named_by_the_flag_or_the_variable_or_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeflow.tracking.wandb.require", nothing)
    monkeypatch.setattr("pipeflow.tracking.mlflow.require", nothing)
    monkeypatch.delenv("WANDB_NAME", raising=False)

    def named(name: str | None) -> dict[Service, Tracker]:
        return trackers_of(("wandb", "mlflow"), "balance", name, Path("runs/one"), {"lr": 1})

    config: dict[str, Json] = {"lr": 1}
    assert named("flag") == {
        "wandb": WandB("balance", "flag", config),
        "mlflow": MLflow("balance", "flag", config),
    }
    assert named(None) == {
        "wandb": WandB("balance", "one", config),
        "mlflow": MLflow("balance", "one", config),
    }
    monkeypatch.setenv("WANDB_NAME", "variable")
    assert named(None)["wandb"] == WandB("balance", "variable", config)
    assert named("flag")["wandb"] == WandB("balance", "flag", config)


def test_a_service_that_is_not_known_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    line = error_of(capsys, "train", "ppo", "--logdir", "run", "--track", "pencil")
    assert "wandb" in line
    assert "mlflow" in line


def test_what_cannot_be_filmed_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeflow.tracking.video.require", nothing)
    line = error_of(capsys, "train", "two-trainers", "--logdir", "run", "--video")
    assert line.endswith("has several agents, and --video films one; leave --video out")
    line = error_of(capsys, "train", "maml", "--logdir", "run", "--video")
    assert line == (
        "pipeflow: error: what adapts to a task before it plays cannot be filmed; leave --video out"
    )
    blind = ("--env", "tests.cli.environments:Misbehaving-v0")
    line = error_of(capsys, "train", "ppo", "--logdir", "run", *blind, "--video")
    assert line.startswith("pipeflow: error: tests.cli.environments:Misbehaving-v0 cannot be filmed: ")
    assert line.endswith("; leave --video out")


@pytest.mark.slow
def test_every_evaluation_and_the_end_are_filmed() -> None:
    pytest.importorskip("moviepy", reason="moviepy is not installed: pip install 'pipeflow[video]'")
    headless = {"SDL_VIDEODRIVER": "dummy"}
    printed = run_command("train", "ppo", *FLAGS, "--steps", THREE, "--logdir", "run", "--video", **headless)
    steps = rows_of(Path("run"))[-1]["steps"]
    assert [path.name for path in Path("run/videos").iterdir()] == [f"{int(steps):012}.mp4"]
    assert "videos      run/videos\n" in printed

    printed = run_command("eval", "run", "--episodes", "2", "--video", "films", **headless)
    assert sorted(path.name for path in Path("films").iterdir()) == [
        f"{int(steps):012}-0000.mp4",
        f"{int(steps):012}-0001.mp4",
    ]
    assert "2 greedy episodes" in printed
    assert printed.endswith("videos  films\n")
