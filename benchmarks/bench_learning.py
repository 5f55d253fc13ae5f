"""Train each case with several seeds, evaluate greedily, and write curves, table and picture for the documents.

    python benchmarks/bench_learning.py                 all cases
    python benchmarks/bench_learning.py acrobot         the cases whose names contain a word
    python benchmarks/bench_learning.py --draw          only draw what benchmarks/results/learning.json holds

The thresholds come from the sources named with the cases; the slow tests train the same cases.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import torch

from pipeflow import group_of
from pipeflow.algorithms.ppo import PPOConfig, ppo
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.evaluation import evaluate
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.policies import PolicySpec

RESULTS = Path(__file__).parent / "results" / "learning.json"
README = Path(__file__).parents[1] / "README.md"
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "learning.svg"


@dataclass(frozen=True)
class Case:
    """An environment, how it is trained, and the mean return of 20 greedy episodes that it must reach."""

    name: str
    config: PPOConfig
    steps: int
    threshold: float
    source: str
    engine: Literal["inline", "ray"] = "inline"


_CARTPOLE = PPOConfig(env=EnvSpec("CartPole-v1"))
_ACROBOT = PPOConfig(env=EnvSpec("Acrobot-v1"), normalise_observations=True)
_LUNAR = PPOConfig(
    env=EnvSpec("LunarLander-v3"),
    fragment_length=256,
    lam=0.98,
    epochs=6,
    entropy_coef=0.01,
    anneal_steps=600_000,
    normalise_observations=True,
    normalise_rewards=True,
)
_PENDULUM = PPOConfig(
    env=EnvSpec("InvertedDoublePendulum-v5"), normalise_observations=True, normalise_rewards=True
)

CASES = (
    Case("CartPole-v1, inline", _CARTPOLE, 100_000, 475.0, "gymnasium's solved threshold"),
    Case("CartPole-v1, ray", _CARTPOLE, 100_000, 475.0, "gymnasium's solved threshold", engine="ray"),
    Case("Acrobot-v1", _ACROBOT, 300_000, -100.0, "gymnasium's threshold; SLM-Lab PPO -82.5 at 500k"),
    Case("LunarLander-v3", _LUNAR, 600_000, 200.0, "gymnasium's solved threshold; SLM-Lab PPO 183 at 300k"),
    Case("InvertedDoublePendulum-v5", _PENDULUM, 200_000, 5_000.0, "clearly learns: random is about 60"),
)


@dataclass(frozen=True)
class Outcome:
    """One seed of a case: mean return of the latest 100 training episodes against steps, and the evaluation."""

    seed: int
    steps: list[int]
    returns: list[float]
    evaluation: float
    seconds: float


def train(case: Case, seed: int) -> Outcome:
    """Train a case with one seed."""
    config = replace(case.config, seed=seed)
    plan = ppo(config)
    learner = group_of(plan, PPOLearner)
    latest: deque[float] = deque(maxlen=100)
    steps: list[int] = []
    returns: list[float] = []
    started = time.perf_counter()
    with plan.until(lambda report: report.lifetime_steps >= case.steps).run(case.engine) as run:
        for report in run:
            latest.extend(report.episodes.returns.tolist())
            if latest:
                steps.append(report.lifetime_steps)
                returns.append(round(sum(latest) / len(latest), 2))
        weights = run.ask(learner, PPOLearner.weights)[0]
    seconds = time.perf_counter() - started
    played = evaluate(config.env, PolicySpec.for_env(config.env), weights, episodes=20, seed=seed)
    return Outcome(seed, steps, returns, round(played.mean_return, 2), round(seconds, 1))


def draw(results: dict[str, list[Outcome]]) -> None:
    """The curves as one SVG picture, a panel a case."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "pipeflow"  # the same data give the same file
    figure, axes = plt.subplots(1, len(results), figsize=(4 * len(results), 3), squeeze=False)
    for axis, (name, outcomes) in zip(axes[0], results.items(), strict=True):
        for outcome in outcomes:
            axis.plot(outcome.steps, outcome.returns, linewidth=1.2, label=f"seed {outcome.seed}")
        threshold = next(case.threshold for case in CASES if case.name == name)
        axis.axhline(threshold, linestyle="--", linewidth=0.8, color="grey")
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("environment steps")
        axis.ticklabel_format(axis="x", style="sci", scilimits=(0, 0))
    axes[0][0].set_ylabel("mean return of 100 episodes")
    axes[0][0].legend(fontsize=8)
    figure.tight_layout()
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, metadata={"Date": None})


def table(results: dict[str, list[Outcome]]) -> str:
    """The results as a Markdown table."""
    lines = [
        "| case | steps | greedy return by seed | threshold | where it comes from |",
        "|---|---:|---|---:|---|",
    ]
    for case in CASES:
        outcomes = results.get(case.name, [])
        if outcomes:
            evaluations = ", ".join(f"{outcome.evaluation:g}" for outcome in outcomes)
            cells = (case.name, f"{case.steps:,}", evaluations, f"{case.threshold:g}", case.source)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def write_table(results: dict[str, list[Outcome]]) -> None:
    """Put the table into the README, between its two markers."""
    before, rest = README.read_text().split("<!-- learning -->")
    _, after = rest.split("<!-- /learning -->")
    README.write_text(f"{before}<!-- learning -->\n{table(results)}\n<!-- /learning -->{after}")


def load() -> dict[str, list[Outcome]]:
    """What the results file holds, by case."""
    if not RESULTS.exists():
        return {}
    stored = json.loads(RESULTS.read_text())["results"]
    return {name: [Outcome(**outcome) for outcome in outcomes] for name, outcomes in stored.items()}


def save(results: dict[str, list[Outcome]]) -> None:
    """Write the results with what they were made by."""
    about = {
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, 2 cores",
        "python": platform.python_version(),
        **{name: version(name) for name in ("pipeflow", "torch", "ray", "gymnasium", "numpy")},
    }
    ordered = {case.name: results[case.name] for case in CASES if case.name in results}
    stored = {name: [asdict(outcome) for outcome in outcomes] for name, outcomes in ordered.items()}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps({"about": about, "results": stored}) + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("word", nargs="?", default="", help="run only the cases whose names contain it")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--draw", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    results = load()
    for case in CASES:
        if options.draw or options.word.lower() not in case.name.lower():
            continue
        results[case.name] = []
        for seed in range(1, options.seeds + 1):
            outcome = train(case, seed)
            results[case.name].append(outcome)
            print(f"{case.name}, seed {seed}: {outcome.evaluation:g} in {outcome.seconds} s", flush=True)
            save(results)
    draw({case.name: results[case.name] for case in CASES if case.name in results})
    write_table(results)
    print(table(results))


if __name__ == "__main__":
    main()
