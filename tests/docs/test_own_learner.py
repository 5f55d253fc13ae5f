"""The guide to a learner of one's own: its file is without faults, and learns what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, read_page
from tests.docs.test_tutorial import Typed, exact, run_in, steps

NAME = "guides/own_learner.md"
TYPED = [step for step in steps((DOCS / NAME).read_text(encoding="utf-8")) if isinstance(step, Typed)]


@pytest.mark.slow
def test_the_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    # The last block is a second file.
    *first, _ = (block.code for block in read_page(NAME).blocks if block.is_program)
    (tmp_path / "ddpg.py").write_text("\n\n".join(first), encoding="utf-8")
    printed = [run_in(tmp_path, step.command) for step in TYPED]
    assert [exact(text) for text in printed] == [exact(step.printed) for step in TYPED]
    assert returns(printed[-1])[-1] > -250


def test_the_returns_that_are_shown_are_those_of_a_pendulum_that_is_held_up() -> None:
    shown = returns(TYPED[-1].printed)
    assert shown[0] < -1000
    assert shown[-1] > -200


def returns(printed: str) -> list[float]:
    return [float(value) for value in re.findall(r"mean return (-[\d.]+)", printed)]
