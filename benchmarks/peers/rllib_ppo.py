"""RLlib on the work of `bench_ppo_cartpole`: ``rllib_ppo.py RUNNERS ITERATIONS`` prints steps a second as JSON.

With no runners it samples in the process that learns. The first iteration is not counted.
"""

from __future__ import annotations

import json
import logging
import sys
import time

import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig


def main(runners: int, iterations: int) -> None:
    torch.set_num_threads(1)
    ray.init(
        num_cpus=max(runners, 1) + 1,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    network = DefaultModelConfig(fcnet_hiddens=[64, 64], fcnet_activation="tanh", vf_share_layers=False)
    config = (
        PPOConfig()
        .environment("CartPole-v1")
        .env_runners(num_env_runners=runners, num_envs_per_env_runner=8, rollout_fragment_length=128)
        .training(
            train_batch_size_per_learner=8 * 128 * max(runners, 1),
            minibatch_size=256,
            num_epochs=4,
            lr=2.5e-4,
            gamma=0.99,
            lambda_=0.95,
            clip_param=0.2,
            vf_clip_param=float("inf"),
            vf_loss_coeff=0.5,
            entropy_coeff=0.0,
            grad_clip=0.5,
            use_kl_loss=False,
        )
        .rl_module(model_config=network)
        .debugging(seed=1)
    )
    algorithm = config.build_algo()
    before = steps = int(algorithm.train()["num_env_steps_sampled_lifetime"])
    started = time.perf_counter()
    for _ in range(iterations):
        steps = int(algorithm.train()["num_env_steps_sampled_lifetime"])
    seconds = time.perf_counter() - started
    algorithm.stop()
    ray.shutdown()
    print(json.dumps({"rate": (steps - before) / seconds}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
