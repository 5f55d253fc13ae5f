"""PPO on CartPole-v1, the same work for every library: environment steps a second of the whole training loop.

    python benchmarks/bench_ppo_cartpole.py

The work: 8 environments x 128 steps an update, 4 epochs of minibatches of 256, networks of 2 x 64 tanh for policy
and value, Adam at 2.5e-4, all else as Stable-Baselines3 has it. Then with 2 workers on Ray, with more environments
in one process (16 steps each an update, in 4 minibatches), and the learning curves of the same work.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import ray
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.curves import curve_of, sb3_curve_of
from benchmarks.harness import (
    Case,
    Contestant,
    Json,
    Result,
    Target,
    measure,
    options,
    show,
    subject,
    thinned,
    write,
)
from benchmarks.peers.environments import python_of
from pipeflow.algorithms.ppo import PPOConfig, ppo
from pipeflow.rl.batches import Report

PIPEFLOW, SB3, RLLIB = "pipeflow", "Stable-Baselines3", "RLlib"
WORK = PPOConfig(workers=1, epochs=4, lr=2.5e-4)
WIDE = (64, 256, 1024)
WIDE_STEPS = 16
SEEDS = (1, 2, 3)
CURVE_STEPS = 100_000
POINTS = 50  # of a curve
SECONDS = 4.0  # that a contestant works for, about


def wide(num_envs: int) -> PPOConfig:
    """The work with more environments."""
    minibatch = num_envs * WIDE_STEPS // 4
    return PPOConfig(
        workers=1,
        epochs=4,
        lr=2.5e-4,
        num_envs=num_envs,
        fragment_length=WIDE_STEPS,
        minibatch_size=minibatch,
    )


def ours(reports: Iterator[Report], least_updates: int) -> Contestant:
    """Steps a second of a run that goes on from round to round."""

    def measured() -> float:
        next(reports)
        started, steps, updates = time.perf_counter(), 0, 0
        while updates < least_updates or time.perf_counter() - started < SECONDS:
            steps += next(reports).steps
            updates += 1
        return steps / (time.perf_counter() - started)

    return measured


def sb3_model(config: PPOConfig) -> PPO:
    return PPO(
        "MlpPolicy", make_vec_env("CartPole-v1", config.num_envs, seed=config.seed), seed=config.seed,
        n_steps=config.fragment_length, batch_size=config.minibatch_size, n_epochs=config.epochs,
        learning_rate=config.lr, gamma=config.gamma, gae_lambda=config.lam, clip_range=config.clip,
        ent_coef=config.entropy_coef, vf_coef=config.value_coef, max_grad_norm=0.5, device="cpu",
    )  # fmt: skip


def sb3(config: PPOConfig) -> Contestant:
    """Steps a second of a model that goes on from round to round."""
    model = sb3_model(config)
    update = config.steps_per_update

    def measured() -> float:
        updates = max(2, round(8_000 * SECONDS / update))
        started, before = time.perf_counter(), model.num_timesteps
        model.learn(updates * update, reset_num_timesteps=False)
        return (model.num_timesteps - before) / (time.perf_counter() - started)

    return measured


def rllib(runners: int, iterations: int) -> float:
    """Steps a second in a process and an environment of its own."""
    return subject(python_of("rllib"), "peers/rllib_ppo.py", str(runners), str(iterations))["rate"]


def main() -> None:
    chosen = options(__doc__)
    torch.set_num_threads(1)
    rounds = 2 if chosen.quick else 5
    iterations = 3 if chosen.quick else 10
    cases: list[Case] = []
    with ppo(WORK).run("inline") as run:
        contestants: dict[str, Contestant] = {PIPEFLOW: ours(run, 2), SB3: sb3(WORK)}
        if not chosen.quick:
            contestants[RLLIB] = partial(rllib, 0, iterations)
        cases.append(Case("inline, 8 environments", "steps/s", measure(contestants, rounds)))
    for num_envs in WIDE[:1] if chosen.quick else WIDE:
        config = wide(num_envs)
        with ppo(config).run("inline") as run:
            figures = measure({PIPEFLOW: ours(run, 2), SB3: sb3(config)}, min(rounds, 3))
        cases.append(Case(f"inline, {num_envs} environments", "steps/s", figures))
    if not chosen.quick:
        ray.init(
            address="local",
            num_cpus=3,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
        with ppo(PPOConfig(workers=2, epochs=4, lr=2.5e-4)).run("ray") as run:
            contestants = {PIPEFLOW: ours(run, 2), RLLIB: partial(rllib, 2, iterations)}
            cases.append(Case("ray, 2 workers of 8 environments", "steps/s", measure(contestants, 3)))
        ray.shutdown()
    details: dict[str, Json] = {}
    targets: list[Target] = []
    if not chosen.quick:
        curves: dict[str, Json] = {
            PIPEFLOW: [
                thinned(curve_of(ppo(replace(WORK, seed=seed)), CURVE_STEPS), POINTS) for seed in SEEDS
            ],
            SB3: [
                thinned(sb3_curve_of(sb3_model(replace(WORK, seed=seed)), CURVE_STEPS), POINTS)
                for seed in SEEDS
            ],
        }
        details["curves of steps and mean return of 100 episodes, by seed"] = curves
        targets.append(
            Target("times the rate of RLlib, inline", cases[0].ratio(PIPEFLOW, RLLIB), "at least", 8.0)
        )
    targets.insert(
        0,
        Target("times the rate of Stable-Baselines3, inline", cases[0].ratio(PIPEFLOW, SB3), "at least", 3.0),
    )
    result = Result("ppo_cartpole", cases, targets, details)
    show(result)
    if not chosen.quick:
        write(result)


if __name__ == "__main__":
    main()
