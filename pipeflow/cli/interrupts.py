"""Ctrl-C and its relatives, as a request that a run looks at between two updates.

Apart from the training, whose loop should read as if nobody ever interrupted it. An exception out of a signal
handler could land anywhere: inside Ray's wait, between two lines of a file. So the first signal only leaves a
note, and only a second one raises.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Generator
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Launchers pass on a Ctrl-C that the terminal has sent to all of its processes already.
_ECHO_SECONDS = 0.5


@contextlib.contextmanager
def deferred() -> Generator[None]:
    """A section whose KeyboardInterrupt comes when it is over: for imports.

    Torch's extension imports numpy and goes on without it where that fails, whatever the reason, which then
    leaves half a numpy behind.
    """
    noted: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: noted.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if noted:
        raise KeyboardInterrupt


class Interrupts:
    """Takes SIGINT, SIGTERM and SIGHUP while its ``with`` block runs, in the main thread.

    clock: in seconds.

    received: the number of the first signal, None before there was one.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.received: int | None = None
        # What signal.signal returns, for giving it back; its type is the standard library's.
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], Any] | int | None] = {}
        self._received_at = 0.0
        self._at_once = False
        self._held = False

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            before = signal.getsignal(number)
            # Whoever started this with nohup wants it to outlive the terminal.
            if not (number is signal.SIGHUP and before is signal.SIG_IGN):
                self._before[number] = before
        self.install()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    @property
    def exit_code(self) -> int:
        """By the shell's convention: 130 after Ctrl-C, 143 after SIGTERM."""
        return 0 if self.received is None else 128 + self.received

    def install(self) -> None:
        """Take the signals again, where something (Ray, when it starts) has taken them over."""
        for number in self._before:
            signal.signal(number, self._handle)

    @contextlib.contextmanager
    def at_once(self) -> Generator[None]:
        """A section that the first signal may cut short, with KeyboardInterrupt, and that it may not start."""
        self._at_once = True
        try:
            if self.received is not None:
                raise KeyboardInterrupt
            yield
        finally:
            self._at_once = False

    @contextlib.contextmanager
    def held(self) -> Generator[None]:
        """A short section that no signal cuts short, such as the writing of a checkpoint."""
        self._held = True
        try:
            yield
        finally:
            self._held = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        first = self.received is None
        if first:
            self.received, self._received_at = number, self._clock()
        if self._held:
            return
        if self._at_once:
            raise KeyboardInterrupt
        if first:
            # Not print: the handler may have come in the middle of one.
            with contextlib.suppress(OSError):
                os.write(2, b"\npipeflow: stopping after this update; once more stops at once\n")
            return
        if self._clock() - self._received_at < _ECHO_SECONDS:
            return
        # Should closing down hang, a third one ends the process as it would any other.
        self._restore()
        raise KeyboardInterrupt

    def _restore(self) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
