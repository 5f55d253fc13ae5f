"""Actors that fail in every way that a process can, once: a file says that they have.

In a module of their own, since Ray's workers import them by name.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Literal, final

from pipeflow import current_shard

Fault = Literal["killed", "raises", "hangs", "exits", "killed while built", "raises while built"]


def once(folder: str, name: str) -> bool:
    """Whether this is the first time, over all processes."""
    try:
        (Path(folder) / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def fail(fault: Fault) -> None:
    """Do it."""
    match fault:
        case "killed" | "killed while built":  # as the kernel does when memory runs out
            os.kill(os.getpid(), signal.SIGKILL)
        case "hangs":
            time.sleep(3600)
        case "exits":
            os._exit(3)
        case _:
            message = "the environment is broken"
            raise ValueError(message)


@final
class MortalWorker:
    """Counts, and in the shards that are mortal fails at the third item, once in all runs that share a folder."""

    def __init__(self, folder: str, fault: Fault, mortal: tuple[int, ...] = (0,)) -> None:
        self._folder, self._mortal = folder, mortal
        self._fault: Fault = fault
        self._count, self._weights = 0, -1
        if fault.endswith("while built"):
            self._fail()

    def sample(self) -> tuple[int, int, int]:
        """The shard, how many items it made before, and the weights that it acts with."""
        if self._count == 2 and not self._fault.endswith("while built"):
            self._fail()
        self._count += 1
        return current_shard(), self._count - 1, self._weights

    def set_weights(self, weights: int, /) -> None:
        """Act with these."""
        self._weights = weights

    def _fail(self) -> None:
        shard = current_shard()
        if shard in self._mortal and once(self._folder, f"failed-{shard}"):
            fail(self._fault)


@final
class MortalLearner:
    """Counts what it is given, and fails at the third item, once."""

    def __init__(self, folder: str, fault: Fault) -> None:
        self._folder = folder
        self._fault: Fault = fault
        self._updates = 0

    def update(self, item: object) -> int:
        """How many there were."""
        if self._updates == 2 and once(self._folder, "failed"):
            fail(self._fault)
        self._updates += 1
        return self._updates

    def weights(self) -> int:
        """The number of updates."""
        return self._updates
