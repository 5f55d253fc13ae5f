"""Every example runs as its first lines say, with a budget that shows that it works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(name: str, *arguments: str) -> list[str]:
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=EXAMPLES.parent)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.splitlines()


def test_every_example_is_tested_here() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == {"first_plan", "train_ppo", "custom_environment", "own_algorithm", "interleaved"}


@pytest.mark.parametrize("engine", ["inline", pytest.param("ray", marks=pytest.mark.ray)])
def test_first_plan_counts_every_word(engine: str) -> None:
    assert run("first_plan", engine)[-1] in (
        "{'the': 5, 'plan': 3, 'runs': 2}",
        "{'the': 5, 'runs': 2, 'plan': 3}",
    )


def test_train_ppo_reports_and_evaluates() -> None:
    lines = run("train_ppo", "4000")
    assert [line.split()[0] for line in lines[:-1]] == ["1970", "3972", "5984"] or len(lines) == 4
    assert lines[-1].startswith("greedy: ")


def test_custom_environment_is_learnt() -> None:
    last = run("custom_environment", "10")[-1]
    assert float(last.split()[2].strip(",")) >= 0.6, last  # the shortest way pays 1 - 7 x 0.05


def test_own_algorithm_improves() -> None:
    lines = run("own_algorithm", "40")
    returns = [float(line.split()[-1]) for line in lines if "nan" not in line]
    assert sum(returns[-5:]) / 5 >= 3 * returns[0], lines


def test_two_algorithms_interleaved_by_one_line_both_improve() -> None:
    lines = run("interleaved", "16000")
    for trainer in ("dqn", "ppo"):
        returns = [float(line.split()[-1]) for line in lines if line.startswith(trainer)]
        assert returns[-1] >= 2 * returns[0], lines
