"""What the command line's tests have in common: a training that takes a moment, and processes."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeflow.algorithms.ppo import PPOConfig

# Two workers of 2 x 32 steps an update.
FLAGS = (
    "--num-envs",
    "2",
    "--fragment-length",
    "32",
    "--minibatch-size",
    "64",
    "--epochs",
    "2",
    "--hidden",
    "8",
)
CONFIG = PPOConfig(num_envs=2, fragment_length=32, minibatch_size=64, epochs=2, hidden=(8,))
STEPS_PER_UPDATE = 128

TIME_COLUMNS = {"seconds", "steps_per_second"}

ROOT = Path(__file__).resolve().parents[2]
# The command where its script is not installed, from any folder.
COMMAND = (sys.executable, "-m", "pipeflow.cli")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def run_python(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, to its end."""
    return subprocess.run(
        [sys.executable, *words], check=False, capture_output=True, text=True, env=ENVIRONMENT
    )


def run_command(*words: str, **environment: str) -> str:
    """What the command prints, run with these variables in a process of its own, which ends what it started."""
    done = subprocess.run(
        [*COMMAND, *words], check=False, capture_output=True, text=True, env=ENVIRONMENT | environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows_of(run: Path) -> list[dict[str, str]]:
    """The rows of a run's progress.csv."""
    with (run / "progress.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))
