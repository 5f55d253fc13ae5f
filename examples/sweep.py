"""A sweep with Ray Tune: it runs a plan in each of its actors, and stops early those that learn slowly.

python examples/sweep.py [trials] [folder]    (pip install 'pipeflow[tune]')
"""

from __future__ import annotations

import sys
from pathlib import Path

from ray import tune
from ray.tune.schedulers import ASHAScheduler

from pipeflow import take
from pipeflow.algorithms.ppo import PPOConfig, ppo
from pipeflow.rl.environments import EnvSpec

UPDATES = 20
SPACE = {"lr": tune.loguniform(1e-5, 1e-2), "epochs": tune.choice([2, 4, 8])}


def trial(chosen: dict[str, float]) -> None:
    """Train with what Tune has drawn from the space, and tell it after every update how that goes."""
    config = PPOConfig(env=EnvSpec("CartPole-v1"), lr=chosen["lr"], epochs=int(chosen["epochs"]), seed=1)
    for report in (ppo(config) | take(UPDATES)).run("inline"):
        tune.report({"mean_return": report.episodes.mean_return, "steps": report.lifetime_steps})


def main(trials: int, folder: Path) -> None:
    tuner = tune.Tuner(
        trial,
        param_space=SPACE,
        tune_config=tune.TuneConfig(
            metric="mean_return", mode="max", num_samples=trials,
            scheduler=ASHAScheduler(max_t=UPDATES, grace_period=5),
        ),
        run_config=tune.RunConfig(name="sweep", storage_path=str(folder.resolve()), verbose=0),
    )  # fmt: skip
    results = tuner.fit()
    for trained in (*results, results.get_best_result()):  # the best one once more, at the end
        print(f"{trained.config} returned {trained.metrics['mean_return']:.1f}")


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(int(given.get(1, 8)), Path(given.get(2, "runs")))
