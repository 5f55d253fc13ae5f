"""The table of a run, read back."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

from pipeflow.tracking import CSV, Record
from tests.tracking.reports import RECORD, episodes, report


def written(tmp_path: Path, *records: Record) -> list[list[str]]:
    sink = CSV(tmp_path).open()
    for record in records:
        sink.record(record)
    with (tmp_path / "progress.csv").open(newline="") as stream:
        lines = list(csv.reader(stream))  # before the file is closed: a row is there when it was recorded
    sink.close()
    return lines


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


def test_a_run_that_is_gone_on_with_keeps_the_rows_up_to_its_checkpoint(tmp_path: Path) -> None:
    before = written(tmp_path, *(replace(RECORD, report=report(version, loss=1.0)) for version in (1, 2, 3)))
    sink = CSV(tmp_path).open(200)
    sink.record(replace(RECORD, report=report(3, loss=7.0)))
    sink.close()
    with (tmp_path / "progress.csv").open(newline="") as stream:
        after = list(csv.reader(stream))
    assert after[:3] == before[:3]
    assert [row[0] for row in after] == ["steps", "100", "200", "300"]
    assert after[3][-1] == "7.0"


def test_a_table_that_was_taken_away_is_begun_anew(tmp_path: Path) -> None:
    sink = CSV(tmp_path).open(200)
    sink.record(RECORD)
    sink.close()
    assert len((tmp_path / "progress.csv").read_text().splitlines()) == 2


def test_the_folder_is_made(tmp_path: Path) -> None:
    CSV(tmp_path / "runs" / "one").open().close()
    assert (tmp_path / "runs" / "one" / "progress.csv").exists()
