"""`pipeflow train --resume` goes on as if the run had never stopped, in the same folder."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pipeflow.cli import main
from pipeflow.lowering.checkpoint import Checkpoint
from pipeflow.state.folders import checkpoints_in
from tests.cli.small import COMMAND, ENVIRONMENT, FLAGS, STEPS_PER_UPDATE, TIME_COLUMNS, rows_of

SIX, THREE = str(6 * STEPS_PER_UPDATE), str(3 * STEPS_PER_UPDATE)


def train(*words: str) -> int:
    return main(["train", *words])


def curves(run: str) -> list[dict[str, str]]:
    return [
        {name: value for name, value in row.items() if name not in TIME_COLUMNS} for row in rows_of(Path(run))
    ]


def last(run: str) -> Checkpoint:
    return Checkpoint.load(checkpoints_in(Path(run) / "checkpoints")[-1])


def error_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert train(*words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("engine", ["inline", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])])
def test_a_resumed_run_ends_with_the_curves_and_the_state_of_an_unbroken_one(
    engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--normalise-observations", "--normalise-rewards", "--anneal-steps", SIX)
    assert train("ppo", *FLAGS, *flags, "--steps", SIX, "--engine", engine, "--logdir", "whole") == 0
    assert train("ppo", *FLAGS, *flags, "--steps", THREE, "--engine", engine, "--logdir", "run") == 0
    stopped = int(rows_of(Path("run"))[-1]["steps"])
    capsys.readouterr()
    assert train("--resume", "run", "--steps", SIX) == 0
    printed = capsys.readouterr().out
    assert f"resuming run/checkpoints/{stopped:012} after {stopped:,} steps\n" in printed
    assert curves("run") == curves("whole")
    assert len(curves("whole")) > 5
    one, other = last("whole"), last("run")
    assert one.state.keys() == other.state.keys()
    for name in one.state:
        if "/actor/" in name:
            np.testing.assert_array_equal(one.state[name], other.state[name], err_msg=name)


def test_what_a_killed_run_did_after_its_checkpoint_is_done_again() -> None:
    assert train("ppo", *FLAGS, "--steps", SIX, "--logdir", "whole") == 0
    process = subprocess.Popen(
        [*COMMAND, "train", "ppo", *FLAGS, "--steps", "10000000", "--logdir", "run",
         "--checkpoint-minutes", "0.005"],
        stdout=subprocess.PIPE, env=ENVIRONMENT, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("steps") and checkpoints_in(Path("run/checkpoints")):
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()
    saved = last("run").about["steps"]
    assert isinstance(saved, int)
    steps = str(saved + 2 * STEPS_PER_UPDATE)
    assert train("--resume", "run", "--steps", steps) == 0
    assert train("ppo", *FLAGS, "--steps", steps, "--logdir", "again") == 0
    assert curves("run") == curves("again")


def test_flags_may_be_given_again_and_the_rest_is_as_it_was() -> None:
    assert (
        train("ppo", *FLAGS, "--lr", "0.002", "--steps", THREE, "--logdir", "run", "--keep-checkpoints", "2")
        == 0
    )
    assert train("ppo", "--resume=run", "--steps", SIX, "--lr", "0.001", "--checkpoint-minutes", "1e-9") == 0
    written = json.loads(Path("run/config.json").read_text())
    assert written["config"]["lr"] == 0.001
    assert written["config"]["fragment_length"] == 32
    assert len(checkpoints_in(Path("run/checkpoints"))) == 2


def test_an_older_checkpoint_branches_off_into_a_folder_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert train("ppo", *FLAGS, "--steps", SIX, "--logdir", "run", "--checkpoint-minutes", "1e-9") == 0
    older = checkpoints_in(Path("run/checkpoints"))[0]
    assert "is not the newest checkpoint of its run; resume the run, or give a --logdir" in error_of(
        capsys, "--resume", str(older), "--steps", "2000"
    )
    whole = curves("run")
    assert train("--resume", str(older), "--steps", SIX, "--logdir", "branch") == 0
    assert curves("branch") == whole[-len(curves("branch")) :]
    assert curves("run") == whole


def test_environments_that_cannot_be_saved_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    lander = (
        "--env",
        "LunarLander-v3",
        "--num-envs",
        "2",
        "--fragment-length",
        "32",
        "--minibatch-size",
        "64",
    )
    assert train("ppo", *lander, "--hidden", "8", "--workers", "1", "--steps", "60", "--logdir", "run") == 0
    capsys.readouterr()
    assert train("--resume", "run", "--steps", "200") == 0
    assert "; the environments of RolloutWorker[0] cannot be saved: their episodes start anew\n" in (
        capsys.readouterr().out
    )


def test_what_cannot_be_resumed_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("ppo", *FLAGS, "--steps", THREE, "--logdir", "run") == 0
    assert "--resume needs the folder of a run" in error_of(capsys, "--resume")
    assert "nowhere does not exist; give the folder of a run" in error_of(capsys, "--resume", "nowhere")
    assert "is of ppo, not of a2c; leave a2c out" in error_of(capsys, "a2c", "--resume", "run")
    assert "steps, and --steps is 384; give more" in error_of(capsys, "--resume", "run")
    assert (
        "the checkpoint is of another plan: it has '2 x RolloutWorker' where this one has '3 x"
        in error_of(capsys, "--resume", "run", "--steps", SIX, "--workers", "3")
    )
    assert "does not fit RolloutWorker[0]: parameter" in error_of(
        capsys, "--resume", "run", "--steps", SIX, "--hidden", "9"
    )
    (path,) = checkpoints_in(Path("run/checkpoints"))
    file = path / "state.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    assert f"{file} is damaged" in error_of(capsys, "--resume", "run", "--steps", SIX)
    shutil.rmtree("run/checkpoints")
    assert "run has no checkpoint in it" in error_of(capsys, "--resume", "run", "--steps", SIX)
