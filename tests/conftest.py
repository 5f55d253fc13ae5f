"""What all tests share: one Ray for the whole session, the engines as one fixture, and nothing left at the end.

A test that asks for `engine` states what a plan means, and so runs on every engine.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import pytest

EngineName: TypeAlias = Literal["inline", "ray"]

_SLOW_ON_RAY = frozenset({"algorithms", "cli", "cluster", "rl"})

# Python starts it for whoever shares memory or semaphores, and ends it with the interpreter.
_KEPT = "multiprocessing.resource_tracker"


# First, so that pytest's own selection by marks comes after it.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What whole algorithms and commands do on Ray is slow: each starts workers that import torch."""
    for item in items:
        if item.get_closest_marker("ray") and not _SLOW_ON_RAY.isdisjoint(item.path.parts):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def no_process_is_left() -> Iterator[None]:
    """Law 21 for the session: every process that the tests started is gone when they are."""
    yield
    deadline = time.monotonic() + 15
    while (left := _descendants()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left, f"processes outlived the tests: {left}"


@pytest.fixture(scope="session")
def ray_runtime(no_process_is_left: None) -> Iterator[None]:
    """The Ray that the runs of this session join, small and quiet."""
    import ray

    ray.init(
        address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
    )
    yield
    ray.shutdown()


@pytest.fixture(params=["inline", pytest.param("ray", marks=pytest.mark.ray)])
def engine(request: pytest.FixtureRequest) -> EngineName:
    """The name of an engine, ready to use."""
    name: EngineName = request.param
    if name == "ray":
        request.getfixturevalue("ray_runtime")
    return name


def _descendants() -> dict[int, str]:
    """The living processes below this one, with their command lines; none where there is no /proc."""
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
        except OSError:  # it ended meanwhile
            continue
        if state != "Z":
            parents[int(status.parent.name)] = int(parent)
    found: dict[int, str] = {}
    for pid in parents:
        ancestor = pid
        while ancestor in parents and ancestor != os.getpid():
            ancestor = parents[ancestor]
        if ancestor == os.getpid() and pid != os.getpid():
            command = _command(pid)
            if command and _KEPT not in command:
                found[pid] = command
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""
