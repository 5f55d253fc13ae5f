"""`breakpoint()` in a stage opens Python's debugger in the frame of the stage, in scripts run as a user would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """\
import sys

from pipeflow import actors, gather_sync


class Worker:
    def make(self) -> int:
        made = 20
        STOP_IN_ACTOR
        return made


def halve(item: int) -> int:
    STOP_IN_STAGE
    return item // 2


def show(item: int) -> None:
    STOP_ON_DRIVER
    print("shown", item)


def main() -> None:
    workers = actors(Worker, 1).restarts(5).on_error("restart")
    with (workers.produce(Worker.make) | halve | gather_sync()).tap(show).run(sys.argv[1]) as run:
        print("delivered", next(run))


if __name__ == "__main__":
    main()
"""
STOPS = ("STOP_IN_ACTOR", "STOP_IN_STAGE", "STOP_ON_DRIVER")


def debugged(
    folder: Path, *stops: str, typed: list[str], engine: str = "inline"
) -> subprocess.CompletedProcess[str]:
    """Run the script with breakpoints at those stops, and type lines into the debugger."""
    text = SCRIPT
    for stop in STOPS:
        text = text.replace(stop, "breakpoint()" if stop in stops else "pass")
    (folder / "script.py").write_text(text)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONBREAKPOINT"}
    return subprocess.run(
        [sys.executable, "script.py", engine],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT)},
        input="\n".join(typed) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("stop", "expression", "frame"),
    [
        ("STOP_IN_ACTOR", "made", "make"),
        ("STOP_IN_STAGE", "item", "halve"),
        ("STOP_ON_DRIVER", "item", "show"),
    ],
)
def test_it_stops_in_the_stage_and_goes_on(tmp_path: Path, stop: str, expression: str, frame: str) -> None:
    ended = debugged(tmp_path, stop, typed=[f"p 'value', {expression}", "where", "continue"])
    assert ended.returncode == 0, ended.stderr
    value = 10 if stop == "STOP_ON_DRIVER" else 20
    assert f"('value', {value})" in ended.stdout
    frames = re.findall(r"script\.py\(\d+\)(\S+?)\(", ended.stdout.replace("<module>", "module"))
    # Where it stopped, and from the traceback: the user's frames from the outermost to the stage.
    assert frames == [frame, "module", "main", frame]
    assert "delivered 10" in ended.stdout


def test_who_quits_the_debugger_ends_the_run_whatever_failures_mean_to_the_group(tmp_path: Path) -> None:
    ended = debugged(tmp_path, "STOP_IN_STAGE", typed=["quit"])
    assert ended.returncode == 1
    assert "stage halve failed on item 0 in Worker[0]: BdbQuit" in ended.stderr
    assert ended.stdout.count("(Pdb)") == 1
    assert "restart" not in ended.stderr


@pytest.mark.slow
@pytest.mark.ray
def test_on_ray_it_stops_on_the_driver_and_an_actor_passes_it_by(tmp_path: Path) -> None:
    ended = debugged(tmp_path, *STOPS, typed=["p 'value', item", "continue"], engine="ray")
    assert ended.returncode == 0, ended.stderr
    assert "('value', 10)" in ended.stdout
    assert ended.stdout.count("(Pdb)") == 2
    assert "delivered 10" in ended.stdout
