"""The command as a process: its exit codes, what signals do to it, and how it looks on a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeflow.lowering.checkpoint import Checkpoint
from pipeflow.state.folders import checkpoints_in
from tests.cli.small import COMMAND, ENVIRONMENT, FLAGS, rows_of

MARK = "PIPEFLOW_TEST_PROCESS"
# As the terminal does it: to all processes of the foreground, Ray's among them.
TO_ALL, TO_ONE = os.killpg, os.kill


class Training:
    """A training without end, in a process group of its own."""

    def __init__(self, *words: str) -> None:
        self._mark = uuid.uuid4().hex
        self.process = subprocess.Popen(
            [*COMMAND, "train", "ppo", *FLAGS, "--logdir", "run", "--steps", "1000000000", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env=ENVIRONMENT | {MARK: self._mark},
        )
        self.printed: list[str] = []

    def wait_for(self, start: str, times: int = 1) -> None:
        """Read the output until so many lines have begun like this."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.printed.append(line)
            times -= line.startswith(start)
            if not times:
                return
        raise AssertionError(f"it ended: {''.join(self.printed)}")

    def end(self) -> int:
        """The exit code, when it has ended."""
        output, _ = self.process.communicate(timeout=60)
        self.printed += output.splitlines(keepends=True)
        return self.process.returncode

    @property
    def left(self) -> list[int]:
        """The processes that it started and that still run."""
        mark = f"{MARK}={self._mark}".encode()
        found = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in environment.read_bytes().split(b"\0"):
                    found.append(int(environment.parent.name))
            except OSError:  # it ended meanwhile, or it is somebody else's
                continue
        return found

    def close(self) -> None:
        """End whatever still runs."""
        for pid in self.left:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@pytest.fixture
def training() -> Iterator[Callable[..., Training]]:
    """Starts trainings, and ends them with the test."""
    started: list[Training] = []

    def start(*words: str) -> Training:
        started.append(Training(*words))
        return started[-1]

    yield start
    for one in started:
        one.close()


def assert_whole(run: Training) -> None:
    """The run stopped between two updates, with all that it had learnt on the disk and nothing left."""
    assert "Traceback" not in "".join(run.printed)
    assert run.left == []
    (checkpoint,) = checkpoints_in(Path("run/checkpoints"))
    state = Checkpoint.load(checkpoint).actor_state("PPOLearner[0]")
    last = rows_of(Path("run"))[-1]
    assert (state["version"], state["lifetime_steps"]) == (int(last["updates"]), int(last["steps"]))
    assert any(line.startswith("interrupted after") for line in run.printed)


def test_ctrl_c_ends_it_with_a_checkpoint(training: Callable[..., Training]) -> None:
    run = training()
    run.wait_for("steps", times=3)
    TO_ALL(run.process.pid, signal.SIGINT)
    assert run.end() == 130
    assert_whole(run)


@pytest.mark.ray
@pytest.mark.parametrize(
    ("send", "number", "code"),
    [
        pytest.param(TO_ALL, signal.SIGINT, 130, id="ctrl-c in a terminal"),
        # Ray, as it starts, takes SIGTERM over.
        pytest.param(TO_ONE, signal.SIGTERM, 143, id="kill", marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_a_run_on_ray_with_a_checkpoint(
    training: Callable[..., Training], send: Callable[[int, int], None], number: signal.Signals, code: int
) -> None:
    run = training("--engine", "ray")
    run.wait_for("steps", times=3)
    send(run.process.pid, number)
    assert run.end() == code
    assert_whole(run)


def test_ctrl_c_while_it_starts_leaves_nothing(training: Callable[..., Training]) -> None:
    run = training()
    time.sleep(0.8)  # torch takes longer than that to import
    TO_ALL(run.process.pid, signal.SIGINT)
    assert run.end() == 130
    assert run.printed[-1] == "pipeflow: interrupted\n"
    assert not Path("run").exists()


def test_a_second_ctrl_c_ends_it_at_once_and_spoils_no_checkpoint(training: Callable[..., Training]) -> None:
    slow = ("--env", "tests.cli.environments:Misbehaving-v0", "--env-kwargs", "fault=slow")
    # An update is two episodes long.
    run = training("--checkpoint-minutes", "1e-9", "--fragment-length", "30", "--minibatch-size", "60", *slow)
    run.wait_for("steps")
    time.sleep(0.5)  # until the next update, which takes many seconds, has begun
    TO_ALL(run.process.pid, signal.SIGINT)
    time.sleep(0.7)
    started = time.monotonic()
    TO_ALL(run.process.pid, signal.SIGINT)
    assert run.end() == 130
    assert time.monotonic() - started < 8
    assert "Traceback" not in "".join(run.printed)
    assert "stopped without a last checkpoint: KeyboardInterrupt\n" in run.printed
    (checkpoint,) = checkpoints_in(Path("run/checkpoints"))
    assert Checkpoint.load(checkpoint).actor_state("PPOLearner[0]")["version"] == 1


def test_ctrl_c_keeps_the_checkpoint_when_the_reader_of_the_output_ends_first(
    training: Callable[..., Training],
) -> None:
    run = training()
    run.wait_for("steps", times=2)
    assert run.process.stdout is not None
    run.process.stdout.close()  # as `| tee log` is, which the terminal's Ctrl-C reaches as well
    time.sleep(0.5)
    TO_ONE(run.process.pid, signal.SIGINT)
    assert run.process.wait(timeout=60) == 130
    (checkpoint,) = checkpoints_in(Path("run/checkpoints"))
    Checkpoint.load(checkpoint)


def test_on_a_terminal_the_progress_is_drawn_in_place() -> None:
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "train", "ppo", *FLAGS, "--logdir", "run", "--steps", "2000"],
        stdout=its,
        stderr=its,
        env=ENVIRONMENT | {"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "30"},
    )
    os.close(its)
    output = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        output += part
    os.close(ours)
    assert process.wait(timeout=60) == 0
    text = output.decode()
    assert "\x1b[2K" in text  # the line of the first state is erased, to draw the next one over it
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    for shown in (
        "training ppo on CartPole-v1",
        "/2,000",
        "return(100)",
        "policy_loss",
        "elapsed",
        "remaining",
    ):
        assert shown in plain
    assert "finished after 2,0" in plain
