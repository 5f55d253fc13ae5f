"""The batches, actors and functions that the plans of these tests are made of."""

from __future__ import annotations

from pipeflow.dsl import Ended, NotReady, Sourced


class Trajectories:
    pass


class Advantages:
    @property
    def steps(self) -> int:
        return 1

    @classmethod
    def concatenate(cls, items: list[Advantages], /) -> Advantages:
        return items[0]


class Worker:
    def sample(self) -> Trajectories | NotReady | Ended:
        return Trajectories()

    def score(self, item: Trajectories) -> Advantages:
        return Advantages()

    def set_weights(self, weights: int, /) -> None:
        pass


class RemoteWorker(Worker):
    pass


class Learner:
    def update(self, item: Advantages) -> float:
        return 0.0

    def weights(self) -> int:
        return 0


class Targeted:
    def update_target(self) -> None:
        pass


class Quiet:
    pass


class Counted:
    """Its steps are made where no annotation says so."""

    def __init__(self, item: Trajectories) -> None:
        self.steps = 1


def counted(item: Trajectories) -> Counted:
    return Counted(item)


def advantages(item: Trajectories) -> Advantages:
    return Advantages()


def steps_of(item: Advantages) -> int:
    return item.steps


def report(item: Advantages) -> float:
    return 0.0


def of_source(item: Sourced[Trajectories, Worker]) -> Trajectories:
    return item.item
