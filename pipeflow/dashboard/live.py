"""The page of a run that is going on, for programs that iterate over a run themselves.

Apart from `pipeflow.cli.dashboard`, which records what the command line knows of a run: here is only its items.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from pipeflow.dashboard.recording import FILE, Recording
from pipeflow.dashboard.server import PageServer
from pipeflow.dsl import Stream
from pipeflow.lowering.run import Run
from pipeflow.rl.batches import Report

T = TypeVar("T")

LINGER = 2.0
"""How many seconds the end of a run waits for an open page to hear of it."""


def serve(
    run: Run[T], plan: Stream[T], *, port: int = 0, title: str = "pipeflow", folder: Path | None = None
) -> LivePage[T]:
    """A page of a run on this machine, until it is closed; iterate over it in place of the run.

    Args:
        run: the run; close the page before it.
        plan: what is run.
        port: to listen on; 0 takes a free one.
        title: what the page calls the run.
        folder: where the page is kept for ``pipeflow show``; None keeps it in memory alone.

    Raises:
        OSError: the port cannot be used, or the folder not be written to.
    """
    return LivePage(run, plan, port, title, folder)


class LivePage(Generic[T]):
    """The items of a run, each of which the page is told of; see `serve`."""

    def __init__(self, run: Run[T], plan: Stream[T], port: int, title: str, folder: Path | None) -> None:
        self._run = run
        self._recording = Recording(plan, run, title, None if folder is None else folder / FILE)
        try:
            self._server = PageServer(lambda: self._recording.view, port)
        except OSError:
            self._recording.close()
            raise

    @property
    def url(self) -> str:
        """Where the page is."""
        return self._server.url

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        item = next(self._run)
        self._recording.record(*numbers_of(item))
        return item

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(error)

    def close(self, error: BaseException | None = None) -> None:
        """Stop serving. error: what ended the run, None where nothing did."""
        self._recording.close(error)
        self._server.close(LINGER)


def numbers_of(item: object) -> tuple[dict[str, float], int]:
    """The curves that an item adds to, and the environment steps so far, 0 where it does not say.

    A report's are its episodes' and its metrics; a number is a curve of its own, and so is every number of a
    mapping.

    >>> numbers_of({"loss": 0.5, "note": "warm"})
    ({'loss': 0.5}, 0)
    """
    if isinstance(item, Report):
        episodes = item.episodes
        curves = {"episode_return": episodes.mean_return, "episode_length": episodes.mean_length}
        return {**curves, **item.metrics}, item.lifetime_steps
    if isinstance(item, int | float):
        return {"value": float(item)}, 0
    if isinstance(item, Mapping):
        return {str(key): float(value) for key, value in item.items() if isinstance(value, int | float)}, 0
    return {}, 0
