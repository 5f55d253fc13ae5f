"""The part of Ray's own parallel iterators that a benchmark compares with."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from ray.actor import ActorHandle

_T = TypeVar("_T")

class ParallelIteratorWorker:
    def __init__(self, item_generator: Iterable[object], repeat: bool) -> None: ...

class LocalIterator(Generic[_T]):
    def __iter__(self) -> Iterator[_T]: ...
    def __next__(self) -> _T: ...

class ParallelIterator(Generic[_T]):
    def gather_sync(self) -> LocalIterator[_T]: ...
    def gather_async(self, batch_ms: int = 0, num_async: int = 1) -> LocalIterator[_T]: ...

def from_actors(
    actors: Sequence[ActorHandle[ParallelIteratorWorker]], name: str | None = None
) -> ParallelIterator[object]: ...
