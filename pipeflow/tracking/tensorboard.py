"""`TensorBoard`: an event file, for `tensorboard --logdir FOLDER`."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING

from pipeflow.tracking.records import Record

if TYPE_CHECKING:
    from tensorboardX import SummaryWriter


@dataclass(frozen=True)
class TensorBoard:
    """TensorBoard's event file in a folder; the horizontal axis is environment steps.

    Of a run that is gone on with, what was written of later steps is hidden.
    """

    folder: str | PathLike[str]

    def open(self, steps: int = 0, run_id: str | None = None, /) -> EventFile:
        """Begin a file. Raises OSError if it cannot be written."""
        # Imported when opened: it takes longer than the rest of the package.
        from tensorboardX import SummaryWriter

        purged = steps + 1 if steps else None
        return EventFile(SummaryWriter(logdir=fspath(self.folder), flush_secs=10, purge_step=purged))


class EventFile:
    """The open file of a `TensorBoard`."""

    def __init__(self, writer: SummaryWriter) -> None:
        self._writer = writer

    def record(self, record: Record, /) -> None:
        """Write every number that is one."""
        for tag, value in record.curves().items():
            self._writer.add_scalar(tag, value, record.report.lifetime_steps)

    def close(self, error: BaseException | None = None, /) -> None:
        """Write what is still in memory."""
        self._writer.close()
