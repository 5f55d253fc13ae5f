"""`max_lag`: no item is delivered whose weights are too old (law 24), under any schedule."""

from __future__ import annotations

import pytest

from pipeflow import (
    PlanError,
    Stream,
    actors,
    batch,
    from_items,
    gather_async,
    gather_sync,
    max_lag,
    sync_weights,
    take,
)
from pipeflow.lowering.engines.sim import Sim
from pipeflow.semantics.events import Delivered, Dropped, Trace


class Worker:
    def __init__(self) -> None:
        self._weights = 0

    def sample(self) -> int:
        return self._weights

    def set_weights(self, weights: int, /) -> None:
        self._weights = weights


class Learner:
    def __init__(self) -> None:
        self._updates = 0

    def update(self, batch: list[int]) -> int:
        """How many updates the weights that the batch was sampled with are behind."""
        lag = self._updates - batch[0]
        self._updates += 1
        return lag

    def weights(self) -> int:
        return self._updates


def plan(limit: int | None, *, wait: bool = False) -> Stream[int]:
    workers, learner = actors(Worker, 3), actors(Learner, 1)
    items = workers.produce(Worker.sample) | gather_async(2)
    limited = items if limit is None else items | max_lag(limit, wait=wait)
    return limited | batch(1) | learner.stage(Learner.update) | sync_weights(learner, workers) | take(12)


def lags(trace: Trace, gate: str) -> list[int]:
    return [
        event.lag or 0
        for event in trace
        if isinstance(event, Delivered) and trace.nodes[event.node].name.startswith(gate)
    ]


def dropped(trace: Trace) -> int:
    return sum(isinstance(event, Dropped) for event in trace)


def test_without_it_items_get_older_than_the_limit() -> None:
    run = plan(None).run(Sim(seed=0), record=True)
    assert max(run) > 1
    assert max(lags(run.trace, "gather_async")) > 1


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("limit", [0, 1, 2])
def test_law_24_older_items_are_dropped_and_counted(limit: int, seed: int) -> None:
    run = plan(limit).run(Sim(seed=seed), record=True)
    seen = list(run)
    assert len(seen) == 12
    assert max(seen) <= limit
    assert max(lags(run.trace, "max_lag")) <= limit
    gathered, delivered = run.stats()["gather_async(2)"], run.stats()[f"max_lag({limit})"]
    assert gathered.items_out - delivered.items_out == dropped(run.trace)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_law_24_the_faster_shards_wait_and_nothing_is_dropped(limit: int, seed: int) -> None:
    run = plan(limit, wait=True).run(Sim(seed=seed), record=True)
    assert max(run) <= limit
    assert max(lags(run.trace, "max_lag")) <= limit
    assert dropped(run.trace) == 0


def test_every_shard_is_heard_while_it_waits() -> None:
    workers, learner = actors(Worker, 3), actors(Learner, 1)
    sourced = workers.produce(Worker.sample) | gather_async(2).with_source() | max_lag(1, wait=True)
    run = (sourced | take(30)).run(Sim(seed=1))
    del learner
    assert {item.source.index for item in run} == {0, 1, 2}


def test_the_lag_is_a_metric_of_the_gather() -> None:
    run = plan(2).run(Sim(seed=4), record=True)
    list(run)
    stats, seen = run.stats()["gather_async(2)"], lags(run.trace, "gather_async")
    assert stats.max_lag == max(seen)
    assert stats.mean_lag == pytest.approx(sum(seen) / len(seen))


def test_it_is_refused_where_no_lag_is_known() -> None:
    shards = actors(Worker, 2).produce(Worker.sample)
    with pytest.raises(
        PlanError, match=r"max_lag\(1\) knows the lag of what comes right from a gather_async"
    ):
        _ = shards | gather_sync() | max_lag(1)
    with pytest.raises(PlanError, match="from_items"):
        _ = from_items([1]) | max_lag(1)


@pytest.mark.parametrize(("versions", "wait"), [(-1, False), (0, True)])
def test_a_limit_that_cannot_be_kept_is_refused(versions: int, wait: bool) -> None:
    with pytest.raises(ValueError, match="must be at least"):
        max_lag(versions, wait=wait)
