"""Operators on the shards themselves: which of them go on, and how a stream is spread over actors again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar, final

from pipeflow.dsl import nodes
from pipeflow.dsl.errors import PlanError
from pipeflow.dsl.expressions import Operator
from pipeflow.dsl.nodes import Group
from pipeflow.dsl.operands import expect_parallel, expect_stream
from pipeflow.dsl.sites import operator_site
from pipeflow.dsl.streams import ParallelStream, Stream
from pipeflow.dsl.trees import shard_count

T = TypeVar("T")
W = TypeVar("W")
W_co = TypeVar("W_co", covariant=True)


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Scatter(Operator, Generic[W_co]):
    """A stream spread over the actors of a group. Made by `Actors.scatter` and `Actors.broadcast`."""

    group: Group
    to_all: bool

    def __ror__(self, left: Stream[T], /) -> ParallelStream[T, W_co]:
        stream: Stream[T] = expect_stream(left, self)
        site = operator_site(self.site)
        return ParallelStream(
            nodes.Scatter(
                name=self.name,
                site=site,
                item_type=stream.node.delivered_type,
                input=stream.node,
                group=self.group,
                to_all=self.to_all,
            )
        )


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class SelectShards(Operator):
    """See `select_shards`."""

    indices: tuple[int, ...]

    def __ror__(self, left: ParallelStream[T, W], /) -> ParallelStream[T, W]:
        stream: ParallelStream[T, W] = expect_parallel(left, self)
        site, there = operator_site(self.site), shard_count(stream.node)
        if not all(0 <= index < there for index in self.indices):
            message = (
                f"{site}: {self.name}: {stream.node.name} ({stream.node.site}) has shards 0 to {there - 1}"
            )
            raise PlanError(message)
        return ParallelStream(
            nodes.SelectShards(
                name=self.name,
                site=site,
                item_type=stream.node.item_type,
                input=stream.node,
                indices=self.indices,
            )
        )


def select_shards(*indices: int) -> SelectShards:
    """Only these shards, in this order; nothing is asked of the others.

    Args:
        indices: places among the shards of the stream, from 0, each at most once.

    Raises:
        PlanError: there is no such shard.
        ValueError: no index is given, or one twice.
    """
    if not indices or len(set(indices)) < len(indices):
        message = f"select_shards needs shards, each once, got {indices}"
        raise ValueError(message)
    return SelectShards(name=f"select_shards({', '.join(map(str, indices))})", indices=indices)
