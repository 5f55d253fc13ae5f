"""What every algorithm must learn: environment, configuration, budget, the return, and where it is from.

Apart from the program that trains them, since the slow tests train the same cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from pipeflow.algorithms.a2c import A2CConfig
from pipeflow.algorithms.a3c import A3CConfig
from pipeflow.algorithms.apex import ApexConfig
from pipeflow.algorithms.appo import APPOConfig
from pipeflow.algorithms.ddppo import DDPPOConfig
from pipeflow.algorithms.dqn import DQNConfig
from pipeflow.algorithms.impala import IMPALAConfig
from pipeflow.algorithms.maml import MAMLConfig
from pipeflow.algorithms.ppo import PPOConfig
from pipeflow.algorithms.two_trainers import TwoTrainersConfig
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.image_tasks import GRID_BREAKOUT

SEEDS = (1, 2, 3)
EngineName = Literal["inline", "ray"]


@dataclass(frozen=True)
class Case:
    """An algorithm, how it is trained, and the mean return of 20 greedy episodes that it must reach.

    algorithm: its name in the catalogue. config: of whatever class it has, hence Any. steps: environment steps
    within which the threshold is to be reached; training ends there, or, with `stop`, as soon as it is. source:
    where the threshold and the budget are from.
    """

    name: str
    algorithm: str
    config: Any
    steps: int
    threshold: float
    source: str
    engine: EngineName = "inline"
    stop: bool = True

    def command(self, seed: int) -> str:
        """The command that trains the case."""
        words = ["pipeflow train", self.algorithm, *_flags(self.config)]
        until = [f"--until-return {self.threshold:g}"] if self.stop else []
        return " ".join(
            [*words, f"--engine {self.engine}", f"--steps {self.steps}", *until, f"--seed {seed}"]
        )


def _flags(config: Any) -> list[str]:
    """The flags that tell a configuration from its class's defaults."""
    default = type(config)()
    words: list[str] = []
    for field in fields(config):
        value = getattr(config, field.name)
        if value == getattr(default, field.name) or field.name == "seed":
            continue
        flag = f"--{field.name.replace('_', '-')}"
        if isinstance(value, EnvSpec):
            words.append(f"--env {value.env}")
            if value.kwargs:
                words.append(
                    "--env-kwargs " + " ".join(f"{key}={item}" for key, item in value.kwargs.items())
                )
        elif isinstance(value, bool):
            words.append(flag if value else f"--no-{flag[2:]}")
        elif isinstance(value, tuple):
            words.append(f"{flag} {' '.join(map(str, value))}")
        else:
            words.append(f"{flag} {value}")
    return words


def _on_both(
    name: str, algorithm: str, config: Any, steps: Mapping[EngineName, int], threshold: float, source: str
) -> tuple[Case, Case]:
    inline = Case(f"{name}, inline", algorithm, config, steps["inline"], threshold, source)
    return inline, replace(inline, name=f"{name}, ray", engine="ray", steps=steps["ray"])


_SOLVED = "gymnasium's solved threshold"
_NEARLY = "nine tenths of the greatest return, 500"
# The settings of RL Baselines3 Zoo: with shorter rounds and larger minibatches some seeds learn to hover instead
# of to land, other ones on other processors.
_LUNAR = PPOConfig(
    env=EnvSpec("LunarLander-v3"),
    fragment_length=1024,
    minibatch_size=64,
    epochs=4,
    lr=3e-4,
    gamma=0.999,
    lam=0.98,
    entropy_coef=0.01,
)
_PENDULUM = PPOConfig(
    env=EnvSpec("InvertedDoublePendulum-v5"), normalise_observations=True, normalise_rewards=True
)
_BREAKOUT = IMPALAConfig(
    env=EnvSpec(GRID_BREAKOUT, {"max_steps": 500}),
    lr=5e-4,
    anneal_steps=None,
    entropy_coef=0.03,
    normalise_advantages=False,
    normalise_rewards=False,
)
_ACROBOT = PPOConfig(env=EnvSpec("Acrobot-v1"), normalise_observations=True)

CASES: tuple[Case, ...] = (
    *_on_both("A2C CartPole-v1", "a2c", A2CConfig(), {"inline": 300_000, "ray": 300_000}, 475.0, _SOLVED),
    *_on_both("A3C CartPole-v1", "a3c", A3CConfig(), {"inline": 300_000, "ray": 300_000}, 475.0, _SOLVED),
    *(
        replace(case, stop=False)
        for case in _on_both(
            "PPO CartPole-v1", "ppo", PPOConfig(), {"inline": 100_000, "ray": 100_000}, 475.0, _SOLVED
        )
    ),
    Case(
        "PPO Acrobot-v1", "ppo", _ACROBOT, 300_000, -100.0,
        "gymnasium's threshold; SLM-Lab PPO -82.5 at 500k", stop=False,
    ),
    Case(
        "PPO LunarLander-v3", "ppo", _LUNAR, 1_000_000, 200.0,
        "gymnasium's solved threshold; SLM-Lab PPO 183 at 300k", stop=False,
    ),
    Case(
        "PPO InvertedDoublePendulum-v5", "ppo", _PENDULUM, 200_000, 5_000.0,
        "clearly learns: random is about 60", stop=False,
    ),
    *_on_both(
        "DD-PPO CartPole-v1", "ddppo", DDPPOConfig(), {"inline": 100_000, "ray": 100_000}, 475.0, _SOLVED
    ),
    *_on_both(
        "IMPALA CartPole-v1", "impala", IMPALAConfig(), {"inline": 300_000, "ray": 300_000}, 450.0,
        _NEARLY,
    ),
    *(
        replace(case, stop=False)
        for case in _on_both(
            "IMPALA GridBreakout", "impala", _BREAKOUT, {"inline": 150_000, "ray": 150_000}, 5.0,
            "clearly learns: random is about 0.3",
        )
    ),
    *_on_both(
        "APPO CartPole-v1", "appo", APPOConfig(), {"inline": 300_000, "ray": 300_000}, 450.0, _NEARLY
    ),
    *_on_both(
        "DQN CartPole-v1", "dqn", DQNConfig(), {"inline": 100_000, "ray": 100_000}, 475.0,
        f"{_SOLVED}; SB3 zoo DQN 500 at 50k",
    ),
    *_on_both(
        "Ape-X CartPole-v1", "apex", ApexConfig(), {"inline": 200_000, "ray": 200_000}, 475.0, _SOLVED
    ),
    *_on_both(
        "MAML 2D navigation", "maml", MAMLConfig(), {"inline": 1_200_000, "ray": 1_200_000}, -1.1,
        "above a pretrained baseline at its best step size, which a slow test trains"
    ),
    *_on_both(
        "Two trainers, multi-agent CartPole", "two-trainers", TwoTrainersConfig(),
        {"inline": 200_000, "ray": 200_000}, 450.0, f"{_NEARLY}, of the policy that is worse",
    ),
)  # fmt: skip
