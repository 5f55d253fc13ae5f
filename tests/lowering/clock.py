"""An engine whose clock moves only when it is told to, for the operators that go by the clock."""

from __future__ import annotations

from typing_extensions import override

from pipeflow.lowering.engines.inline import InlineEngine


class ClockedEngine(InlineEngine):
    """The inline engine on a clock that stands still but for `tick` and while nothing can be done but sleep.

    `slept` has every sleep, in seconds.
    """

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self.slept: list[float] = []

    def tick(self, seconds: float) -> None:
        """Let time go by."""
        self._now += seconds

    @override
    def now(self) -> float:
        return self._now

    @override
    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._now += seconds
