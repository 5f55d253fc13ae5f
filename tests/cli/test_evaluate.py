"""`pipeflow eval` plays the checkpoint's policy, and says what it earned."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pipeflow.algorithms.ppo import policy_of
from pipeflow.cli import main
from pipeflow.lowering.checkpoint import Checkpoint
from pipeflow.rl.batches import Weights
from pipeflow.rl.evaluation import evaluate
from pipeflow.rl.learners.learner import Learner
from pipeflow.state.folders import checkpoints_in
from pipeflow.state.values import Json
from tests.cli.small import CONFIG, FLAGS


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Path:
    """The folder of a short training, whose observations were normalised."""
    words = ["--steps", "300", "--logdir", "run", "--normalise-observations"]
    assert main(["train", "ppo", *FLAGS, *words]) == 0
    capsys.readouterr()
    return Path("run")


def weights_in(run: Path) -> Weights:
    learner = Learner(policy_of(CONFIG))
    checkpoint = Checkpoint.load(checkpoints_in(run / "checkpoints")[-1])
    learner.load_state(checkpoint.actor_state("PPOLearner[0]"))
    return learner.weights()


def test_it_prints_what_evaluate_gives_for_the_same_weights(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", "run", "--episodes", "7", "--seed", "5"]) == 0
    stats = evaluate(CONFIG.env, policy_of(CONFIG), weights_in(run), 7, seed=5)
    head, returns, lengths = capsys.readouterr().out.splitlines()
    assert head.startswith("CartPole-v1, 7 greedy episodes with run/checkpoints/0")
    assert returns == (
        f"return  mean {stats.mean_return:.2f}  std {stats.returns.std():.2f}  "
        f"min {stats.returns.min():.2f}  max {stats.returns.max():.2f}"
    )
    assert lengths == f"length  mean {stats.mean_length:.2f}"
    assert weights_in(run).observation_moments is not None


def test_another_seed_plays_other_episodes(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for seed in ("5", "5", "6"):
        assert main(["eval", "run", "--seed", seed]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != printed[2]


def test_a_run_a_checkpoint_and_its_file_mean_the_same(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkpoint,) = checkpoints_in(run / "checkpoints")
    printed = set()
    for path in (run, run / "checkpoints", checkpoint, checkpoint / "checkpoint.json"):
        assert main(["eval", str(path), "--episodes", "2"]) == 0
        printed.add(capsys.readouterr().out)
    assert len(printed) == 1


def test_a_checkpoint_may_be_carried_elsewhere(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkpoint,) = checkpoints_in(run / "checkpoints")
    shutil.copytree(checkpoint, "best")
    shutil.rmtree(run)
    assert main(["eval", "best", "--episodes", "1"]) == 0


def changed(run: Path, **about: Json) -> None:
    """Save the run's checkpoint again as `changed`, which says something else about itself."""
    (path,) = checkpoints_in(run / "checkpoints")
    checkpoint = Checkpoint.load(path)
    replace(checkpoint, about={**checkpoint.about, **about}).save("changed")


def error_of(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["eval", "changed"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_a_damaged_checkpoint_is_refused_by_name(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed(run)
    file = Path("changed/state.safetensors")
    file.write_bytes(file.read_bytes()[:100])
    assert error_of(capsys).startswith(
        "pipeflow: error: changed/state.safetensors is damaged: it has 100 bytes where"
    )


def test_foreign_json_is_refused_by_name(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed(run)
    Path("changed/checkpoint.json").write_text(json.dumps({"format": "something else"}))
    assert "changed/checkpoint.json does not describe a pipeflow checkpoint" in error_of(capsys)


def test_weights_of_another_policy_are_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = Checkpoint.load(checkpoints_in(run / "checkpoints")[0]).about["config"]
    assert isinstance(config, dict)
    changed(run, config={**config, "hidden": [9]})
    assert (
        "changed does not fit its own configuration: parameter policy_trunk.0.weight has shape (8, 4)"
        in error_of(capsys)
    )


def test_an_algorithm_that_this_pipeflow_does_not_have_is_refused(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed(run, algorithm="muzero")
    assert "changed is of no use here: there is no algorithm 'muzero'" in error_of(capsys)


def test_an_environment_that_is_not_there_any_more_is_refused(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed(run, config={"env": {"env": "CartPole-v9"}})
    assert "no environment 'CartPole-v9' is registered" in error_of(capsys)
