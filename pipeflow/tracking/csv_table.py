"""`CSV`: a table of the run in a file, for spreadsheets and for scripts."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from pipeflow.tracking.records import Record

PROGRESS = "progress.csv"


@dataclass(frozen=True)
class CSV:
    """`progress.csv` in a folder, which is made if it is not there.

    A row for each report, under a header that the first one makes; nan is left empty. A metric that only later
    reports have is left out. Of a run that is gone on with, the rows of later steps are lost with what came after
    its checkpoint.
    """

    folder: str | PathLike[str]

    def open(self, steps: int = 0, run_id: str | None = None, /) -> Table:
        """Begin the file. Raises OSError if it cannot be written."""
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        return Table(folder / PROGRESS, steps)


class Table:
    """The open file of a `CSV`."""

    def __init__(self, file: Path, steps: int) -> None:
        self._writer: csv.DictWriter[str] | None = None
        header, rows = _rows_up_to(steps, file) if steps else ([], [])
        self._stream = file.open("w", newline="", encoding="utf-8")
        if header:
            self._start(header)
            csv.writer(self._stream).writerows(rows)
            self._stream.flush()

    def record(self, record: Record, /) -> None:
        """Write a row; it is in the file when this returns."""
        report, episodes = record.report, record.report.episodes
        counts = {"steps": report.lifetime_steps, "updates": report.version, "episodes": record.episodes}
        numbers = {
            "seconds": round(record.seconds, 3),
            "steps_per_second": round(record.steps_per_second, 1),
            "episode_return": episodes.mean_return,
            "episode_length": episodes.mean_length,
            "recent_return": record.recent_return,
            "evaluation_return": math.nan if record.evaluation is None else record.evaluation.mean_return,
            **report.metrics,
        }
        row = {name: str(count) for name, count in counts.items()}
        row |= {name: "" if math.isnan(value) else repr(float(value)) for name, value in numbers.items()}
        writer = self._start(list(row)) if self._writer is None else self._writer
        writer.writerow(row)
        self._stream.flush()

    def close(self, error: BaseException | None = None, /) -> None:
        """Close the file."""
        self._stream.close()

    def _start(self, header: Sequence[str]) -> csv.DictWriter[str]:
        self._writer = csv.DictWriter(self._stream, header, restval="", extrasaction="ignore")
        self._writer.writeheader()
        return self._writer


def _rows_up_to(steps: int, file: Path) -> tuple[list[str], list[list[str]]]:
    """The header of a `progress.csv` and its whole rows of at most so many steps."""
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            header, *rows = list(csv.reader(stream)) or [[]]
    except OSError:  # somebody took it away
        return [], []
    kept = [row for row in rows if len(row) == len(header) and row[0].isdecimal() and int(row[0]) <= steps]
    return header, kept
