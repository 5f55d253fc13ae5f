"""A configuration of every algorithm that takes a moment: what holds of all plans is tested on these."""

from __future__ import annotations

from typing import Any

from pipeflow import Stream
from pipeflow.algorithms.a2c import A2CConfig
from pipeflow.algorithms.a3c import A3CConfig
from pipeflow.algorithms.apex import ApexConfig
from pipeflow.algorithms.appo import APPOConfig
from pipeflow.algorithms.catalogue import entry_of
from pipeflow.algorithms.ddppo import DDPPOConfig
from pipeflow.algorithms.dqn import DQNConfig
from pipeflow.algorithms.impala import IMPALAConfig
from pipeflow.algorithms.maml import MAMLConfig
from pipeflow.algorithms.ppo import PPOConfig
from pipeflow.algorithms.two_trainers import TwoTrainersConfig
from pipeflow.rl.batches import Report

# `Any`: configurations of several classes, by the name in the catalogue.
SMALL: dict[str, Any] = {
    "a2c": A2CConfig(num_envs=2, fragment_length=8, hidden=(8,), seed=3),
    "a3c": A3CConfig(num_envs=2, fragment_length=8, hidden=(8,), seed=3),
    "ppo": PPOConfig(num_envs=2, fragment_length=16, minibatch_size=32, epochs=2, hidden=(8,), seed=3),
    "ddppo": DDPPOConfig(num_envs=2, fragment_length=16, epochs=2, minibatches=2, hidden=(8,), seed=3),
    "impala": IMPALAConfig(num_envs=2, fragment_length=8, hidden=(8,), seed=3),
    "appo": APPOConfig(num_envs=2, fragment_length=8, hidden=(8,), seed=3),
    "dqn": DQNConfig(
        num_envs=2, fragment_length=4, learning_starts=16, batch_size=8, intensity=2.0, hidden=(8,), seed=3
    ),
    "apex": ApexConfig(
        num_envs=2, fragment_length=4, learning_starts=16, batch_size=8, hidden=(8,), seed=3
    ),
    "maml": MAMLConfig(
        num_envs=2, fragment_length=8, tasks_per_update=2, inner_steps=2, epochs=1, hidden=(8,), seed=3
    ),
    "two-trainers": TwoTrainersConfig(
        num_envs=2, fragment_length=8, minibatch_size=16, epochs=1, batch_size=8, learning_starts=16,
        hidden=(8,), seed=3,
    ),
}  # fmt: skip


def small_plan(name: str) -> Stream[Report]:
    """The plan of an algorithm's small configuration."""
    algorithm = entry_of(name).load()
    return algorithm.plan(SMALL[name])
