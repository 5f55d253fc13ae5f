"""docs/failures.md on Ray: faults are injected, and their outcomes are those that the table states."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import pytest

from pipeflow import (
    ActorDiedError,
    Actors,
    EngineError,
    StageError,
    actors,
    from_items,
    gather_async,
    gather_sync,
    sync_weights,
    take,
)
from pipeflow.lowering.engines.ray import Ray
from tests.faults.actors import process_of
from tests.faults.mortal import Fault, MortalLearner, MortalWorker
from tests.lowering.actors import Counter, Learner, Recorder

# Each of them ends a process and waits for another one to start: minutes together.
pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("ray_runtime")]

ROOT = Path(__file__).resolve().parents[2]
Made = tuple[int, int, int]


def of_shard(found: list[Made], shard: int) -> list[int]:
    return [k for number, k, _ in found if number == shard]


def lives_again(made: Made) -> bool:
    """Whether the first shard has made its fourth item, which it does not before it has failed once."""
    return made[:2] == (0, 3)


def workers(
    folder: Path, fault: Fault, count: int = 2, mortal: tuple[int, ...] = (0,)
) -> Actors[MortalWorker]:
    return actors(MortalWorker, count, str(folder), fault, mortal)


@pytest.mark.parametrize("fault", ["killed", "exits"])
def test_a_worker_whose_process_ends_costs_what_it_had_in_flight(fault: Fault, tmp_path: Path) -> None:
    plan = workers(tmp_path, fault).restarts(1).produce(MortalWorker.sample) | gather_async(2)
    with plan.until(lives_again).run("ray") as run:
        found = list(run)
        assert run.stats().restarts == 1
        assert 1 <= run.stats().lost <= 2
    first = of_shard(found, 0)
    assert first[:6] == [0, 1, 0, 1, 2, 3]
    # What was in flight when the stream ended is delivered as well.
    assert first[6:] == list(range(4, len(first) - 2))
    assert of_shard(found, 1) == list(range(len(found) - len(first)))


def test_a_worker_without_restarts_ends_the_run_by_name_within_seconds(tmp_path: Path) -> None:
    plan = workers(tmp_path, "killed").produce(MortalWorker.sample) | gather_sync()
    started = time.monotonic()
    with pytest.raises(
        ActorDiedError, match=r"^MortalWorker\[0\] died while the run needed it for gather_sync"
    ):
        list(islice(plan.run("ray"), 10))
    assert time.monotonic() - started < 15


def test_an_environment_that_raises_ends_the_run_with_its_error(tmp_path: Path) -> None:
    plan = workers(tmp_path, "raises").restarts(5).produce(MortalWorker.sample) | gather_sync()
    with pytest.raises(
        StageError, match=r"failed on item 2 in MortalWorker\[0\]: ValueError: the environment"
    ):
        list(islice(plan.run("ray"), 10))


def test_an_environment_that_raises_is_started_again_where_that_is_wanted(tmp_path: Path) -> None:
    group = workers(tmp_path, "raises").restarts(1).on_error("restart")
    with (group.produce(MortalWorker.sample) | gather_async()).until(lives_again).run("ray") as run:
        found = list(run)
        assert (run.stats().restarts, run.stats().lost) == (1, 1)
    first = of_shard(found, 0)
    assert first == [0, 1, *range(len(first) - 2)]
    assert of_shard(found, 1) == list(range(len(found) - len(first)))


@pytest.mark.parametrize("fault", ["raises", "killed"])
def test_the_shard_of_a_worker_that_fails_ends_where_that_is_wanted(fault: Fault, tmp_path: Path) -> None:
    group, learner = workers(tmp_path, fault).on_error("drop_shard"), actors(Learner, 1)
    plan = group.produce(MortalWorker.sample) | gather_sync() | sync_weights(learner, group)
    with plan.run("ray") as run:
        found = list(islice(run, 12))
        assert run.stats().given_up == ("MortalWorker[0]",)
        assert len(run.ask(group, process_of)) == 1
    assert of_shard(found, 0) == [0, 1]
    assert of_shard(found, 1) == list(range(10))


def test_the_last_worker_of_a_group_is_not_given_up(tmp_path: Path) -> None:
    group = workers(tmp_path, "raises", mortal=(0, 1)).on_error("drop_shard")
    with pytest.raises(StageError, match="the environment is broken"):
        list((group.produce(MortalWorker.sample) | gather_sync()).run("ray"))


def test_an_environment_that_hangs_is_ended_at_its_time_limit(tmp_path: Path) -> None:
    group = workers(tmp_path, "hangs").time_limit(1.0)
    started = time.monotonic()
    with pytest.raises(ActorDiedError, match=r"^MortalWorker\[0\] died .* longer than its time limit of 1 s"):
        list(islice((group.produce(MortalWorker.sample) | gather_sync()).run("ray"), 10))
    assert time.monotonic() - started < 20


def test_an_environment_that_hangs_is_started_again(tmp_path: Path) -> None:
    group = workers(tmp_path, "hangs").time_limit(1.0).restarts(1)
    with (group.produce(MortalWorker.sample) | gather_sync() | take(20)).run("ray") as run:
        found = list(run)
        assert run.stats().restarts == 1
    first = of_shard(found, 0)
    assert first == [0, 1, *range(len(first) - 2)]


def test_a_slow_consumer_is_no_slow_call(tmp_path: Path) -> None:
    """Only what an actor does counts against its time limit."""
    group = actors(Counter, 2).time_limit(0.5)
    with (group.produce(Counter.next_number) | gather_async(2)).run("ray") as run:
        for _ in range(3):
            next(run)
            time.sleep(0.8)
        assert run.stats().restarts == 0


@pytest.mark.parametrize("fault", ["killed while built", "raises while built"])
def test_a_worker_that_fails_while_it_starts_is_started_again(fault: Fault, tmp_path: Path) -> None:
    group = workers(tmp_path, fault).restarts(1).on_error("restart")
    with (group.produce(MortalWorker.sample) | gather_sync() | take(6)).run("ray") as run:
        assert [(shard, k) for shard, k, _ in run] == [(shard, k) for k in range(3) for shard in range(2)]
        assert run.stats().restarts == 1


def test_two_workers_at_once_cost_what_both_had_in_flight(tmp_path: Path) -> None:
    group = workers(tmp_path, "killed", 3, (0, 2)).restarts(2)
    with (group.produce(MortalWorker.sample) | gather_sync() | take(30)).run("ray") as run:
        found = list(run)
        assert run.stats().restarts == 2
    assert of_shard(found, 1) == list(range(len(of_shard(found, 1))))
    for shard in (0, 2):
        mine = of_shard(found, shard)
        assert mine == [0, 1, *range(len(mine) - 2)]


def test_a_restarted_worker_has_the_latest_weights_before_its_first_item(tmp_path: Path) -> None:
    group, learner = workers(tmp_path, "killed").restarts(1), actors(MortalLearner, 1, str(tmp_path), "exits")
    (tmp_path / "failed").touch()
    plan = group.produce(MortalWorker.sample) | gather_sync()
    trained = plan.tap(lambda made: seen.append(made)) | learner.stage(MortalLearner.update)
    seen = list[Made]()
    with (trained | sync_weights(learner, group) | take(12)).run("ray") as run:
        list(run)
    restarted = [weights for shard, _, weights in seen if shard == 0][2:]
    assert restarted[0] >= 4
    assert restarted == sorted(restarted)


@pytest.mark.parametrize("fault", ["killed", "exits"])
def test_a_learner_that_dies_ends_the_run_by_name(fault: Fault, tmp_path: Path) -> None:
    learner = actors(MortalLearner, 1, str(tmp_path), fault)
    with pytest.raises(ActorDiedError, match=r"^MortalLearner\[0\] died while the run needed it"):
        list((from_items(range(9)) | learner.stage(MortalLearner.update)).run("ray"))


def test_a_learner_that_is_started_again_starts_anew(tmp_path: Path) -> None:
    """The item that it had is lost, and what it had learnt: restart a learner only where it can afford that."""
    learner = actors(MortalLearner, 1, str(tmp_path), "killed").restarts(1)
    with (from_items(range(6)) | learner.stage(MortalLearner.update)).run("ray") as run:
        assert list(run) == [1, 2, 1, 2, 3]
        assert (run.stats().restarts, run.stats().lost) == (1, 1)


def test_a_message_to_an_actor_that_dies_is_lost_with_what_it_held() -> None:
    recorder = actors(Recorder, 1).restarts(1)
    with (from_items(range(40)) | recorder.send(Recorder.note)).run("ray") as run:
        list(islice(run, 5))
        os.kill(run.ask(recorder, process_of)[0], signal.SIGKILL)
        list(run)
        notes = run.ask(recorder, Recorder.notes)[0]
    assert notes == list(range(40))[-len(notes) :] if notes else True
    assert run.stats().restarts == 1


DRIVER = """
import time
from pipeflow import actors, gather_async
from tests.lowering.actors import Counter

