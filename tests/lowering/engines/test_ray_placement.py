"""Places that are reserved together, on one node: what of it can be told there."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from ray.util.placement_group import placement_group_table

from pipeflow.dsl import actors, gather_async, gather_sync
from tests.faults.mortal import MortalWorker
from tests.lowering.actors import Counter

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_runtime")]


def reserved() -> list[object]:
    """The reservations that there are."""
    return [place for place in placement_group_table().values() if place["state"] != "REMOVED"]


def test_actors_have_their_places_until_the_run_ends() -> None:
    workers = actors(Counter, 2).resources(cpus=0.5).placement("spread")
    with (workers.produce(Counter.next_tagged) | gather_sync()).run("ray") as run:
        assert [next(run), next(run)] == [(0, 1), (1, 1)]
        assert len(reserved()) == 1
    assert reserved() == []


def test_a_run_that_fails_gives_its_places_back(tmp_path: Path) -> None:
    workers = actors(MortalWorker, 1, str(tmp_path), "raises while built").placement("pack")
    with pytest.raises(Exception, match="the environment is broken"):
        next((workers.produce(MortalWorker.sample) | gather_sync()).run("ray"))
    assert reserved() == []


def test_an_actor_that_is_started_again_gets_the_place_that_it_had(tmp_path: Path) -> None:
    """There is no core left for another: four are there, and all are reserved."""
    workers = actors(MortalWorker, 2, str(tmp_path), "killed").resources(cpus=2).placement("pack").restarts(1)
    plan = workers.produce(MortalWorker.sample) | gather_async(1)
    with plan.until(lambda made: made[:2] == (0, 3)).run("ray") as run:
        list(run)
        assert run.stats().restarts == 1


def test_more_actors_than_cores_have_places_where_they_reserve_nothing() -> None:
    workers = actors(Counter, 6).resources(cpus=0).placement("pack")
    with (workers.produce(Counter.next_tagged) | gather_sync()).run("ray") as run:
        assert list(islice(run, 6)) == [(shard, 1) for shard in range(6)]
