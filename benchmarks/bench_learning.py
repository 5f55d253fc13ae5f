"""Train each case with several seeds, evaluate greedily, and write curves, tables and picture for the documents.

    python benchmarks/bench_learning.py                 all cases
    python benchmarks/bench_learning.py acrobot         the cases whose names contain a word
    python benchmarks/bench_learning.py --draw          only draw what benchmarks/results/learning.json holds

The cases are in `learning_cases`.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import partial
from importlib.metadata import version
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import thinned
from benchmarks.learning_cases import CASES, SEEDS, Case
from pipeflow.algorithms.catalogue import entry_of
from pipeflow.cli.goal import EPISODES, Goal
from pipeflow.cli.learners import Learners
from pipeflow.tracking.records import Recorder

POINTS = 150  # of a curve
RESULTS = Path(__file__).parent / "results" / "learning.json"
README = Path(__file__).parents[1] / "README.md"
DOCUMENT = Path(__file__).parents[1] / "docs" / "results.md"
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "learning.svg"


@dataclass(frozen=True)
class Outcome:
    """One seed of a case: mean return of the latest 100 training episodes against steps, and the evaluation.

    trained: environment steps at which training ended.
    """

    seed: int
    steps: list[int]
    returns: list[float]
    evaluation: float
    seconds: float
    trained: int


def train(case: Case, seed: int) -> Outcome:
    """Train a case with one seed."""
    algorithm = entry_of(case.algorithm).load()
    config = replace(case.config, seed=seed)
    plan = algorithm.plan(config)
    learners = Learners(plan)
    goal = Goal(case.threshold, partial(algorithm.play, config), seed)
    recorder = Recorder()
    latest: deque[float] = deque(maxlen=100)
    steps: list[int] = []
    returns: list[float] = []
    trained = 0
    started = time.perf_counter()
    with plan.run(case.engine) as run:
        for report in run:
            trained = report.lifetime_steps
            latest.extend(report.episodes.returns.tolist())
            if latest:
                steps.append(trained)
                returns.append(round(sum(latest) / len(latest), 2))
            last = trained >= case.steps
            if case.stop and goal.is_due(recorder.take(report), last):
                goal.evaluate(learners.weights(run), trained)
            if last or goal.reached:
                break
        weights = learners.weights(run)
    seconds = time.perf_counter() - started
    if case.stop:
        assert goal.evaluation is not None
        evaluation = goal.evaluation.mean_return
    else:
        evaluation = algorithm.play(config, weights, EPISODES, seed).mean_return
    return Outcome(
        seed,
        thinned(steps, POINTS),
        thinned(returns, POINTS),
        round(evaluation, 2),
        seconds=round(seconds, 1),
        trained=trained,
    )


def draw(results: dict[str, list[Outcome]]) -> None:
    """The curves of the runs in one process as one SVG picture, a panel a case."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "pipeflow"  # the same data give the same file
    shown = [case for case in CASES if case.engine == "inline" and case.name in results]
    columns = 4
    rows = -(-len(shown) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4 * columns, 3 * rows), squeeze=False)
    for axis in axes.flat[len(shown) :]:
        axis.axis("off")
    for axis, case in zip(axes.flat, shown, strict=False):
        for outcome in results[case.name]:
            axis.plot(outcome.steps, outcome.returns, linewidth=1.2, label=f"seed {outcome.seed}")
        axis.axhline(case.threshold, linestyle="--", linewidth=0.8, color="grey")
        axis.set_title(case.name.removesuffix(", inline"), fontsize=10)
        axis.set_xlabel("environment steps")
        axis.ticklabel_format(axis="x", style="sci", scilimits=(0, 0))
    for row in axes:
        row[0].set_ylabel("mean return of 100 episodes")
    axes[0][0].legend(fontsize=8)
    figure.tight_layout()
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, metadata={"Date": None})


def table(results: dict[str, list[Outcome]]) -> str:
    """The results as a Markdown table."""
    lines = [
        "| case | threshold | greedy return by seed | after steps | budget |",
        "|---|---:|---|---|---:|",
    ]
    for case in CASES:
        outcomes = results.get(case.name, [])
        if outcomes:
            evaluations = ", ".join(f"{outcome.evaluation:g}" for outcome in outcomes)
            trained = ", ".join(f"{outcome.trained:,}" for outcome in outcomes)
            cells = (case.name, f"{case.threshold:g}", evaluations, trained, f"{case.steps:,}")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def commands(results: dict[str, list[Outcome]]) -> str:
    """For every case the command that trains it, and where its threshold is from, as a Markdown table."""
    lines = ["| case | threshold from | command |", "|---|---|---|"]
    lines += [
        f"| {case.name} | {case.source} | `{case.command(SEEDS[0])}` |"
        for case in CASES
        if case.name in results
    ]
    return "\n".join(lines)


def write_table(results: dict[str, list[Outcome]]) -> None:
    """Put the tables into the documents, between their markers."""
    _put(README, "learning", table(results))
    _put(DOCUMENT, "learning", table(results))
    _put(DOCUMENT, "commands", commands(results))


def _put(document: Path, name: str, text: str) -> None:
    before, rest = document.read_text().split(f"<!-- {name} -->")
    _, after = rest.split(f"<!-- /{name} -->")
    document.write_text(f"{before}<!-- {name} -->\n{text}\n<!-- /{name} -->{after}")


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
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    parser.add_argument("--draw", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    for case in CASES:
        if options.draw or options.word.lower() not in case.name.lower():
            continue
        outcomes = []
        for seed in SEEDS[: options.seeds]:
            outcome = train(case, seed)
            outcomes.append(outcome)
            told = f"{outcome.evaluation:g} after {outcome.trained:,} steps in {outcome.seconds} s"
            print(f"{case.name}, seed {seed}: {told}", flush=True)
            results = load()  # read anew, since others may run beside this one
            results[case.name] = outcomes
            save(results)
    results = load()
    draw(results)
    write_table(results)
    print(table(results))


if __name__ == "__main__":
    main()
