"""Model-agnostic meta-learning (Finn et al. 2017): weights from which a few gradient steps solve a new task.

Reads top to bottom: the configuration, then the plan, in which the inner loop is one repeated stage in the
workers. The outer objective is `pipeflow.rl.meta.learner`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from pipeflow.algorithms.settings import Count, Fraction, Positive, Settings, WholeNumber
from pipeflow.dsl import Stream, actors, batch, gather_sync, sync_weights
from pipeflow.rl.batches import Report, Weights
from pipeflow.rl.devices import on_device
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.evaluation import evaluate
from pipeflow.rl.meta.learner import MAMLLearner
from pipeflow.rl.meta.point_navigation import POINT_NAVIGATION
from pipeflow.rl.meta.tasks import TaskDistribution
from pipeflow.rl.meta.worker import MAMLWorker
from pipeflow.rl.policies import Activation, PolicySpec
from pipeflow.rl.seeding import derive_seed


@dataclass(frozen=True)
class MAMLConfig(Settings):
    """Every number that MAML depends on."""

    env: EnvSpec = field(default_factory=lambda: EnvSpec(POINT_NAVIGATION, {"horizon": 50}))
    """The environment that all tasks share."""
    task_ranges: Mapping[str, tuple[float, float]] = field(
        default_factory=lambda: {"goal_x": (-0.5, 0.5), "goal_y": (-0.5, 0.5)}
    )
    """Arguments of the environment that a task draws uniformly, with their lowest and highest value."""
    workers: Count = 2
    """Workers, each an actor of its own; a round is one task of each."""
    tasks_per_update: Count = 10
    """Tasks in an update, a multiple of the workers."""
    inner_steps: Count = 1
    """Gradient steps that adapt to a task."""
    step_size: Positive = 0.1
    """Of the gradient steps that adapt."""
    first_order: bool = False
    """Whether the update treats the gradients of those steps as constants."""
    num_envs: Count = 40
    """Environments of a task that a worker steps as one."""
    fragment_length: Count = 50
    """Vector steps of a task before adapting, and after every step of it."""
    gamma: Fraction = 0.99
    """Discount of a reward one step later."""
    lr: Positive = 3e-3
    """Adam's learning rate."""
    epochs: Count = 5
    """Optimiser steps on the tasks of an update."""
    clip: Positive = 0.3
    """How far the probability ratio after adaptation may move before its gradient is cut off."""
    max_grad_norm: Positive | None = 0.5
    """Norm to which gradients are clipped; None leaves them."""
    hidden: tuple[Count, ...] = (64, 64)
    """Widths of the policy's hidden layers."""
    activation: Activation = "tanh"
    """Nonlinearity between them."""
    seed: WholeNumber = 0
    """From which every worker, task and network gets a stream of its own."""
    device: str = "cpu"
    """Where the learner computes, such as "cuda"."""
    threads: Count = 1
    """Threads that torch computes with in every actor."""

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tasks_per_update % self.workers:
            message = (
                f"tasks_per_update {self.tasks_per_update} is no multiple of the {self.workers} workers, so an "
                "update would end within a round, whose other tasks would then be of old weights"
            )
            raise ValueError(message)
        TaskDistribution(self.env, self.task_ranges)  # refuses a range that is none

    @property
    def tasks(self) -> TaskDistribution:
        """What tasks are drawn from."""
        return TaskDistribution(self.env, self.task_ranges)


def maml(config: MAMLConfig) -> Stream[Report]:
    """MAML's plan: every update is on tasks that were begun with the newest weights, and gives one report."""
    policy = policy_of(config)
    workers = actors(
        MAMLWorker, config.workers, config.tasks, policy, num_envs=config.num_envs,
        fragment_length=config.fragment_length, gamma=config.gamma, step_size=config.step_size,
        seed=config.seed, threads=config.threads,
    )  # fmt: skip
    learner = on_device(config.device, actors(
        MAMLLearner, 1, policy, step_size=config.step_size, first_order=config.first_order, lr=config.lr,
        epochs=config.epochs, clip=config.clip, max_grad_norm=config.max_grad_norm, seed=config.seed,
        device=config.device, threads=config.threads,
    ))  # fmt: skip
    return (
        workers.produce(MAMLWorker.sample_task)
        | workers.stage(MAMLWorker.adapt).repeat(config.inner_steps)
        | gather_sync()
        | batch(config.tasks_per_update)
        | learner.stage(MAMLLearner.meta_update)
        | sync_weights(learner, workers)
    )


def policy_of(config: MAMLConfig) -> PolicySpec:
    """The policy that the plan trains; an evaluation of its weights needs the same.

    Its value head is not used: the baseline is fitted to each task.
    """
    return PolicySpec.for_env(
        config.env, hidden=config.hidden, activation=config.activation, shared_trunk=True
    )


def held_out_tasks(config: MAMLConfig, count: int, seed: int) -> list[EnvSpec]:
    """Tasks of the same distribution that no training draws, whatever its seed."""
    return [config.tasks.sample(derive_seed(seed, "held out", number)) for number in range(count)]


class AdaptationReturns(NamedTuple):
    """Mean return of greedy episodes in each of K tasks, [K] float64, before adaptation and after it."""

    before: NDArray[np.float64]
    after: NDArray[np.float64]


def adaptation_returns(
    config: MAMLConfig, weights: Weights, tasks: Sequence[EnvSpec], seed: int, episodes: int = 8
) -> AdaptationReturns:
    """What weights earn in tasks as they are, and after adapting to each as the configuration says.

    seed: of the rollouts that are adapted on, and of the episodes. episodes: of a task, before and after.
    """
    policy = policy_of(config)
    before, after = np.zeros(len(tasks)), np.zeros(len(tasks))
    for number, (task, own) in enumerate(zip(tasks, _adapted(config, weights, tasks, seed), strict=True)):
        before[number] = evaluate(task, policy, weights, episodes, seed).mean_return
        after[number] = evaluate(task, policy, own, episodes, seed).mean_return
    return AdaptationReturns(before, after)


def play(config: MAMLConfig, weights: Sequence[Weights], episodes: int, seed: int) -> EpisodeStats:
    """Greedy episodes, each in a held-out task that the weights of the one learner were adapted to.

    Raises ValueError if no episode is asked for.
    """
    if episodes < 1:
        raise ValueError(f"an evaluation needs at least 1 episode, got {episodes}")
    policy, tasks = policy_of(config), held_out_tasks(config, episodes, seed)
    adapted = _adapted(config, weights[0], tasks, seed)
    played = [evaluate(task, policy, own, 1, seed) for task, own in zip(tasks, adapted, strict=True)]
    return reduce(EpisodeStats.merged, played)


def _adapted(config: MAMLConfig, weights: Weights, tasks: Sequence[EnvSpec], seed: int) -> Iterator[Weights]:
    """The weights after adapting to each of the tasks, none of which knows of the others."""
    worker = MAMLWorker(
        config.tasks, policy_of(config), num_envs=config.num_envs, fragment_length=config.fragment_length,
        gamma=config.gamma, step_size=config.step_size, seed=seed, index=0, threads=config.threads,
    )  # fmt: skip
    worker.set_weights(weights)
    for number, task in enumerate(tasks):
        found = worker.explore(task, derive_seed(seed, "adaptation", number))
        for _ in range(config.inner_steps - 1):
            found = worker.adapt(found)
        yield worker.adapted(found)
