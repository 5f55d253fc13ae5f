"""From an algorithm and its configuration to the plan, with what can go wrong on the way said in one line.

Apart from the commands because all of them need the same. To build a plan means to make an environment and look
at its spaces, and environments are other people's code.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TypeVar

import gymnasium

from pipeflow.algorithms.catalogue import Algorithm, Configuration
from pipeflow.cli.errors import UsageError, one_line
from pipeflow.dsl import Stream
from pipeflow.rl.batches import Report
from pipeflow.rl.spaces import UnsupportedSpace

C = TypeVar("C", bound=Configuration)


def build_plan(algorithm: Algorithm[C], config: C) -> Stream[Report]:
    """The algorithm's plan; starts nothing.

    Raises UsageError if the environment is unknown, cannot be made, or has spaces that no policy is for.
    """
    _find_modules_here()
    try:
        return algorithm.plan(config)
    except (ValueError, UnsupportedSpace, gymnasium.error.Error) as error:
        raise UsageError(one_line(error)) from error
    except Exception as error:
        message = f"cannot make {config.env.name}: {type(error).__name__}: {one_line(error)}"
        raise UsageError(
            f"{message}; correct --env-kwargs or the environment, --debug shows where"
        ) from error


def _find_modules_here() -> None:
    """Let `--env module:id` find a module in the working directory, as `python -m` would; Ray's workers do."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
