"""`report_to`: every report is told and passed on, and the sinks end with the run, however it ends."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pytest

from pipeflow import PlanError, StageError, Stream, from_items, take
from pipeflow.lowering.engine import Engine
from pipeflow.lowering.engines.sim import Sim
from pipeflow.rl.batches import Report
from pipeflow.tracking import CSV, Record, TensorBoard, report_to
from tests.tracking.reports import report

REPORTS = [report(version, float(version)) for version in (1, 2, 3)]


@dataclass
class Log:
    """A tracker whose sinks write down what they are told."""

    lines: list[str] = field(default_factory=list[str])
    fails: str = ""

    def open(self, steps: int = 0, run_id: str | None = None, /) -> OpenLog:
        self.lines.append(f"open {steps} {run_id}")
        return OpenLog(self)


@dataclass
class OpenLog:
    log: Log
    run_id: str = "the run"

    def record(self, record: Record, /) -> None:
        self.log.lines.append(f"record {record.report.version} {record.episodes} {record.recent_return}")
        if self.log.fails == "record":
            raise OSError("no space is left")

    def close(self, error: BaseException | None = None, /) -> None:
        self.log.lines.append(f"close {type(error).__name__}")
        if self.log.fails == "close":
            raise OSError("no space is left")


def plan(*trackers: Log) -> Stream[Report]:
    return from_items(REPORTS) | report_to(*trackers)


RECORDS = ["record 1 1 1.0", "record 2 2 1.5", "record 3 3 2.0"]


def test_every_report_is_told_and_passed_on() -> None:
    one, other = Log(), Log()
    assert list(plan(one, other).run()) == REPORTS
    assert one.lines == other.lines == ["open 0 None", *RECORDS, "close NoneType"]


def test_a_plan_that_runs_twice_opens_its_trackers_twice() -> None:
    log = Log()
    reported = plan(log)
    list(reported.run())
    list(reported.run())
    assert log.lines == 2 * ["open 0 None", *RECORDS, "close NoneType"]


def test_nothing_is_opened_before_the_first_report() -> None:
    log = Log()
    with plan(log).run():
        pass
    assert log.lines == []


def test_leaving_the_run_early_closes_the_sinks_without_an_error() -> None:
    log = Log()
    with plan(log).run() as run:
        next(run)
        assert log.lines[-1] == RECORDS[0]
    assert log.lines[-1] == "close NoneType"


def test_reports_that_are_taken_no_further_are_not_told() -> None:
    log = Log()
    assert len(list((plan(log) | take(2)).run())) == 2
    assert log.lines == ["open 0 None", *RECORDS[:2], "close NoneType"]


def failing(item: Report) -> Report:
    if item.version == 2:
        raise ArithmeticError("the loss is nan")
    return item


def test_an_error_in_the_plan_closes_the_sinks_with_it() -> None:
    log = Log()
    with pytest.raises(StageError, match="the loss is nan"):
        list((from_items(REPORTS).map(failing) | report_to(log)).run())
    assert log.lines == ["open 0 None", RECORDS[0], "close StageError"]


def test_ctrl_c_closes_the_sinks_with_it() -> None:
    def interrupted() -> None:
        with plan(log).run() as run:
            next(run)
            raise KeyboardInterrupt

    log = Log()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert log.lines[-1] == "close KeyboardInterrupt"


def test_what_a_sink_raises_ends_the_run_and_closes_all() -> None:
    one, other = Log(fails="record"), Log()
    with pytest.raises(StageError, match=r"report_to\(Log, Log\).*no space is left"):
        list(plan(one, other).run())
    assert (one.lines[-1], other.lines) == ("close StageError", ["open 0 None", "close StageError"])


def test_a_sink_that_cannot_be_closed_does_not_keep_the_others_open() -> None:
    one, other = Log(fails="close"), Log()
    with pytest.raises(StageError, match=r"report_to\(Log, Log\).*no space is left"):
        list(plan(other, one).run())
    assert other.lines[-1] == "close NoneType"


@pytest.mark.parametrize("engine", [lambda: "inline", lambda: Sim(seed=1)], ids=["inline", "sim"])
def test_a_resumed_run_goes_on_in_the_same_tracked_run(engine: Callable[[], Engine], tmp_path: Path) -> None:
    first, second = Log(), Log()
    with plan(first).run(engine()) as run:
        list(islice(run, 2))
        run.checkpoint(tmp_path / "saved")
    assert first.lines == ["open 0 None", *RECORDS[:2], "close NoneType"]
    # Episodes and returns are counted on, from where they stood.
    assert len(list(plan(second).run(engine(), resume=tmp_path / "saved"))) == 1
    assert second.lines == ["open 200 the run", RECORDS[2], "close NoneType"]


def test_reports_go_to_files(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    list((from_items(REPORTS) | report_to(CSV(folder), TensorBoard(folder))).run())
    with (folder / "progress.csv").open(newline="") as stream:
        assert [row["episode_return"] for row in csv.DictReader(stream)] == ["1.0", "2.0", "3.0"]
    (events,) = folder.glob("events.out.tfevents.*")
    assert b"episodes/return" in events.read_bytes()


def test_without_a_tracker_there_is_nothing_to_report_to() -> None:
    with pytest.raises(ValueError, match="was given no tracker"):
        report_to()


def test_a_stream_of_anything_else_is_refused_where_it_was_written() -> None:
    stream = from_items(REPORTS) | version_of
    with pytest.raises(
        PlanError, match=r"test_reporting.py:\d+: report_to\(Log\) takes Report, but version_of"
    ):
        stream | report_to(Log())  # type: ignore[operator]  # what the test is about


def version_of(item: Report) -> int:
    return item.version
