"""The plans of pyright_diff.toml: a module for the checkers to read, and the expectations.

Apart from the accepted plans, on which mypy and pyright agree.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.typing.checkers import HERE

HEADER = """\
from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, assert_type, reveal_type

from pipeflow import *
from tests.typing.domain import *

rollouts = workers.produce(RolloutWorker.sample)


def sampled() -> Stream[Trajectories]:
    return workers.produce(RolloutWorker.sample) | gather_sync()


async def later(batch: Trajectories) -> int:
    return batch.steps


"""


@dataclass(frozen=True)
class Difference:
    """A plan, the types that the two checkers give it, and whether it can be built."""

    plan: str
    mypy: str
    pyright: str
    why: str
    builds: bool = True


def differences() -> list[Difference]:
    """The table."""
    with (HERE / "pyright_diff.toml").open("rb") as file:
        return [Difference(**row) for row in tomllib.load(file)["difference"]]


def lines() -> list[str]:
    """One statement a difference: an assertion for mypy around a question to pyright."""
    return [f"assert_type(reveal_type({row.plan}), {row.mypy})" for row in differences()]


def first_line() -> int:
    """The number of the first of `lines` in the module."""
    return HEADER.count("\n") + 1


def write_differences(folder: Path) -> None:
    """The module with all of them."""
    (folder / "differences.py").write_text(HEADER + "\n".join(lines()) + "\n", encoding="utf-8")
