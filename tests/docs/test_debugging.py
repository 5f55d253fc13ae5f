"""The page on debugging is true: its programs print what it shows, in one script as a reader would type them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipeflow.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")
# Each program, and what the page says that it prints, if anything.
PROGRAMS = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", PAGE, re.DOTALL)
_MARK = "--- the next program ---"
_DEBUGGED = "breakpoint()"

# The programs are one file that is run piece by piece, so that the lines that they name are those of the file.
_RUNNER = """\
import sys

names = {"__name__": "__main__"}
lines = 0
for program in open("plan.py", encoding="utf-8").read().split("# next\\n"):
    exec(compile("\\n" * lines + program, "plan.py", "exec"), names)
    lines += program.count("\\n")
    print(sys.argv[1])
"""


def without_times(text: str) -> str:
    """What a run prints, but for its seconds and the shares that depend on them."""
    text = re.sub(r" *\d+\.\d{3}", " #", text)
    return re.sub(r" *\d+%", " %", re.sub(r", busy # s", "", text))


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What each program prints; two commands are typed where one stops in the debugger."""
    folder = tmp_path_factory.mktemp("debugging")
    (folder / "plan.py").write_text("# next\n".join(program for program, _ in PROGRAMS), encoding="utf-8")
    (folder / "runner.py").write_text(_RUNNER)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONBREAKPOINT"}
    ended = subprocess.run(
        [sys.executable, "runner.py", _MARK],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        input="p 'item', item\ncontinue\n",
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split(f"{_MARK}\n")[:-1]


@pytest.mark.parametrize("index", [index for index, (_, shown) in enumerate(PROGRAMS) if shown])
def test_a_program_prints_what_the_page_shows(printed: list[str], index: int) -> None:
    assert without_times(printed[index]) == without_times(PROGRAMS[index][1])


def test_the_program_that_stops_does_so_with_the_item_at_hand(printed: list[str]) -> None:
    (stopped,) = (text for text, (program, _) in zip(printed, PROGRAMS, strict=True) if _DEBUGGED in program)
    assert "('item', 0)" in stopped
    assert stopped.endswith("0\n")


def test_every_program_shows_what_it_prints() -> None:
    assert [_DEBUGGED in program for program, shown in PROGRAMS if not shown] == [True]


def commands() -> list[str]:
    return [line.strip() for line in PAGE.splitlines() if line.startswith("    pipeflow ")]


def test_the_commands_are_these() -> None:
    assert [command.split()[1] for command in commands()] == ["simulate", "train", "graph"]


def test_the_simulation_is_the_one_that_the_readme_runs() -> None:
    assert f"\n    {commands()[0]}\n" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", commands()[1:])
def test_every_other_command_runs(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command.split()[1:]) == 0
    if "--profile" in command:
        (folder,) = Path("runs").iterdir()
        assert (folder / "profile.txt").read_text(encoding="utf-8") in capsys.readouterr().out


@pytest.mark.slow
def test_the_programs_type_check(tmp_path: Path) -> None:
    (tmp_path / "plan.py").write_text("".join(program for program, _ in PROGRAMS), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    checked = subprocess.run(
        [*command, str(tmp_path / "plan.py")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout
