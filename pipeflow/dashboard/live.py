"""The page of a run while it goes on: what is recorded of it, and the server that shows it.

Apart from `pipeflow.cli.dashboard`, which adds what the command line knows of a run. `Run.serve` shows its items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from pathlib import Path
from types import MappingProxyType

from pipeflow.dashboard.recording import FILE, Recording
from pipeflow.dashboard.server import PageServer
from pipeflow.dsl.nodes import Node
from pipeflow.lowering.stats import RunStats
from pipeflow.rl.batches import Report

LINGER = 2.0
"""How many seconds the end of a run waits for an open page to hear of it."""


class LivePage:
    """The page of one run, on this machine, until it is closed. It holds no reference to the run.

    Args:
        root: the last node of the plan.
        stats: the run's counters; called by the thread that calls `record`.
        port: to listen on; 0 takes a free one, None serves nothing, and the page is only kept.
        title: what the page calls the run.
        folder: where the page is kept for ``pipeflow show``; None keeps it in memory alone.
        steps: environment steps of a run that is gone on with.

    Raises:
        OSError: the port cannot be used, or the folder not be written to.
    """

    def __init__(
        self,
        root: Node,
        stats: Callable[[], RunStats],
        port: int | None,
        title: str,
        folder: Path | None,
        steps: int = 0,
    ) -> None:
        file = None if folder is None else folder / FILE
        self._recording = Recording(root, stats, title, file, steps=steps)
        try:
            self._server = None if port is None else PageServer(lambda: self._recording.view, port)
        except OSError:
            self._recording.close()
            raise

    @property
    def url(self) -> str | None:
        """Where the page is, None where nothing is served."""
        return None if self._server is None else self._server.url

    def record(
        self, item: object, more: Mapping[str, float] = MappingProxyType({}), seconds: float | None = None
    ) -> None:
        """Take in an item of the plan, before the next one is asked for.

        more: curves beside the item's own, by name; nan is none. seconds: since the run started; None counts them.
        """
        curves, steps = numbers_of(item)
        self._recording.record({**curves, **more}, steps, seconds)

    def close(self, error: BaseException | None = None) -> None:
        """Stop serving. error: what ended the run, None where nothing did. Twice does no harm."""
        if self._recording.view.ending is None:
            self._recording.close(error)
            if self._server is not None:
                self._server.close(LINGER)


def numbers_of(item: object) -> tuple[dict[str, float], int]:
    """The curves that an item adds to, and the environment steps so far, 0 where it does not say.

    A report's are its episodes' and its metrics; a number is a curve of its own, and so is every number of a
    mapping.

    >>> numbers_of({"loss": 0.5, "note": "warm"})
    ({'loss': 0.5}, 0)
    """
    match item:
        case Report():
            episodes = item.episodes
            curves = {"episode_return": episodes.mean_return, "episode_length": episodes.mean_length}
            return {**curves, **item.metrics}, item.lifetime_steps
        case Real():
            return {"value": float(item)}, 0
        case Mapping():
            return {str(name): float(value) for name, value in item.items() if isinstance(value, Real)}, 0
        case _:
            return {}, 0
