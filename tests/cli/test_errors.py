"""Whatever can be asked for wrongly, or go wrong, is one line on stderr that says what to change."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeflow.cli import main
from tests.cli.small import FLAGS, run_python

TRAIN = ["train", "ppo", "--quiet", *FLAGS]
MISBEHAVING = [*TRAIN, "--env", "tests.cli.environments:Misbehaving-v0", "--env-kwargs"]

CANNOT_BE_DONE = {
    "no algorithm": (["train"], "train needs an algorithm first, as in pipeflow train ppo"),
    "unknown algorithm": (["train", "pppo"], "there is no algorithm 'pppo'; did you mean ppo?"),
    "unknown flag": (
        [*TRAIN, "--adress", "x"],
        "--adress, x; did you mean --address? pipeflow train ppo --help",
    ),
    "flag without value": ([*TRAIN, "--steps"], "Missing value for argument '--steps'"),
    "flag that is no number": ([*TRAIN, "--lr", "fast"], "--lr: could not convert string to float: 'fast'"),
    "unknown environment": (
        [*TRAIN, "--env", "CartPol-v1"],
        "no environment 'CartPol-v1' is registered; did you",
    ),
    "unknown module": (
        [*TRAIN, "--env", "nowhere:X-v0"],
        "cannot import 'nowhere', the module of environment",
    ),
    "unknown environment argument": (
        [*TRAIN, "--env-kwargs", "gravitation=1"],
        "cannot make CartPole-v1: TypeError: CartPoleEnv.__init__() got an unexpected keyword argument",
    ),
    "no environment argument": ([*TRAIN, "--env-kwargs", "gravity"], "--env-kwargs takes key=value, such as"),
    "unsupported space": (
        [*TRAIN, "--env", "tests.cli.environments:Speechless-v0"],
        "no policy can read the observation, the space Text(",
    ),
    "no workers": ([*TRAIN, "--workers", "0"], "workers must be at least 1, got 0"),
    "no environments": ([*TRAIN, "--num-envs", "-1"], "num_envs must be at least 1, got -1"),
    "no steps": ([*TRAIN, "--steps", "0"], "--steps must be at least 1, got 0"),
    "no threads": ([*TRAIN, "--threads", "0"], "threads must be at least 1, got 0"),
    "no time between checkpoints": (
        [*TRAIN, "--checkpoint-minutes", "0"],
        "--checkpoint-minutes must be more than 0, got 0",
    ),
    "negative seed": ([*TRAIN, "--seed", "-1"], "seed must be at least 0, got -1"),
    "minibatch too large": (
        [*TRAIN, "--minibatch-size", "129"],
        "minibatch_size 129 is more than the 128 steps of an update",
    ),
    "unknown device": (
        [*TRAIN, "--device", "abacus"],
        "device 'abacus' cannot be used here: Expected one of",
    ),
    "unknown engine": ([*TRAIN, "--engine", "spark"], "'spark' for argument '--engine'. Expected one of"),
    "address without Ray": ([*TRAIN, "--address", "auto"], "--address is of the Ray engine"),
    "metrics without Ray": ([*TRAIN, "--metrics"], "--metrics is of the Ray engine"),
    "run that exists": ([*TRAIN, "--logdir", "."], ". is taken, and a run is never overwritten"),
    "run in a file": ([*TRAIN, "--logdir", "occupied/run"], "the run's folder occupied/run: Not a directory"),
    "graph of nothing": (["graph", "xyz"], "there is no algorithm 'xyz'; the algorithms are: a2c"),
    "list of something": (["list", "ppo"], "list takes no arguments, got 'ppo'"),
    "eval of nothing": (["eval"], "eval needs the folder of a run or of a checkpoint"),
    "eval of what is not there": (
        ["eval", "runs/none"],
        "runs/none does not exist; give the folder of a run",
    ),
    "eval of a folder": (["eval", "."], ". has no checkpoint in it; give the folder of a run"),
    "eval of a file": (["eval", "occupied"], "occupied has no checkpoint in it"),
    "eval without episodes": (["eval", ".", "--episodes", "0"], "--episodes must be at least 1, got 0"),
}


@pytest.fixture(autouse=True)
def _occupied(tmp_path: Path) -> None:
    (tmp_path / "occupied").touch()


@pytest.mark.parametrize(("words", "part"), CANNOT_BE_DONE.values(), ids=CANNOT_BE_DONE)
def test_what_cannot_be_done_is_one_line_and_exit_code_2(
    words: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    line, end = printed.err.split("\n")
    assert (line[: len("pipeflow: error: ")], end) == ("pipeflow: error: ", "")
    assert part in line
    assert not Path("runs").exists()


def assert_environment_refused(printed: str, part: str) -> None:
    assert printed.startswith(
        "pipeflow: error: tests.cli.environments:Misbehaving-v0, sub-environment 0: the "
    )
    assert part in printed
    assert "(said by RolloutWorker[" in printed
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("fault", "part"),
    [
        ("nan reward", "reward is nan; correct the environment"),
        ("nan observation", "observation holds nan or infinity: [nan nan nan]; correct the environment"),
        ("shape", "observation has shape (4,) where the space says (3,); correct its"),
    ],
)
def test_an_environment_that_breaks_its_contract_is_one_line_and_exit_code_1(
    fault: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*MISBEHAVING, f"fault={fault}"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert_environment_refused(printed.err, part)


@pytest.mark.ray
def test_it_is_one_line_too_when_a_worker_on_ray_says_so(
    ray_runtime: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*MISBEHAVING, "fault=nan reward", "--engine", "ray"]) == 1
    assert_environment_refused(capsys.readouterr().err, "reward is nan; correct the environment")


def test_an_exception_of_the_users_own_code_comes_with_its_traceback(
    engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*MISBEHAVING, "fault=exception", "--engine", engine]) == 1
    *trace, line = capsys.readouterr().err.splitlines()
    assert "Traceback (most recent call last):" in trace
    assert any("tests/cli/environments.py" in text for text in trace)
    assert line.startswith("pipeflow: error: ")
    assert "stage RolloutWorker.produce(RolloutWorker.sample) failed on item 0 in RolloutWorker[" in line
    assert line.endswith("RuntimeError: the user's own mistake")


@pytest.mark.ray
@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_a_ray_that_is_not_there_is_one_line_and_exit_code_2(address: str) -> None:
    # In a process of its own: this one may be connected to a Ray already.
    done = run_python(["-m", "pipeflow.cli", *TRAIN, "--engine", "ray", "--address", address])
    assert done.returncode == 2
    assert done.stderr.startswith(f"pipeflow: error: Ray at {address} cannot be reached: ")
    assert done.stderr.endswith("check the address, or leave it out\n")
    assert not Path("runs").exists()
