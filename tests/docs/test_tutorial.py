"""The tutorial does what it says: every file that it has the reader type, every command, every printed line.

Apart from the test that runs the code of all pages, block by block: here a lesson is followed as a reader follows
it, in an empty folder. What the commands print is written into the lessons by

    python -m tests.docs.test_tutorial [LESSON ...]
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "tutorial"

_BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"# (\w+\.py)\n")
_MEASURED = re.compile(r"-?\d+\.\d+|\d+%")


@dataclass(frozen=True)
class Written:
    """A block of code: a file of this name, or the next lines of it."""

    name: str
    code: str


@dataclass(frozen=True)
class Typed:
    """A command, and what is printed below it."""

    command: str
    printed: str


def steps(page: str) -> Iterator[Written | Typed]:
    """What a page has its reader do, in order."""
    name = ""
    for kind, text in _BLOCK.findall(page):
        if kind == "python":
            begins = _FILE.match(text)
            name = begins[1] if begins else name
            yield Written(name, text)
        else:
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, printed = part.partition("\n")
                yield Typed(command, printed)


def follow(lesson: str, folder: Path) -> list[tuple[str, str, str]]:
    """Do in a folder what a lesson says; each command, what is shown below it, and what it printed."""
    done: list[tuple[str, str, str]] = []
    files: dict[str, str] = {}
    for step in steps(text_of(lesson)):
        if isinstance(step, Written):
            # A part that stands under its own text is two blank lines below the part before it.
            files[step.name] = f"{files[step.name]}\n\n{step.code}" if step.name in files else step.code
            (folder / step.name).write_text(files[step.name], encoding="utf-8")
        else:
            done.append((step.command, step.printed, run_in(folder, step.command)))
    return done


def run_in(folder: Path, command: str) -> str:
    """What a command prints that is typed in a folder."""
    return subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
    ).stdout


def text_of(lesson: str) -> str:
    """A lesson's page; the last goes on with the files of the one before, so they stand first."""
    text = (TUTORIAL / f"{lesson}.md").read_text(encoding="utf-8")
    if lesson != "checkpoints":
        return text
    before = _BLOCK.sub(lambda block: block[0] if block[1] == "python" else "", text_of("own_algorithm"))
    return before + text


def exact(printed: str) -> str:
    """What is the same on every machine: shares and numbers with a decimal point are measured, widths follow."""
    return re.sub(r" +", " ", _MEASURED.sub("<number>", printed)).strip()


LESSONS = {
    "first_plan": (),
    "types": (pytest.mark.slow,),  # mypy reads all that pipeflow imports
    "actors": (),
    "gathers": (),
    "unions": (),
    "weights": (),
    "own_algorithm": (pytest.mark.slow, pytest.mark.ray),
    "checkpoints": (pytest.mark.slow,),
}


@pytest.mark.parametrize("lesson", [pytest.param(lesson, marks=marks) for lesson, marks in LESSONS.items()])
def test_a_lesson_prints_what_it_shows(lesson: str, tmp_path: Path) -> None:
    done = follow(lesson, tmp_path)
    assert done, "a lesson has commands"
    for command, shown, printed in done:
        assert exact(printed) == exact(shown), command


def test_the_index_has_every_lesson_in_order_and_they_take_an_hour() -> None:
    rows = re.findall(
        r"^\| (?:\[(\d)\. .+?\]\((\w+)\.md\)|this page) \| (\d+) \|", text_of("index"), re.MULTILINE
    )
    assert [number for number, _, _ in rows[1:]] == [str(number) for number in range(1, len(rows))]
    assert [lesson for _, lesson, _ in rows[1:]] == list(LESSONS)
    assert {page.stem for page in TUTORIAL.glob("*.md")} == {"index", *LESSONS}
    assert sum(int(minutes) for _, _, minutes in rows) <= 60
    for (number, lesson, _), (_, following, _) in pairwise(rows[1:]):
        assert text_of(lesson).startswith(f"# {number}. ")
        assert text_of(lesson).rstrip().endswith(f"]({following}.md).")


def test_a_step_is_under_forty_lines() -> None:
    long = [
        (page.stem, step.name, len(step.code.splitlines()))
        for page in TUTORIAL.glob("*.md")
        for step in steps(page.read_text(encoding="utf-8"))
        if isinstance(step, Written) and len(step.code.splitlines()) >= 40
    ]
    assert long == []


def test_the_returns_that_are_shown_improve_and_are_the_same_on_ray() -> None:
    shown = [step.printed for step in steps(text_of("own_algorithm")) if isinstance(step, Typed)]
    curves = [re.findall(r"mean return (-?[\d.]+)", printed) for printed in shown]
    inline, on_ray = [[float(value) for value in curve] for curve in curves if curve]
    assert inline == on_ray
    assert inline[-1] > -40 > -200 > inline[0]


def _environment(folder: Path) -> Mapping[str, str]:
    """That of a shell in which pipeflow, from this tree, and mypy are installed."""
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "MYPYPATH": str(ROOT / "typings"),
        "MYPY_CACHE_DIR": str(folder / "cache"),
        "RAY_USAGE_STATS_ENABLED": "0",
    }


def write(lesson: str, folder: Path) -> None:
    """Put what the commands of a lesson print below them."""
    page = TUTORIAL / f"{lesson}.md"
    text, place = page.read_text(encoding="utf-8"), 0
    for command, shown, printed in follow(lesson, folder):
        start = text.index(f"$ {command}\n", place) + len(f"$ {command}\n")
        text = text[:start] + printed + text[start + len(shown) :]
        place = start + len(printed)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:] or LESSONS:
        with TemporaryDirectory() as empty:
            write(name, Path(empty))
