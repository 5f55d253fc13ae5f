"""What is recorded of a run: numbers by hand, and files that hold them."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeflow.cli.errors import UsageError
from pipeflow.cli.recording import CsvSink, Record, Recorder, TensorBoardSink, run_folder
from pipeflow.rl.batches import Report
from pipeflow.rl.episodes import EpisodeStats


def episodes(*returns: float) -> EpisodeStats:
    return EpisodeStats(np.array(returns), np.full(len(returns), 7))


def report(version: int, *returns: float, **metrics: float) -> Report:
    return Report(version, 100, 100 * version, episodes(*returns), metrics)


class Clock:
    """Shows the times that it was given, in turn."""

    def __init__(self, *times: float) -> None:
        self._times = iter(times)

    def __call__(self) -> float:
        return next(self._times)


def test_a_record_counts_from_the_start_of_the_run() -> None:
    recorder = Recorder(Clock(10.0, 12.0, 16.0))
    first, second = recorder.take(report(1, 1.0, 3.0)), recorder.take(report(2, 8.0))
    assert (first.seconds, first.episodes, first.recent_return) == (2.0, 2, 2.0)
    assert (second.seconds, second.episodes, second.recent_return) == (6.0, 3, 4.0)
    assert first.steps_per_second == 50.0
    assert second.steps_per_second == pytest.approx(200 / 6)


def test_the_recent_return_is_the_mean_of_the_last_hundred_episodes() -> None:
    recorder = Recorder(Clock(0.0, 1.0, 2.0))
    recorder.take(report(1, *[1000.0] * 50))
    # 40 old ones, 60 new ones; every episode weighs the same, whichever report it came with.
    record = recorder.take(report(2, *[0.0] * 60))
    assert record.recent_return == 400.0


def test_the_rate_is_that_of_the_last_twenty_reports() -> None:
    # The first report took 100 s, each other one 1 s.
    recorder = Recorder(Clock(0.0, *(99.0 + index for index in range(1, 31))))
    records = [recorder.take(report(version)) for version in range(1, 31)]
    assert records[-1].steps_per_second == 100.0
    assert records[0].steps_per_second == 1.0


def test_without_an_episode_the_return_is_no_number() -> None:
    assert math.isnan(Recorder(Clock(0.0, 1.0)).take(report(1)).recent_return)


def written(tmp_path: Path, *records: Record) -> list[list[str]]:
    sink = CsvSink(tmp_path / "progress.csv")
    for record in records:
        sink.record(record)
    with (tmp_path / "progress.csv").open(newline="") as stream:
        lines = list(csv.reader(stream))  # before the file is closed: a row is there when it was recorded
    sink.close()
    return lines


RECORD = Record(report(1, 1.0, 4.0, policy_loss=-0.25, updates_done=8), 1.23456, 1234.56, 5, 2.5)


def test_the_table_has_a_row_a_report(tmp_path: Path) -> None:
    later = replace(
        RECORD, report=report(2, 3.0, policy_loss=0.5, updates_done=9), evaluation=episodes(9.0, 10.0)
    )
    header, first, second = written(tmp_path, RECORD, later)
    assert dict(zip(header, first, strict=True)) == {
        "steps": "100",
        "updates": "1",
        "episodes": "5",
        "seconds": "1.235",
        "steps_per_second": "1234.6",
        "episode_return": "2.5",
        "episode_length": "7.0",
        "recent_return": "2.5",
        "evaluation_return": "",
        "policy_loss": "-0.25",
        "updates_done": "8.0",
    }
    assert dict(zip(header, second, strict=True)) | {
        "evaluation_return": "9.5",
        "policy_loss": "0.5",
    } == dict(zip(header, second, strict=True))


def test_what_is_no_number_is_left_empty(tmp_path: Path) -> None:
    record = replace(RECORD, report=report(1, policy_loss=math.nan), recent_return=math.nan)
    header, row = written(tmp_path, record)
    empty = {name for name, value in zip(header, row, strict=True) if value == ""}
    assert empty == {"episode_return", "episode_length", "recent_return", "evaluation_return", "policy_loss"}


def test_the_columns_stay_those_of_the_first_report(tmp_path: Path) -> None:
    later = replace(RECORD, report=report(2, 1.0, surprise=1.0))
    header, first, second = written(tmp_path, RECORD, later)
    assert len(header) == len(first) == len(second)
    assert "surprise" not in header
    assert second[header.index("policy_loss")] == ""


def test_the_event_file_has_the_curves_and_no_nan(tmp_path: Path) -> None:
    sink = TensorBoardSink(tmp_path)
    sink.record(
        replace(RECORD, report=report(1, policy_loss=0.5, entropy=math.nan), evaluation=episodes(9.0))
    )
    sink.close()
    (events,) = tmp_path.glob("events.out.tfevents.*")
    content = events.read_bytes()
    for tag in (
        b"learner/policy_loss",
        b"episodes/recent_return",
        b"evaluation/return",
        b"time/steps_per_second",
    ):
        assert tag in content
    assert b"learner/entropy" not in content
    assert b"episodes/return" not in content


def test_a_folder_is_named_after_what_runs(tmp_path: Path) -> None:
    folder = run_folder(None, "ppo", "ale_py:ALE/Pong-v5")
    assert folder.parent == Path("runs")
    assert folder.name.startswith("ppo-ale_py-ALE-Pong-v5-2")
    assert not folder.exists()


def test_two_runs_of_the_same_second_have_two_folders() -> None:
    folders = set()
    for _ in range(3):
        folder = run_folder(None, "ppo", "CartPole-v1")
        folder.mkdir(parents=True)
        folders.add(folder)
    assert len(folders) == 3


def test_an_empty_folder_may_be_used_and_no_other(tmp_path: Path) -> None:
    assert run_folder(tmp_path, "ppo", "CartPole-v1") == tmp_path
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UsageError, match="is taken, and a run is never overwritten"):
        run_folder(tmp_path, "ppo", "CartPole-v1")
