"""What the README says is true: its program runs and type-checks, its error is mypy's, its tables are current."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import bench_learning
from pipeflow.cli.entry import main

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
PROGRAM = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]


def between(marker: str) -> str:
    return README.split(f"<!-- {marker} -->")[1].split(f"<!-- /{marker} -->")[0].strip()


def test_the_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    short = PROGRAM.replace("40_000", "5_000")
    exec(compile(short, "README.md", "exec"), {"__name__": "readme"})
    assert (
        len(capsys.readouterr().out.splitlines()) == 2
    )  # two rounds of 4 workers x 8 environments x 128 steps


def test_the_program_type_checks_and_without_gae_the_error_is_the_one_shown(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(PROGRAM)
    bad.write_text("".join(line for line in PROGRAM.splitlines(keepends=True) if "| gae(" not in line))
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    checked = subprocess.run([*command, str(good), str(bad)], cwd=ROOT, capture_output=True, text=True)
    errors = [line for line in checked.stdout.splitlines() if ": error: " in line]
    line = next(n for n, text in enumerate(bad.read_text().splitlines(), 1) if "| Advantages.concat" in text)
    shown = between("type-error").strip("`\n")
    assert [error.partition("bad.py:")[2] for error in errors] == [f"{line}: {shown}"]


def test_the_table_of_plan_lines_is_the_counted_one() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "count_plan_lines.py"), "--check", "README.md"]
    counted = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert counted.returncode == 0, counted.stderr


def test_the_learning_table_comes_from_the_committed_results() -> None:
    assert between("learning") == bench_learning.table(bench_learning.load())


def commands() -> list[str]:
    """The lines of the README that call pipeflow, without the comments behind them."""
    return [
        line.partition("#")[0].strip() for line in README.splitlines() if line.startswith("    pipeflow ")
    ]


@pytest.mark.ray
def test_every_command_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str], ray_runtime: None) -> None:
    named = [command.split()[1] for command in commands()]
    assert named == ["train", "train", "train", "eval", "graph", "check", "list", "simulate"]
    for index, command in enumerate(commands()):
        words = command.replace("runs/...", str(tmp_path / "0")).split()[1:]
        if "--resume" in words:
            words[-1] = "4000"
        elif words[0] == "train":
            # With a budget of one update, which cannot reach the return that is asked for.
            words += ["--steps", "2000", "--logdir", str(tmp_path / str(index))]
        elif words[0] == "check":
            words.append("--no-types")  # mypy reads the examples anyway
        wants_return = "--until-return" in words or "--resume" in words  # of a run that wants it, too
        assert main(words) == (1 if wants_return else 0), capsys.readouterr().err


def test_every_make_target_that_is_named_exists() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"make ([a-z]+)", README)) <= set(targets)
