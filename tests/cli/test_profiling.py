"""A profile divides all of a training's time, counts none of it twice, and is shown however the training ended."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from pipeflow.cli import main
from pipeflow.cli.profiling import Profile
from pipeflow.lowering.stats import GroupStats, NodeStats, RunStats
from pipeflow.rl.batches import Report
from pipeflow.tracking.records import Record, Recorder
from tests.cli.small import FLAGS

TRAIN = ("train", "ppo", *FLAGS, "--steps", "300", "--logdir", "run", "--profile")


class Clock:
    """Stands still unless it is told to move."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def counted(
    learning: float, sampling: float = 0.0, driving: float = 0.0, concurrent: bool = False
) -> RunStats:
    """What a run of two workers and a learner counted."""
    return RunStats(
        "inline",
        (
            NodeStats("sample", "plan.py:1", 0, 4, sampling, 0.0, 0, role="shard", groups=("Worker",)),
            NodeStats("print", "plan.py:2", 4, 4, driving, 0.0, 0),
            NodeStats("update", "plan.py:3", 4, 4, learning, 0.0, 0, role="stage", groups=("Learner",)),
        ),
        groups=(GroupStats("Worker", 2, sampling), GroupStats("Learner", 1, learning)),
        wall_seconds=8.0,
        concurrent=concurrent,
    )


def profiled(concurrent: bool) -> Profile:
    """Two seconds of start-up, eight of training, three of them evaluation, in which a call of one second ran."""
    clock = Clock()
    profile = Profile(clock)
    clock.now = 2.0
    profile.started(counted(10.0, concurrent=concurrent))  # in the run that is gone on with
    figures = iter([counted(11.0, 1.0, 0.5, concurrent), counted(12.0, 1.0, 0.5, concurrent)])
    with profile.during("evaluation", lambda: next(figures)):
        clock.now = 5.0
    clock.now = 10.0
    return profile


def test_in_one_process_the_parts_add_up_to_the_wall_time() -> None:
    division = profiled(concurrent=False).division(counted(12.0, 1.0, 0.5))
    assert {share.name: share.seconds for share in division.wall} == {
        "start-up": 2.0,
        "stages in Worker × 2": 1.0,
        "stages in Learner × 1": 2.0,
        "stages on the driver": 0.5,
        "evaluation": 2.0,  # three, less the call that ran meanwhile
        "recording": 0.0,
        "checkpoints": 0.0,
        "dataflow and engine": 2.5,
    }
    assert sum(share.share for share in division.wall) == pytest.approx(1.0)
    assert division.actors == ()


def test_where_actors_work_at_the_same_time_their_stages_are_counted_apart() -> None:
    division = profiled(concurrent=True).division(counted(12.0, 1.0, 0.5, concurrent=True))
    assert {share.name: share.seconds for share in division.wall} == {
        "start-up": 2.0,
        "stages on the driver": 0.5,
        "evaluation": 3.0,
        "recording": 0.0,
        "checkpoints": 0.0,
        "waiting for actors, dataflow and engine": 4.5,
    }
    assert [(share.name, share.seconds, share.share) for share in division.actors] == [
        ("Worker × 2", 1.0, 1 / 16),
        ("Learner × 1", 2.0, 2 / 8),
    ]


def test_a_training_that_was_stopped_before_it_began_was_all_start_up() -> None:
    clock = Clock()
    profile = Profile(clock)
    clock.now = 3.0
    shares = [share for share in profile.division(counted(0.0)).wall if share.seconds]
    assert [(share.name, share.share) for share in shares] == [("start-up", 1.0)]


def percentages(text: str) -> list[float]:
    return [float(found) for found in re.findall(r" s +(\d+\.\d)%$", text, re.MULTILINE)]


def assert_is_a_profile(text: str) -> None:
    assert "> " in text
    assert "bottleneck: " in text
    assert re.search(r"^where the wall time went, \d+\.\d s$", text, re.MULTILINE)


def test_a_training_shows_it_and_writes_it_down(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(TRAIN) == 0
    printed, written = capsys.readouterr().out, Path("run/profile.txt").read_text()
    assert written in printed
    assert_is_a_profile(written)
    assert sum(percentages(written)) == pytest.approx(100, abs=0.5)  # each is rounded
    assert printed.splitlines()[-1] == "profile     run/profile.txt"


def test_a_quiet_training_only_writes_it_down(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TRAIN, "--quiet"]) == 0
    assert "bottleneck" not in capsys.readouterr().out
    assert_is_a_profile(Path("run/profile.txt").read_text())


def test_a_training_that_was_interrupted_shows_it_as_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    take = Recorder.take

    def interrupted(recorder: Recorder, report: Report) -> Record:
        os.kill(os.getpid(), signal.SIGINT)
        return take(recorder, report)

    monkeypatch.setattr(Recorder, "take", interrupted)
    assert main(TRAIN) == 128 + signal.SIGINT
    assert_is_a_profile(capsys.readouterr().out)
    assert_is_a_profile(Path("run/profile.txt").read_text())


@pytest.mark.slow
@pytest.mark.ray
def test_on_ray_it_says_what_is_summed_over_actors(
    ray_runtime: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*TRAIN, "--engine", "ray"]) == 0
    written = Path("run/profile.txt").read_text()
    wall, _, actors = written.partition("time in stages since the start-up, summed over actors")
    assert sum(percentages(wall)) == pytest.approx(100, abs=0.5)
    assert len(percentages(actors)) == 2
