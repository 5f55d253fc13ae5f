"""A peer's PPO on CartPole-v1 up to the end of its first update: ``first_report.py sb3``, or ``rllib``.

The same work as pipeflow's default: 2,048 steps, 8 epochs, minibatches of 256, two hidden layers of 64. The
peer is imported when it is known which, since the two are in different environments.
"""

from __future__ import annotations

import sys


def sb3() -> None:
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    model = PPO(
        "MlpPolicy", make_vec_env("CartPole-v1", 16), n_steps=128, n_epochs=8, batch_size=256, device="cpu"
    )
    model.learn(total_timesteps=2048)


def rllib() -> None:
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    config = (
        PPOConfig()
        .environment("CartPole-v1")
        .env_runners(num_env_runners=0, num_envs_per_env_runner=16)
        .training(train_batch_size_per_learner=2048, num_epochs=8, minibatch_size=256)
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[64, 64], fcnet_activation="tanh"))
    )
    config.build_algo().train()


if __name__ == "__main__":
    {"sb3": sb3, "rllib": rllib}[sys.argv[1]]()
    print("report", flush=True)
