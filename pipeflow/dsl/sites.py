"""Where the user wrote a stage: the file and line that errors, pictures and statistics point to.

Apart from the tree itself because finding the line needs the interpreter's frames: in a chain over several
lines Python only tells the line on which the chain starts, so the end of the operand is read from the
instruction's position.
"""

from __future__ import annotations

import inspect
import itertools
import os
from dataclasses import dataclass
from types import CodeType, FrameType

from typing_extensions import override

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# A stage made by these packages belongs to the line that called them.
_INTERNAL = tuple(os.path.join(_PACKAGE, part) + os.sep for part in ("dsl", "rl", "lowering", "tracking"))


@dataclass(frozen=True)
class Site:
    """A line of a file. ``str`` of it is ``file:line`` with the file relative to the working directory."""

    file: str
    line: int

    @override
    def __str__(self) -> str:
        path = self.file
        if path.startswith(os.getcwd() + os.sep):
            path = os.path.relpath(path)
        return f"{path}:{self.line}"


def _user_frame() -> FrameType:
    frame = inspect.currentframe()
    assert frame is not None  # CPython always has one
    while frame.f_back is not None and _is_internal(frame.f_code):
        frame = frame.f_back
    return frame


def _is_internal(code: CodeType) -> bool:
    # The constructors that dataclasses writes, of operators for instance, are compiled from a string.
    generated = code.co_filename == "<string>" and code.co_name == "__init__"
    return generated or code.co_filename.startswith(_INTERNAL)


def call_site() -> Site:
    """The line of the user's call that is being evaluated, for instance of ``gae(...)`` inside a chain."""
    frame = _user_frame()
    return Site(frame.f_code.co_filename, frame.f_lineno)


def operator_site(written: Site | None) -> Site:
    """The line of the right operand of the ``|`` that is being evaluated.

    Args:
        written: where the operand itself was made, if it is known; it is taken when it lies within the
            expression, since it is exact where the operand goes over several lines.
    """
    frame = _user_frame()
    start = end = frame.f_lineno
    positions = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    if positions is not None:
        start, end = positions[0] or start, positions[1] or end
    if written is not None and written.file == frame.f_code.co_filename and start <= written.line <= end:
        return written
    return Site(frame.f_code.co_filename, end)
