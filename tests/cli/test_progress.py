"""What is shown of a run, and where which display is used."""

from __future__ import annotations

import io
import math
import os
import sys
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from pipeflow.cli.progress import LineDisplay, LiveDisplay, Silence, display, figures, say
from pipeflow.rl.batches import Report
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.tracking.records import Record

EPISODES = EpisodeStats(np.array([1.0, 4.0]), np.array([5, 5]))
REPORT = Report(2, 100, 2_500, EPISODES, {"policy_loss": -0.01234567, "entropy": 0.69, "grad_norm": 3.0})
RECORD = Record(REPORT, seconds=65.0, steps_per_second=50.0, episodes=1_234, recent_return=98.76)


def test_the_figures_are_those_that_say_whether_it_learns() -> None:
    assert figures(RECORD) == {
        "steps/s": "50",
        "episodes": "1,234",
        "return(100)": "98.76",
        "policy_loss": "-0.01235",
        "entropy": "0.69",
    }
    evaluated = replace(RECORD, evaluation=EPISODES, recent_return=math.nan)
    assert figures(evaluated)["evaluation"] == "2.5"
    assert figures(evaluated)["return(100)"] == "-"


def test_a_plain_line_has_everything_on_it(capsys: pytest.CaptureFixture[str]) -> None:
    LineDisplay(10_000).record(RECORD)
    assert capsys.readouterr().out == (
        "steps 2,500/10,000  steps/s 50  episodes 1,234  return(100) 98.76  policy_loss -0.01235"
        "  entropy 0.69  elapsed 0:01:05  remaining 0:02:30\n"
    )


def test_a_rate_that_is_not_known_says_nothing_of_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    LineDisplay(10_000).record(replace(RECORD, steps_per_second=math.nan))
    assert capsys.readouterr().out.endswith("remaining -:--:--\n")


def test_the_live_display_shows_the_latest_figures() -> None:
    screen = io.StringIO()
    shown = LiveDisplay(10_000, Console(file=screen, force_terminal=True, width=120, color_system=None))
    shown.record(RECORD)
    shown.close()
    text = screen.getvalue()
    for part in ("steps 2,500/10,000", " 25%", "return(100)", "98.76", "-0.01235", "elapsed", "remaining"):
        assert part in text


def test_where_the_output_is_no_terminal_lines_are_printed() -> None:
    assert isinstance(display(10, quiet=False), LineDisplay)


def test_a_terminal_is_drawn_on_unless_it_is_dumb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal then
    monkeypatch.setenv("TERM", "xterm")
    shown = display(10, quiet=False)
    shown.close()
    assert isinstance(shown, LiveDisplay)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(display(10, quiet=False), LineDisplay)


def test_quiet_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    shown = display(10, quiet=True)
    assert isinstance(shown, Silence)
    shown.record(RECORD)
    shown.close()
    assert capsys.readouterr().out == ""


def test_a_reader_that_is_gone_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", closefd=True) as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        say("nobody reads this")
        say("nor this")
