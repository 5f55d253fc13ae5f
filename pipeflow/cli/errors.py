"""What the command line says when something went wrong: one line, and an exit code.

Apart from the commands, so that every exception is judged in one place: what the user asked for cannot be done
(2), or it was begun and failed (1). A traceback is shown only where the code that failed is the user's own.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from pipeflow.dsl import CheckpointError, EngineError, RunError, StageError

USAGE = 2
FAILURE = 1


class UsageError(Exception):
    """What was asked for cannot be done; the message says what to change."""


@dataclass(frozen=True)
class Explanation:
    """line: without "pipeflow: error:". details: to be printed above it, mostly empty."""

    line: str
    details: str
    exit_code: int


def explain(error: Exception) -> Explanation:
    """How the command line puts an exception that ended it."""
    # Imported when something is wrong: gymnasium takes longer than a command needs to start.
    from pipeflow.algorithms.catalogue import UnknownAlgorithm
    from pipeflow.rl.single_environments import BadEnvironment, UnknownEnvironment
    from pipeflow.tracking.errors import TrackingError

    match error:
        case UsageError() | EngineError() | CheckpointError() | TrackingError():
            return Explanation(one_line(error), "", USAGE)
        case UnknownAlgorithm() | UnknownEnvironment():
            return Explanation(one_line(error), "", USAGE)
        case BadEnvironment():
            return Explanation(_environment_line(error), "", FAILURE)
        case StageError(__cause__=BadEnvironment() as cause, actor=actor):
            return Explanation(f"{_environment_line(cause)} (said by {actor})", "", FAILURE)
        case StageError(__cause__=UnknownEnvironment() as cause, actor=actor):
            return Explanation(f"{one_line(cause)} (said by {actor})", "", FAILURE)
        case StageError(__cause__=ValueError() as cause, item=-1, actor=actor):
            # An actor refused what it was made with: the configuration.
            return Explanation(f"{one_line(cause)} (said by {actor})", "", USAGE)
        case StageError():
            line, _, details = str(error).partition("\n")
            return Explanation(line, details.strip("\n") or _trace_of(error.__cause__), FAILURE)
        case RunError() | OSError():
            return Explanation(one_line(error), "", FAILURE)
        case _:
            line = f"unexpected {type(error).__name__}: {one_line(error)}; --debug shows where"
            return Explanation(line, "", FAILURE)


def one_line(error: BaseException) -> str:
    """The message of an exception on one line; the exception's type where it has no message."""
    return " ".join(str(error).split()) or type(error).__name__


def _environment_line(error: BaseException) -> str:
    line = one_line(error)
    # Where only the value is known to be wrong, what to do is the same for all.
    return line if ";" in line else f"{line}; correct the environment"


def _trace_of(error: BaseException | None) -> str:
    return "" if error is None else "".join(traceback.format_exception(error)).rstrip("\n")
