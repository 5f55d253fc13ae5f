"""What the command says to some words: its exit code and what it writes, within a time limit.

Apart from the tests that make the words up. In this process, since most of a process's time would go into imports.
"""

from __future__ import annotations

import contextlib
import io
import signal
import sys
import warnings
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from types import FrameType

from pipeflow.cli import main

SECONDS = 30


class HangError(BaseException):
    """The command was still busy at its time limit; no handler for ordinary errors takes it for one."""


@dataclass(frozen=True)
class Said:
    """The exit code, and what stood on stdout and stderr."""

    code: int
    out: str
    err: str

    def check(self, *, in_training: bool = False) -> None:
        """Whether it did what it was asked for, or said in one line why not.

        in_training: an error may come out of the training itself, and then has its traceback before that line.
        Raises AssertionError if it said anything else.
        """
        if in_training and self.code == 1:
            assert self.err.splitlines()[-1].startswith("pipeflow: error: "), self
            return
        assert "Traceback" not in self.err, self
        if self.code == 0:
            assert self.err == "", self
            return
        assert self.code in (1, 2), self
        lines = self.err.splitlines()
        assert len(lines) == 1, self
        assert lines[0].startswith("pipeflow: error: "), self
        # An error that nobody foresaw says neither what was wrong nor what to do.
        assert not lines[0].startswith("pipeflow: error: unexpected"), self


def said(words: Sequence[str]) -> Said:
    """Run the command with these words.

    Raises HangError if it takes longer than `SECONDS`.
    """
    # As Python's own streams are, where some bytes of the words are no text.
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="surrogateescape", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace", write_through=True)
    path = list(sys.path)
    with (
        _limited(words),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        _without_warnings(),
    ):
        try:
            code = main(words)
        finally:
            sys.path[:] = path
    return Said(code, _text(out), _text(err))


@contextlib.contextmanager
def _without_warnings() -> Generator[None]:
    """What numpy thinks of numbers that are none is said on stderr, but is no error of the command."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


@contextlib.contextmanager
def _limited(words: Sequence[str]) -> Generator[None]:
    def hung(number: int, frame: FrameType | None) -> None:
        raise HangError(f"after {SECONDS} s still busy with {words}")

    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
