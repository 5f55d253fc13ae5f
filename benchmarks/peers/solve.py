"""One training until CartPole-v1 is solved: ``solve.py CONTESTANT SEED`` prints its seconds and steps as JSON.

Solved is a mean return of 475 of 20 greedy episodes, played whenever 5,000 more steps were done. The clock
starts when the algorithm is about to be built, and stands still while they are played. A library is imported
when it is known which, since no environment has all of them.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))

ENV = "CartPole-v1"
THRESHOLD = 475.0
EPISODES = 20
EVERY_STEPS = 5_000
MOST_STEPS = 200_000


class Trial:
    """The clock and the judge of one training."""

    def __init__(self) -> None:
        self._solved = False
        self._steps = 0
        self._due = EVERY_STEPS
        self._playing = 0.0
        self._started = time.perf_counter()

    def ends(self, steps: int, play: Callable[[], float]) -> bool:
        """Whether the training is over after so many steps. play: the mean return of greedy episodes."""
        self._steps = steps
        if steps >= self._due:
            self._due = steps - steps % EVERY_STEPS + EVERY_STEPS
            started = time.perf_counter()
            self._solved = play() >= THRESHOLD
            self._playing += time.perf_counter() - started
        return self._solved or steps >= MOST_STEPS

    def outcome(self) -> dict[str, float]:
        """Seconds and steps so far, and 1 for a solved environment."""
        seconds = time.perf_counter() - self._started - self._playing
        return {"seconds": seconds, "steps": self._steps, "solved": float(self._solved)}


def mean_return(act: Callable[[NDArray[np.float32]], NDArray[np.int64]], seed: int) -> float:
    """Of the first episode in each of 20 environments."""
    envs = gymnasium.make_vec(ENV, EPISODES, vectorization_mode="sync")
    observations, _ = envs.reset(seed=seed)
    returns, running = np.zeros(EPISODES), np.ones(EPISODES, np.bool_)
    while running.any():
        observations, rewards, terminated, truncated, _ = envs.step(act(observations))
        returns += rewards * running
        running &= ~(terminated | truncated)
    envs.close()
    return float(returns.mean())


def pipeflow(name: str, seed: int) -> Trial:
    """An algorithm of pipeflow with its default configuration, in one process."""
    from pipeflow.algorithms.catalogue import entry_of
    from pipeflow.cli.learners import Learners

    algorithm = entry_of(name).load()
    trial = Trial()
    config = algorithm.configuration(seed=seed)
    plan = algorithm.plan(config)
    learners = Learners(plan)
    with plan.run("inline") as run:

        def play() -> float:
            return float(algorithm.play(config, learners.weights(run), EPISODES, seed).mean_return)

        for report in run:
            if trial.ends(report.lifetime_steps, play):
                break
    return trial


def sb3_ppo(seed: int) -> Trial:
    """PPO of Stable-Baselines3 with the settings that its zoo recommends."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    trial = Trial()
    model = PPO(
        "MlpPolicy", make_vec_env(ENV, 8, seed=seed), n_steps=32, batch_size=256, n_epochs=20, gamma=0.98,
        gae_lambda=0.8, learning_rate=lambda left: 0.001 * left, clip_range=lambda left: 0.2 * left,
        seed=seed, device="cpu",
    )  # fmt: skip
    return _sb3(trial, model, 100_000, seed)


def sb3_dqn(seed: int) -> Trial:
    """DQN of Stable-Baselines3 with the settings that its zoo recommends."""
    from stable_baselines3 import DQN

    trial = Trial()
    model = DQN(
        "MlpPolicy", ENV, learning_rate=2.3e-3, batch_size=64, buffer_size=100_000, learning_starts=1000,
        gamma=0.99, target_update_interval=10, train_freq=256, gradient_steps=128, exploration_fraction=0.16,
        exploration_final_eps=0.04, policy_kwargs={"net_arch": [256, 256]}, seed=seed, device="cpu",
    )  # fmt: skip
    return _sb3(trial, model, 50_000, seed)


def _sb3(trial: Trial, model, steps: int, seed: int) -> Trial:
    from stable_baselines3.common.callbacks import BaseCallback

    class Judged(BaseCallback):
        def _on_step(self) -> bool:
            def act(observations: NDArray[np.float32]) -> NDArray[np.int64]:
                return model.predict(observations, deterministic=True)[0]

            return not trial.ends(self.num_timesteps, partial(mean_return, act, seed + self.num_timesteps))

    model.learn(total_timesteps=steps, callback=Judged())
    return trial


def rllib_ppo(seed: int) -> Trial:
    """PPO of RLlib with the settings of its tuned example for CartPole, sampling in the process that learns."""
    import torch
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    trial = Trial()
    network = DefaultModelConfig(fcnet_hiddens=[32], fcnet_activation="linear", vf_share_layers=True)
    config = (
        PPOConfig()
        .environment(ENV)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=8)
        .training(lr=0.0003, num_epochs=6, vf_loss_coeff=0.01)
        .rl_module(model_config=network)
        .debugging(seed=seed)
    )
    algorithm = config.build_algo()

    def act(observations: NDArray[np.float32]) -> NDArray[np.int64]:
        with torch.inference_mode():
            outputs = algorithm.get_module().forward_inference({"obs": torch.as_tensor(observations)})
        return outputs["action_dist_inputs"].argmax(-1).numpy()

    steps = 0
    while not trial.ends(steps, partial(mean_return, act, seed + steps)):
        steps = int(algorithm.train()["num_env_steps_sampled_lifetime"])
    return trial


CONTESTANTS: dict[str, Callable[[int], Trial]] = {
    "pipeflow-ppo": partial(pipeflow, "ppo"),
    "pipeflow-dqn": partial(pipeflow, "dqn"),
    "sb3-ppo": sb3_ppo,
    "sb3-dqn": sb3_dqn,
    "rllib-ppo": rllib_ppo,
}

if __name__ == "__main__":
    print(json.dumps(CONTESTANTS[sys.argv[1]](int(sys.argv[2])).outcome()))
