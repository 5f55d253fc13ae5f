"""Seconds from ``pipeflow train ppo`` to its first report, and of ``import pipeflow``, beside those of peers.

    python benchmarks/bench_startup.py

A peer's first report is the end of its first update, in a program that does nothing else.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import ROOT, Case, Contestant, Result, Target, measure, options, show, write
from benchmarks.peers.environments import python_of

PIPEFLOW, SB3, RLLIB = "pipeflow", "Stable-Baselines3", "RLlib"
HERE = Path(sys.executable)


def importing(python: Path, module: str) -> Contestant:
    """Seconds that an import takes in a new interpreter."""
    program = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"

    def measured() -> float:
        done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
        return float(done.stdout.split()[-1])

    return measured


def first_line(command: Sequence[str | Path], start: str) -> Contestant:
    """Seconds from a command to the first line that starts like this; it is ended then.

    Raises:
        RuntimeError: the command ended without such a line.
    """

    def measured() -> float:
        with (
            tempfile.TemporaryDirectory() as folder,
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=folder
            ) as process,
        ):
            started = time.perf_counter()
            assert process.stdout is not None
            if not any(line.startswith(start) for line in process.stdout):
                message = f"{' '.join(map(str, command))} ended before it wrote {start!r}"
                raise RuntimeError(message)
            seconds = time.perf_counter() - started
            process.terminate()
        return seconds

    return measured


def main() -> None:
    chosen = options(__doc__)
    rounds = 2 if chosen.quick else 7
    peer = ROOT / "benchmarks" / "peers" / "first_report.py"
    imports = {
        PIPEFLOW: importing(HERE, "pipeflow"),
        SB3: importing(HERE, "stable_baselines3"),
        RLLIB: importing(python_of("rllib"), "ray.rllib.algorithms.ppo"),
    }
    reports = {
        PIPEFLOW: first_line([HERE.with_name("pipeflow"), "train", "ppo"], "steps "),
        SB3: first_line([HERE, peer, "sb3"], "report"),
        RLLIB: first_line([python_of("rllib"), peer, "rllib"], "report"),
    }
    cases = [
        Case("import", "s", measure(imports, rounds)),
        Case("first report of PPO on CartPole-v1", "s", measure(reports, rounds)),
    ]
    targets = [
        Target("s for import pipeflow", cases[0].median(PIPEFLOW), "at most", 0.1),
        Target("s from pipeflow train ppo to its first report", cases[1].median(PIPEFLOW), "at most", 3.0),
    ]
    result = Result("startup", cases, targets)
    show(result)
    if not chosen.quick:
        write(result)


if __name__ == "__main__":
    main()
