"""How the benchmarks measure: contestants take turns in one run, and what counts are medians and paired ratios.

What a result says in the documents is in `documents`; environments for peers that do not fit this one are made by
`peers.environments`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Literal, TypeAlias, TypeVar

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
VERSIONS = ("pipeflow", "numpy", "torch", "ray", "gymnasium", "stable-baselines3")

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
T = TypeVar("T")

Contestant: TypeAlias = Callable[[], float]


@dataclass(frozen=True)
class Case:
    """One thing that was measured.

    Attributes:
        name: what was done, such as "4 actors, trivial items".
        unit: of the figures, such as "us an item".
        figures: of every contestant, one a round; those of a round were measured one after the other.
    """

    name: str
    unit: str
    figures: Mapping[str, Sequence[float]]

    def median(self, contestant: str) -> float:
        """The median of a contestant's figures."""
        return median(self.figures[contestant])

    def ratio(self, contestant: str, other: str) -> float:
        """The median over the rounds of one contestant's figure divided by the other's in the same round.

        Paired by rounds, so that what disturbs the machine for longer than a round disturbs both.
        """
        pairs = zip(self.figures[contestant], self.figures[other], strict=True)
        return median(mine / theirs for mine, theirs in pairs)


@dataclass(frozen=True)
class Target:
    """What a benchmark must show.

    Attributes:
        text: the claim without its bound, such as "times the seconds of a hand-written loop".
        figure: what was measured, in the units of the bound.
        limit: whether the bound is the most or the least that the figure may be.
        bound: the bound.
    """

    text: str
    figure: float
    limit: Literal["at most", "at least"]
    bound: float

    @property
    def reached(self) -> bool:
        """Whether the figure, as it is shown, keeps to the bound."""
        figure = significant(self.figure)
        return figure <= self.bound if self.limit == "at most" else figure >= self.bound


@dataclass(frozen=True)
class Result:
    """What one benchmark measured.

    Attributes:
        name: the benchmark's, as in ``bench_NAME.py``.
        cases: what was measured.
        targets: what must be shown.
        details: whatever else belongs to the figures: learning curves, the breakdown of an iteration.
    """

    name: str
    cases: Sequence[Case]
    targets: Sequence[Target] = ()
    details: Mapping[str, Json] = field(default_factory=dict)


def measure(
    contestants: Mapping[str, Contestant], rounds: int, *, warm_up: bool = True
) -> dict[str, list[float]]:
    """Let every contestant measure itself once a round, each round begun by another one.

    Args:
        contestants: functions that do the work once and return its figure.
        rounds: how many figures each contestant gives.
        warm_up: whether a first round is not counted.
    """
    names = list(contestants)
    figures: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(-1 if warm_up else 0, rounds):
        first = max(turn, 0) % len(names)
        for name in names[first:] + names[:first]:
            figure = contestants[name]()
            if turn >= 0:
                figures[name].append(figure)
    return figures


def subject(python: Path, program: str, *arguments: str, timeout: float = 600.0) -> dict[str, float]:
    """Run a program in an environment of its own, and read the figures that its last line holds as JSON.

    Args:
        python: the interpreter of the environment; ``Path(sys.executable)`` for this one.
        program: the program's path below ``benchmarks``.
        *arguments: what it is given.
        timeout: seconds after which it is ended.

    Raises:
        RuntimeError: it failed; the message ends with what it wrote.
    """
    command = [str(python), str(ROOT / "benchmarks" / program), *arguments]
    single = {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env={**os.environ, **single}
    )
    if done.returncode != 0:
        message = f"{' '.join(command)} ended with {done.returncode}: {(done.stderr or done.stdout)[-3000:]}"
        raise RuntimeError(message)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def options(description: str | None, arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line of every benchmark: ``quick`` for a look that stores nothing."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--quick", action="store_true", help="measure less, and store nothing")
    return parser.parse_args(arguments)


def show(result: Result) -> None:
    """Print the medians, how the first contestant compares with each other one, and the targets."""
    for case in result.cases:
        mine, *others = case.figures
        ratios = [f"{case.ratio(mine, other):.3f} × {other}" for other in others]
        medians = [f"{who} {significant(case.median(who)):,g}" for who in case.figures]
        print(f"{case.name}: {', '.join(medians)} {case.unit}{'; ' * bool(ratios)}{', '.join(ratios)}")
    for target in result.targets:
        verdict = "reached" if target.reached else "NOT reached"
        print(f"{significant(target.figure):g} {target.text}; {target.limit} {target.bound:g}: {verdict}")


def write(result: Result, folder: Path = RESULTS) -> Path:
    """Store a result with what it was made by, and return the file."""
    stored = {
        "name": result.name,
        "about": _about(),
        "cases": [
            {
                "name": case.name,
                "unit": case.unit,
                "figures": {who: [significant(f) for f in case.figures[who]] for who in case.figures},
                "medians": {who: significant(case.median(who)) for who in case.figures},
            }
            for case in result.cases
        ],
        "targets": [
            {**asdict(target), "figure": significant(target.figure), "reached": target.reached}
            for target in result.targets
        ],
        "details": dict(result.details),
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.name}.json"
    path.write_text(json.dumps(stored, indent=1) + "\n")
    return path


def read(path: Path) -> Result:
    """A result that `write` stored."""
    stored = json.loads(path.read_text())
    return Result(
        name=stored["name"],
        cases=[Case(case["name"], case["unit"], case["figures"]) for case in stored["cases"]],
        targets=[
            Target(target["text"], target["figure"], target["limit"], target["bound"])
            for target in stored["targets"]
        ],
        details=stored["details"],
    )


def thinned(curve: list[T], points: int) -> list[T]:
    """At most so many points of a curve, the last among them."""
    stride = max(1, -(-len(curve) // points))
    return curve[::-stride][::-1]


def significant(figure: float, digits: int = 4) -> float:
    """A figure to so many significant digits."""
    return float(f"{figure:.{digits}g}") if math.isfinite(figure) else figure


def _about() -> dict[str, Json]:
    """What the figures depend on beside the code."""
    versions: dict[str, Json] = {}
    for name in VERSIONS:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "date": date.today().isoformat(),
        "command": " ".join(["python", os.path.relpath(sys.argv[0], ROOT), *sys.argv[1:]]),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
    }


def _processor() -> str:
    """The processor's model, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
