"""A recording keeps the run's figures at most once a second, stays small, and never stands in the run's way."""

from __future__ import annotations

import logging
import math
import shutil
from pathlib import Path

import pytest

from pipeflow.dashboard import recording as recording_module
from pipeflow.dashboard.encoding import NotARecording
from pipeflow.dashboard.recording import Recording, read
from pipeflow.dashboard.views import EVENTS, thinned
from pipeflow.dsl import Stream
from pipeflow.lowering.run import Run
from tests.dashboard.plans import Clock, recorded, small_plan, snapshot

WARNING = logging.getLogger("pipeflow.lowering.actors")


def started(
    run: Run[dict[str, float]], plan: Stream[dict[str, float]], clock: Clock, file: Path | None = None
) -> Recording:
    return Recording(plan.node, run.stats, "small", file, clock=clock, now=clock)


def test_a_run_is_kept_as_it_went(tmp_path: Path) -> None:
    view = recorded(tmp_path / "kept.jsonl", items=3)
    assert [(one.seconds, one.steps) for one in view.snapshots] == [
        (1.0, 10),
        (2.0, 20),
        (3.0, 30),
        (3.0, 30),
    ]
    assert [one.curves.get("loss") for one in view.snapshots] == [0.5, 0.5, 0.25, None]
    assert [node.items_out for node in view.snapshots[-1].nodes[3:]] == [3, 3]
    assert view.snapshots[1].nodes[3].per_second == pytest.approx(1.0)
    assert view.ending is not None
    assert (view.ending.how, view.ending.time) == ("finished", 1003.0)


def test_the_file_says_the_same(tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    view = recorded(file, items=3)
    found = read(file)
    assert (found.graph, found.events, found.ending) == (view.graph, view.events, view.ending)
    assert [one.steps for one in found.snapshots] == [one.steps for one in view.snapshots]
    assert list(tmp_path.iterdir()) == [file]


def test_items_that_come_faster_are_joined_and_none_of_their_curves_is_lost() -> None:
    plan, clock = small_plan(), Clock()
    with plan.run() as run:
        recording = started(run, plan, clock)
        clock.time = 1.0
        recording.record({"loss": 3.0})
        clock.time = 1.4
        recording.record({"evaluation_return": 7.0, "loss": 2.0, "length": math.nan})
        assert len(recording.view.snapshots) == 1
        clock.time = 2.1
        recording.record({"loss": 1.0})
        recording.close()
    assert [dict(one.curves) for one in recording.view.snapshots] == [
        {"loss": 3.0},
        {"evaluation_return": 7.0, "loss": 1.0},
        {},
    ]


def test_a_long_run_is_thinned_and_its_file_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording_module, "SNAPSHOTS", 20)
    view = recorded(tmp_path / "kept.jsonl", items=500)
    assert len(view.snapshots) <= 20
    assert [one.steps for one in view.snapshots][-1] == 5000
    gaps = {
        round(b.seconds - a.seconds) for a, b in zip(view.snapshots[:-2], view.snapshots[1:-1], strict=True)
    }
    assert gaps == {32}
    assert (tmp_path / "kept.jsonl").read_text().count("\n") == len(view.snapshots) + 2


def test_the_newest_figures_are_shown_every_second_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_module, "SNAPSHOTS", 4)
    plan, clock = small_plan(), Clock()
    with plan.run() as run:
        recording = started(run, plan, clock)
        for second in range(1, 30):
            clock.time = second
            recording.record(next(run))
            assert recording.view.latest is not None
            assert recording.view.latest.seconds == second
            assert recording.view.updated == second
        recording.close()


def test_what_is_thinned_keeps_the_curves_of_what_went() -> None:
    kept = thinned((snapshot(1, loss=1.0, evaluation=5.0), snapshot(2, loss=2.0), snapshot(3, loss=3.0)))
    assert [(one.seconds, dict(one.curves)) for one in kept] == [
        (2, {"loss": 2.0, "evaluation": 5.0}),
        (3, {"loss": 3.0}),
    ]


def test_warnings_of_the_run_are_in_the_log_and_still_heard(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a program that sets up no logging, where Python prints warnings itself.
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    plan, clock, file = small_plan(), Clock(), tmp_path / "kept.jsonl"
    with plan.run() as run:
        recording = started(run, plan, clock, file)
        clock.time = 2.0
        recording.record(next(run))
        WARNING.warning("restart %d of %d of %s: %s", 1, 3, "Worker", "it died")
        assert [(one.seconds, one.message) for one in read(file).events] == [
            (2.0, "restart 1 of 3 of Worker: it died")
        ]
        recording.close()
        WARNING.warning("after the end")
    assert len(recording.view.events) == 1
    assert capsys.readouterr().err.splitlines() == ["restart 1 of 3 of Worker: it died", "after the end"]


def test_the_log_keeps_the_newest_lines(caplog: pytest.LogCaptureFixture) -> None:
    plan = small_plan()
    with plan.run() as run:
        recording = started(run, plan, Clock())
        for index in range(EVENTS + 5):
            WARNING.warning("%d %s", index, "x" * 5000)
        recording.close()
    assert len(recording.view.events) == EVENTS
    assert recording.view.events[0].message.startswith("5 x")
    assert len(recording.view.events[0].message) == 2000


def test_a_file_that_cannot_be_written_any_more_does_not_end_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    plan, clock = small_plan(), Clock()
    with plan.run() as run:
        recording = started(run, plan, clock, folder / "kept.jsonl")
        shutil.rmtree(folder)
        for clock.time in (1.0, 2.0):
            recording.record(next(run))
        recording.close()
    assert len(recording.view.snapshots) == 3
    assert [event.message for event in recording.view.events] == [
        f"from here on the page is not kept: {folder}/kept.jsonl cannot be written, No such file or directory"
    ]


def test_an_error_that_ended_the_run_is_told(tmp_path: Path) -> None:
    plan = small_plan()
    with plan.run() as run:
        recording = started(run, plan, Clock(), tmp_path / "kept.jsonl")
        recording.close(ValueError("no such reward"))
        recording.close()
    ending = read(tmp_path / "kept.jsonl").ending
    assert ending is not None
    assert (ending.how, ending.message) == ("failed", "ValueError: no such reward")


def test_a_run_that_is_gone_on_with_keeps_what_came_before_its_checkpoint(tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    recorded(file, items=6)
    plan, clock = small_plan(), Clock()
    with plan.run() as run:
        recording = Recording(plan.node, run.stats, "small", file, steps=40, clock=clock)
        assert [one.steps for one in recording.view.snapshots] == [10, 20, 30, 40]
        assert recording.view.ending is None
        recording.record(next(run), 50, seconds=12.0)
        recording.close()
    assert [(one.seconds, one.steps) for one in read(file).snapshots][4:] == [(12.0, 50), (12.0, 50)]


@pytest.mark.parametrize("before", ["", "nothing of the kind\n"])
def test_a_file_that_is_no_recording_is_begun_anew(before: str, tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    file.write_text(before)
    plan = small_plan()
    with plan.run() as run:
        Recording(plan.node, run.stats, "small", file, steps=40).close()
    assert len(read(file).snapshots) == 1


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path)  # a folder, and a pipe would be waited for
    (tmp_path / "image").write_bytes(b"\xff\xd8\xff")
    with pytest.raises(NotARecording, match="it is no text"):
        read(tmp_path / "image")
