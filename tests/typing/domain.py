"""A small reinforcement-learning domain for the type tests: nominal items, actors that do almost nothing.

Apart from `pipeflow.rl`, so that the types of the DSL are tested without numpy and torch, in milliseconds, and
with names short enough to be read in an error. Everything runs: the accepted plans are executed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from typing_extensions import TypeIs, override

from pipeflow import Ended, NotReady, Stage, actors, current_shard, stage

# Items


@dataclass(frozen=True)
class Weights:
    version: int


@dataclass(frozen=True)
class Experience:
    """What every kind of batch below has: it counts its steps and can be joined with others of its type."""

    steps: int
    version: int = 0

    @classmethod
    def concatenate(cls, items: Sequence[Self], /) -> Self:
        return cls(sum(item.steps for item in items), min(item.version for item in items))


@dataclass(frozen=True)
class Trajectories(Experience):
    """As a worker collects them."""


@dataclass(frozen=True)
class Advantages(Experience):
    """With the advantages that policy-gradient learners take."""


@dataclass(frozen=True)
class StandardisedAdvantages(Advantages):
    """A subclass, for variance."""


@dataclass(frozen=True)
class Transitions(Experience):
    """As a replay buffer keeps them."""


@dataclass(frozen=True)
class Gradients:
    steps: int

    @classmethod
    def mean(cls, items: Sequence[Self], /) -> Self:
        return cls(sum(item.steps for item in items) // len(items))


@dataclass(frozen=True)
class Report:
    loss: float
    weights: Weights


@dataclass(frozen=True)
class TDReport:
    error: float
    priorities: Priorities


@dataclass(frozen=True)
class Priorities:
    values: tuple[float, ...]


# Stages


def gae(discount: float = 0.99, trace: float = 0.95) -> Stage[Trajectories, Advantages]:
    """A stage factory, like those of `pipeflow.rl`."""

    def advantages(sampled: Trajectories) -> Advantages:
        return Advantages(sampled.steps, sampled.version)

    return stage(advantages)


@stage
def standardise(batch: Advantages) -> StandardisedAdvantages:
    return StandardisedAdvantages(batch.steps, batch.version)


def transitions(sampled: Trajectories) -> Transitions:
    return Transitions(sampled.steps, sampled.version)


def count(sampled: Experience) -> int:
    return sampled.steps


def loss_of(report: Report) -> float:
    return report.loss


def is_report(item: Report | TDReport) -> TypeIs[Report]:
    return isinstance(item, Report)


def long_enough(sampled: Experience) -> bool:
    return sampled.steps >= 1


class NStep:
    """An expansion with state: the last step is held back until the next batch comes."""

    def __init__(self) -> None:
        self._held = 0

    def push(self, item: Trajectories, /) -> Iterable[Transitions]:
        made, self._held = self._held + item.steps - 1, 1
        yield Transitions(made)

    def finish(self) -> Iterable[Transitions]:
        return (Transitions(self._held),) if self._held else ()


# Actors


class RolloutWorker:
    def __init__(self, seed: int, *, steps: int = 4) -> None:
        self.seed = seed + current_shard()
        self.steps = steps
        self.acting = Weights(0)
        self.left = 1

    def sample(self) -> Trajectories:
        return Trajectories(self.steps, self.acting.version)

    def sample_one(self) -> Trajectories | NotReady | Ended:
        self.left -= 1
        return Ended() if self.left < 0 else Trajectories(self.steps, self.acting.version)

    def gradients(self, batch: Advantages) -> Gradients:
        return Gradients(batch.steps)

    def apply(self, gradients: Gradients) -> Report:
        return Report(1.0 / gradients.steps, self.acting)

    def adapt(self, batch: Trajectories) -> Trajectories:
        return Trajectories(batch.steps, batch.version + 1)

    def set_weights(self, weights: Weights, /) -> None:
        self.acting = weights


class EvaluationWorker(RolloutWorker):
    """A subclass, for variance."""

    @override
    def sample(self) -> Trajectories:
        return Trajectories(1, self.acting.version)


class PPOLearner:
    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self.version = 0

    def update(self, batch: Advantages) -> Report:
        self.version += 1
        return Report(1.0 / self.version, Weights(self.version))

    def update_vtrace(self, batch: Trajectories) -> Report:
        self.version += 1
        return Report(1.0 / self.version, Weights(self.version))

    def apply(self, gradients: Gradients) -> Report:
        self.version += 1
        return Report(1.0 / self.version, Weights(self.version))

    def weights(self) -> Weights:
        return Weights(self.version)


class DQNLearner:
    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self.version = 0

    def update(self, batch: Transitions) -> TDReport:
        self.version += 1
        return TDReport(1.0 / self.version, Priorities((1.0,) * batch.steps))

    def update_target(self) -> None:
        pass

    def weights(self) -> Weights:
        return Weights(self.version)


class Aggregator:
    """Joins batches apart from whoever learns from them."""

    def concatenate(self, items: list[Trajectories]) -> Trajectories:
        return Trajectories.concatenate(items)


class Replay:
    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.kept: list[Transitions] = []

    def add(self, batch: Transitions) -> int:
        self.kept.append(batch)
        return len(self.kept)

    def sample(self) -> Transitions | NotReady:
        return self.kept[-1] if self.kept else NotReady()

    def update_priorities(self, priorities: Priorities, /) -> None:
        pass


# Descriptions of actors, as plans use them


workers = actors(RolloutWorker, 2, 7, steps=8)
evaluators = actors(EvaluationWorker, 1, 7)
learner = actors(PPOLearner, 1, learning_rate=3e-4)
dqn_learner = actors(DQNLearner, 1, 1e-3)
replay = actors(Replay, 2, 100)
aggregators = actors(Aggregator, 2)
