"""What operators use to check the stream on their left and to grow it by a node.

The items' types are `Any` here, because the signatures of the operators state them; `isinstance` makes them what
pyright calls unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from pipeflow.dsl.checks import check_not_drained
from pipeflow.dsl.errors import PlanError
from pipeflow.dsl.expressions import Operator, misplaced
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.sites import operator_site
from pipeflow.dsl.streams import ParallelStream, Stream

A_co = TypeVar("A_co", covariant=True)
S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)


class TakenBy(Protocol[A_co, S_co]):
    """A `Stream` whose items a function of `A_co` takes, and that is an `S_co` itself.

    For operators that look at the items and pass them on: a function of a base class must not widen the items'
    type to its own, as ``Stream[A] -> Stream[A]`` would.
    """

    def tap(self, function: Callable[[A_co], object], /) -> S_co: ...


def expect_stream(left: object, operator: Operator) -> Stream[Any]:
    """The left operand of an operator that stands after a gather, or `PlanError`; also where it is drained."""
    site = operator_site(operator.site)
    if isinstance(left, Stream):
        check_not_drained(left.node, operator.name, site)  # pyright: ignore[reportUnknownMemberType]
        return left  # pyright: ignore[reportUnknownVariableType]
    raise PlanError(misplaced(left, "|", operator, site))


def expect_parallel(left: object, operator: Operator) -> ParallelStream[Any, Any]:
    """The left operand of an operator that stands before a gather, or `PlanError`."""
    if isinstance(left, ParallelStream):
        return left  # pyright: ignore[reportUnknownVariableType]
    raise PlanError(misplaced(left, "|", operator, operator_site(operator.site)))


def expect_either(left: object, operator: Operator) -> Stream[Any] | ParallelStream[Any, Any]:
    """The left operand of an operator on either side of a gather, or `PlanError`; also where it is drained."""
    if isinstance(left, ParallelStream):
        return left  # pyright: ignore[reportUnknownVariableType]
    if isinstance(left, Stream):
        return expect_stream(left, operator)  # pyright: ignore[reportUnknownArgumentType]
    raise PlanError(misplaced(left, "|", operator, operator_site(operator.site)))


def grown(
    stream: Stream[Any] | ParallelStream[Any, Any], node: Node
) -> Stream[Any] | ParallelStream[Any, Any]:
    """A stream of the same kind around a new node."""
    return ParallelStream(node) if isinstance(stream, ParallelStream) else Stream(node)


def regrown(left: TakenBy[Any, S], node: Node) -> S:
    """A stream of the type of the left operand around a new node."""
    made: Stream[Any] = Stream(node)
    return made  # type: ignore[return-value]  # only a Stream has `tap`, so that S is a Stream