counters = actors(Counter, 2)
run = (counters.produce(Counter.next_number) | gather_async(2)).run("ray")
next(run)
print(*run.ask(counters, Counter.pid), flush=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_the_actors_of_a_driver_that_is_killed_are_gone_within_half_a_minute() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as driver:
        assert driver.stdout is not None
        pids = [int(pid) for pid in driver.stdout.readline().split()]
        assert len(pids) == 2
        driver.kill()
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_what_no_cluster_has_is_an_error_that_says_so() -> None:
    plan = actors(Counter, 1).named("big").resources(cpus=1, unobtainium=2).produce(Counter.next_number)
    started = time.monotonic()
    with pytest.raises(EngineError) as caught:
        next((plan | gather_sync()).run(Ray(start_limit=2.0)))
    assert time.monotonic() - started < 20
    assert re.match(
        r"big\[0\] \(\S+:\d+\) did not come up within 2 s: each actor of big wants 1 CPU, 0 GPU, 2 unobtainium; "
        r"the cluster has 4 CPU, 0 GPU, 0 unobtainium, of which \S+ CPU, 0 GPU, 0 unobtainium are free;",
        str(caught.value),
    )


OWN_RAY = """
from pipeflow import EngineError, actors, gather_sync
from pipeflow.lowering.engines.ray import Ray
from tests.lowering.actors import Counter

plan = actors(Counter, 3).resources(cpus=1).produce(Counter.next_number) | gather_sync()
try:
    next(plan.run(Ray(num_cpus=2)))
except EngineError as error:
    print(error)
"""


@pytest.mark.slow
def test_what_this_machine_lacks_is_refused_at_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", OWN_RAY], capture_output=True, text=True, timeout=120, check=False, cwd=ROOT
    )
    assert "cannot be started: with it the run wants 3 CPU, and the cluster has 2 CPU" in done.stdout, (
        done.stderr
    )
