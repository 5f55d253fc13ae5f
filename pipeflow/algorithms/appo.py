"""APPO: IMPALA's dataflow around PPO's clipped epochs, with a target network (Luo et al. 2020).

Reads top to bottom: the configuration, then the plan. The loss is `pipeflow.rl.learners.appo`'s; how fragments
become batches is IMPALA's (`pipeflow.algorithms.impala`).
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from pipeflow.algorithms.impala import (
    IMPALAConfig,
    batches_of,
    policy_of,
    targets_of,
    workers_of,
)
from pipeflow.algorithms.settings import Count, NotNegative, Positive
from pipeflow.dsl import Stream, actors, gather_async, sync_weights
from pipeflow.rl.batches import Report
from pipeflow.rl.devices import on_device
from pipeflow.rl.learners.appo import APPOLearner
from pipeflow.rl.rollouts import RolloutWorker
from pipeflow.rl.schedules import annealed

__all__ = ["APPOConfig", "appo", "policy_of"]


@dataclass(frozen=True)
class APPOConfig(IMPALAConfig):
    """Every number that APPO depends on: those of IMPALA, and of the clipped epochs."""

    fragment_length: Count = 64
    """Vector steps of a fragment."""
    fragments: Count = 2
    """Fragments in a batch of the learner."""
    lr: Positive = 1e-3
    """Adam's learning rate."""
    epochs: Count = 4
    """Passes over a batch."""
    minibatch_size: Count = 256
    """Environment steps in an optimiser step."""
    clip: Positive = 0.2
    """How far the probability ratio to the target network may move before its gradient is cut off."""
    target_every: Count = 1
    """Updates after which the target network becomes what the network is."""
    kl_coef: NotNegative = 0.0
    """Weight of the KL divergence from the target network, at first."""
    kl_target: Positive | None = None
    """KL divergence that its weight is adapted to; None keeps the weight."""

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.memory != "none":
            message = (
                f"APPO shuffles rows, which a policy with memory {self.memory!r} cannot be given; use IMPALA"
            )
            raise ValueError(message)


def appo(config: APPOConfig) -> Stream[Report]:
    """APPO's plan: IMPALA's, with another learner."""
    workers = workers_of(config)
    learner = on_device(config.device, actors(
        APPOLearner, 1, policy_of(config), targets=targets_of(config), lr=annealed(config.lr, config.anneal_steps),
        epochs=config.epochs, minibatch_size=config.minibatch_size, clip=config.clip,
        target_every=config.target_every, value_coef=config.value_coef, entropy_coef=config.entropy_coef,
        kl_coef=config.kl_coef, kl_target=config.kl_target, max_grad_norm=config.max_grad_norm,
        normalise_advantages=config.normalise_advantages, seed=config.seed, device=config.device,
        threads=config.threads,
    ))  # fmt: skip
    return (
        batches_of(workers.produce(RolloutWorker.sample) | gather_async(config.in_flight), config)
        | learner.stage(APPOLearner.update).max_in_flight(config.queue)
        | sync_weights(learner, workers, every=config.broadcast_every)
    )
