"""docs/operators.md: every operator of RLlib Flow has a row, and every expression in a row can be built."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import pipeflow
from pipeflow import actors, gather_sync, stage
from pipeflow.rl.batches import Advantages, Report, Trajectories
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.fragments import Aggregator, mix_in_replay
from pipeflow.rl.gradients import Gradients
from pipeflow.rl.learners.actor_critic import GradientWorker
from pipeflow.rl.learners.dqn import DQNLearner
from pipeflow.rl.learners.gradient_learner import GradientLearner
from pipeflow.rl.learners.impala import IMPALALearner
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.losses import normalise_advantages
from pipeflow.rl.minibatches import minibatch_epochs
from pipeflow.rl.multi_agent.operators import select
from pipeflow.rl.multi_agent.rollouts import MultiAgentWorker
from pipeflow.rl.n_step import n_step
from pipeflow.rl.replay import ReplayBuffer
from pipeflow.rl.returns import gae
from pipeflow.rl.rollouts import RolloutWorker

TABLE = (Path(__file__).resolve().parents[1] / "docs" / "operators.md").read_text(encoding="utf-8")


def _rows() -> list[list[str]]:
    lines = [line for line in TABLE.splitlines() if line.startswith("| ")]
    cells = [re.split(r"(?<!\\)\|", line.strip())[1:-1] for line in lines]
    return [[cell.strip() for cell in row] for row in cells if len(row) == 3 and row[0].strip() != "theirs"]


def _code(cell: str) -> list[str]:
    return [span.replace("\\|", "|") for span in re.findall(r"`(.+?)`", cell)]


ROWS = _rows()
EXPRESSIONS = [expression for row in ROWS for expression in _code(row[1])]

# All operators of its implementation: of parallel and of local iterators, and of RLlib's execution package.
THEIRS = (
    "from_items", "from_range", "from_iterators", "from_actors", "transform", "for_each", "filter", "batch",
    "flatten", "combine", "local_shuffle", "repartition", "gather_sync", "batch_across_shards",
    "gather_async", "take", "show", "union", "select_shards", "num_shards", "shards", "get_shard",
    "shuffle", "zip_with_source_actor", "duplicate", "ParallelRollouts", "AsyncGradients", "ConcatBatches",
    "SelectExperiences", "StandardizeFields", "CollectMetrics", "StandardMetricsReporting",
    "OncePerTimeInterval", "OncePerTimestepsElapsed", "TrainOneStep", "MultiGPUTrainOneStep",
    "ComputeGradients", "ApplyGradients", "AverageGradients", "UpdateTargetNetwork", "UpdateWorkerWeights",
    "StoreToReplayBuffer", "Replay", "WaitUntilTimestepsElapsed", "SimpleReplay", "MixInReplay",
    "Concurrently", "Enqueue", "Dequeue", "LearnerThread", "gather_experiences_tree_aggregation",
)  # fmt: skip


def test_every_operator_of_theirs_has_a_row() -> None:
    named = " ".join(span for row in ROWS for span in _code(row[0]))
    assert [name for name in THEIRS if not re.search(rf"\b{name}\b", named)] == []
    assert any("shared metrics" in row[0] for row in ROWS)


def test_every_row_shows_something() -> None:
    assert [row[0] for row in ROWS if not _code(row[1])] == []


class MyState:
    """A state for `expand`."""

    def push(self, item: Trajectories, /) -> Iterable[int]:
        return [item.steps]

    def finish(self) -> Iterable[int]:
        return []


def long_enough(batch: Trajectories) -> bool:
    return batch.steps > 1


def pieces(batch: Trajectories) -> list[Trajectories]:
    return [batch]


def count(batch: Trajectories) -> int:
    return batch.steps


@stage
def advantages_of(batch: Trajectories) -> Advantages:
    raise NotImplementedError


# `Any`: nothing of what is described here starts, so that no actor needs a real policy.
def _names() -> dict[str, Any]:
    """What the expressions may name; streams are new every time, since each feeds one place."""
    nothing: Any = None
    policy: Any = None
    workers = actors(GradientWorker, 4, nothing, policy, loss=nothing)
    learner, gradient_learner = actors(PPOLearner, 1, policy), actors(GradientLearner, 1, policy)
    replay = actors(ReplayBuffer, 2, 10_000)
    shards = workers.produce(RolloutWorker.sample)
    described = {
        "workers": workers,
        "learner": learner,
        "gradient_learner": gradient_learner,
        "dqn_learner": actors(DQNLearner, 1, policy),
        "impala_learner": actors(IMPALALearner, 1, policy, targets=nothing),
        "replay": replay,
        "aggregators": actors(Aggregator, 2),
        "policy": policy,
        "shards": shards,
        "advantages": shards | gae(),
        "gradients": shards | gae() | workers.stage(GradientWorker.gradients),
        "transitions": shards | n_step(1, 0.99) | gather_sync(),
        "samples": replay.produce(ReplayBuffer.sample) | gather_sync(),
        "reports": shards | gae() | gather_sync() | learner.stage(PPOLearner.update),
        "multi_agent": actors(MultiAgentWorker, 1, nothing, nothing).produce(MultiAgentWorker.sample),
        **{name: workers.produce(RolloutWorker.sample) | gather_sync() for name in ("stream", "a", "b")},
    }
    ours = (
        Aggregator, EpisodeStats, Gradients, GradientLearner, GradientWorker, DQNLearner, IMPALALearner, MyState,
        PPOLearner, ReplayBuffer, Report, RolloutWorker, Trajectories, count, gae, long_enough, minibatch_epochs,
        mix_in_replay, normalise_advantages, pieces, select,
    )  # fmt: skip
    return {**vars(pipeflow), **{thing.__name__: thing for thing in ours}, **described}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_of_the_table_can_be_built(expression: str) -> None:
    assert eval(expression, _names()) is not None


def test_what_is_said_to_be_better_names_what_is_there() -> None:
    names = _names()
    streams = [names["stream"], names["shards"], names["workers"].stage(RolloutWorker.set_weights)]
    for span in (span for row in ROWS for span in _code(row[2]) if re.fullmatch(r"\.?\w+(\(.*\))?", span)):
        name = re.sub(r"\(.*\)|^\.", "", span)
        methods = any(hasattr(stream, name) for stream in streams)
        assert methods or name in names or name in ("TypeIs", "num_async"), span
