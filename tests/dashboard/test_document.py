"""What docs/dashboard.md shows is true: its program runs, its commands are understood, its pictures are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipeflow.cli import main
from pipeflow.dashboard.recording import SNAPSHOTS
from pipeflow.dashboard.views import EVENTS

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "dashboard.md").read_text()


def test_the_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(program.replace("40_000", "1"), "dashboard.md", "exec"), {"__name__": "document"})
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\n", capsys.readouterr().out)


def test_the_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("time.sleep", interrupt)
    lines = [line for line in TEXT.splitlines() if line.startswith("    pipeflow ")]
    commands = [line.partition("#")[0].replace("runs/...", "run").split()[1:] for line in lines]
    assert [command[0] for command in commands] == ["train", "show"]
    assert main([*commands[0], "--steps", "1", "--logdir", "run"]) == 0
    assert main(commands[1]) == 0
    assert "ppo on CartPole-v1: http://127.0.0.1:" in capsys.readouterr().out


def test_the_pictures_are_there_and_small() -> None:
    pictures = re.findall(r"\]\((images/[^)]+)\)", TEXT)
    assert len(pictures) == 3
    for picture in pictures:
        assert 0 < (DOCS / picture).stat().st_size < 200_000


def test_the_bounds_are_those_of_the_code() -> None:
    assert f"{SNAPSHOTS:,} snapshots" in " ".join(TEXT.split())
    assert f"the newest {EVENTS}." in TEXT
