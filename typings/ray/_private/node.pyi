"""A node on this machine, as far as the tests use it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

class _Process(Protocol):
    @property
    def pid(self) -> int: ...

class _ProcessInfo(Protocol):
    @property
    def process(self) -> _Process: ...

class Node:
    node_id: str
    all_processes: Mapping[str, Sequence[_ProcessInfo]]
