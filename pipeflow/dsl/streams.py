"""`Stream` and `ParallelStream`: the typed expressions that a plan is made of.

An expression is an immutable value around a node of the tree; the type parameters exist for the checker only.

How `|` is typed: a stream itself only knows plain callables. Every other operator brings its own rule as
``__ror__``, generic in the *method* rather than the class, so that ``gather_sync()`` or ``batch(32)`` have no
type variable left to infer on their own. mypy and pyright then report a stage that does not fit in one line,
``Unsupported operand types for | ("Stream[Trajectories]" and "Placed[Advantages, Report, PPOLearner]")``, and
there is no ladder of overloads to read. A class on the right of ``|`` shows as the item type ``Any | type``
(see `ClassObject`). docs/typing.md has the alternatives that were tried.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from os import PathLike
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    TypeVar,
    final,
    overload,
)

from typing_extensions import TypeIs
from typing_extensions import TypeVar as DefaultTypeVar

from pipeflow.dsl import nodes
from pipeflow.dsl.checks import check_counts, check_fits, check_linear, check_not_drained, check_positive
from pipeflow.dsl.errors import PlanError
from pipeflow.dsl.expressions import Class, ClassObject, Expression, applied, piped
from pipeflow.dsl.gating import HasSteps, filter_node, narrowed_type, tap_node, until_node
from pipeflow.dsl.item_types import name_of, pair_of, taken_type, union_of
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.replies import reply_node
from pipeflow.dsl.sites import call_site

if TYPE_CHECKING:
    from pipeflow.dsl.sourced import Sourced
    from pipeflow.lowering.checkpoint import Checkpoint
    from pipeflow.lowering.engine import Engine
    from pipeflow.lowering.run import Run


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
V = TypeVar("V")
A = TypeVar("A")
Message = TypeVar("Message")  # a word, since mypy names it: Cannot infer value of type parameter "Message"
W_co = DefaultTypeVar("W_co", covariant=True, default=object)

# The type that a stage makes. Any where the stage does not fit, so that what follows is not reported for the items
# that it would have made.
R = DefaultTypeVar("R", default=Any)


@final
class ParallelStream(Expression, Generic[T_co, W_co]):
    """One ordered sequence a shard, each inside its own actor. Not iterable: gather it first.

    `T_co` is the items' type and `W_co` the actors' class.
    """

    def __or__(self, stage: Callable[[T_co], R] | ClassObject[Class], /) -> ParallelStream[R | Class, W_co]:
        """Apply a function to every item, inside each shard (law 2)."""
        node = piped(self, stage)
        return NotImplemented if node is None else ParallelStream(node)

    def __and__(self, other: ParallelStream[U, V], /) -> ParallelStream[T_co | U, W_co | V]:
        """The shards of both streams, side by side."""
        branches = _joined_branches(self, other, ParallelStream)
        item_type = union_of([branch.item_type for branch in branches])
        return ParallelStream(
            nodes.ParallelUnion(name="&", site=call_site(), item_type=item_type, branches=branches)
        )

    def map(self, function: Callable[[T_co], U], /) -> ParallelStream[U, W_co]:
        """As ``| function``, in the form in which every checker infers a lambda's parameter."""
        return ParallelStream(applied(self, function, call_site()))

    @overload  # see Stream.filter
    def filter(self, predicate: Callable[[T_co], Literal[True]], /) -> ParallelStream[T_co, W_co]: ...
    @overload
    def filter(self, predicate: Callable[[T_co], TypeIs[U]], /) -> ParallelStream[U, W_co]: ...
    @overload
    def filter(self, predicate: Callable[[T_co], bool], /) -> ParallelStream[T_co, W_co]: ...
    def filter(self, predicate: Callable[[Any], bool], /) -> ParallelStream[Any, W_co]:
        """Keep the items for which the predicate holds, in order."""
        return ParallelStream(filter_node(self.node, predicate, call_site()))


class Stream(Expression, Generic[T_co]):
    """One ordered sequence of items, pulled by the driver. A whole plan is a stream, and `run` runs it."""

    def __or__(self, stage: Callable[[T_co], R] | ClassObject[Class], /) -> Stream[R | Class]:
        """Apply a function to every item; delivers in the order of the input (law 2)."""
        node = piped(self, stage)
        return NotImplemented if node is None else Stream(node)

    def __and__(self, other: Stream[U], /) -> Merged[T_co | U]:
        """The items of both streams, as they become ready (laws 10 and 12).

        `Merged.round_robin` sets another policy. ``&`` binds tighter than ``|``: branches stand in
        parentheses.
        """
        branches = _joined_branches(self, other, Stream)
        node = nodes.Union(name="&", site=call_site(), branches=branches)
        members = [branch.item_type if node.sourced else branch.delivered_type for branch in branches]
        node = dataclasses.replace(node, item_type=union_of(members))
        check_linear(node)
        return Merged(node)

    def map(self, function: Callable[[T_co], U], /, *, here: bool = False) -> Stream[U]:
        """As ``| function``, in the form in which every checker infers a lambda's parameter.

        Args:
            function: takes an item and returns the one item that goes on.
            here: run it in the driver even where it could run inside the actor of the stage that follows.
        """
        return Stream(applied(self, function, call_site(), here))

    # mypy reports a lambda that fits no overload against the first. `TypeIs` as the first would hide an error
    # inside of it; `Literal[True]`, which says no more than `bool` below, is there to be reported against.
    @overload
    def filter(self, predicate: Callable[[T_co], Literal[True]], /) -> Stream[T_co]: ...
    @overload
    def filter(self, predicate: Callable[[T_co], TypeIs[U]], /) -> Stream[U]: ...
    @overload
    def filter(self, predicate: Callable[[T_co], bool], /) -> Stream[T_co]: ...
    def filter(self, predicate: Callable[[Any], bool], /) -> Stream[Any]:
        """Keep the items for which the predicate holds, in order."""
        return Stream(filter_node(self.node, predicate, call_site()))

    def tap(self, function: Callable[[T_co], object], /) -> Stream[T_co]:
        """Call a function with every item, in the driver, and pass the item on."""
        return Stream(tap_node(self.node, function, call_site()))

    def until(self, predicate: Callable[[T_co], bool], /) -> Stream[T_co]:
        """End the stream after the first item for which the predicate holds; that item is delivered."""
        return Stream(until_node(self.node, predicate, call_site()))

    @overload  # see filter
    def partition(
        self, predicate: Callable[[T_co], Literal[True]], /, *, buffer: int
    ) -> tuple[Stream[T_co], Stream[T_co]]: ...
    @overload
    def partition(
        self, predicate: Callable[[T_co], TypeIs[U]], /, *, buffer: int
    ) -> tuple[Stream[U], Stream[T_co]]: ...
    @overload
    def partition(
        self, predicate: Callable[[T_co], bool], /, *, buffer: int
    ) -> tuple[Stream[T_co], Stream[T_co]]: ...
    def partition(
        self, predicate: Callable[[Any], bool], /, *, buffer: int
    ) -> tuple[Stream[Any], Stream[Any]]:
        """Split by a predicate: the items for which it holds, and the others, each in order (law 15).

        Args:
            predicate: decides on which side an item goes; a `TypeIs` narrows the first side's type.
            buffer: how many items may wait for a side that is not asked.
        """
        name = f"partition({name_of(predicate)})"
        check_fits(self.node, taken_type(predicate, 0), name, call_site())
        first, second = _outlets(self.node, name, 2, buffer, predicate)
        return Stream(first), Stream(second)

    @overload
    def fork(self, outlets: Literal[2], /, *, buffer: int) -> tuple[Stream[T_co], Stream[T_co]]: ...
    @overload
    def fork(
        self, outlets: Literal[3], /, *, buffer: int
    ) -> tuple[Stream[T_co], Stream[T_co], Stream[T_co]]: ...
    @overload
    def fork(self, outlets: int, /, *, buffer: int) -> tuple[Stream[T_co], ...]: ...
    def fork(self, outlets: int, /, *, buffer: int) -> tuple[Stream[T_co], ...]:
        """The same items for several consumers, each in order (law 14).

        Args:
            outlets: how many consumers.
            buffer: how many items a consumer may be behind before the others wait for it.
        """
        check_positive(outlets, "fork(outlets)")
        outs = _outlets(self.node, f"fork({outlets})", outlets, buffer, None)
        return tuple(Stream(out) for out in outs)

    def zip(self, other: Stream[R], /) -> Stream[tuple[T_co, R]]:
        """Pairs of the k-th items of both streams; ends when one of them does, and then stops the other."""
        site = call_site()
        if not isinstance(other, Stream):
            raise PlanError(
                f"{site}: zip takes another Stream, not {other!r}; shards are to be gathered first"
            )
        for node in (self.node, other.node):
            check_not_drained(node, "zip", site)
        node = nodes.Zip(
            name="zip",
            site=site,
            item_type=pair_of(self.node.delivered_type, other.node.delivered_type),
            left=self.node,
            right=other.node,
        )
        check_linear(node)
        return Stream(node)

    def reply(
        self: Stream[Sourced[A, V]],
        method: Callable[[V, Message], object],
        message: Callable[[A], Message],
        /,
    ) -> Stream[A]:
        """Answer just the actors that each item came from, and pass the plain item on (law 9).

        Args:
            method: the method of the source's class that takes the message, such as
                ``RolloutWorker.set_weights``.
            message: makes the message from the item.
        """
        return Stream(reply_node(self.node, method, message, call_site()))

    def run(
        self,
        engine: Literal["inline", "ray"] | Engine = "inline",
        *,
        record: bool = False,
        resume: Checkpoint | str | PathLike[str] | None = None,
    ) -> Run[T_co]:
        """Run the plan: returns an iterator over its items that is also a context manager.

        Args:
            engine: where it runs. ``"inline"``: in this process. ``"ray"``: on Ray actors of this machine.
                An engine object for anything else: `pipeflow.lowering.engines.ray.Ray` with an address, or
                `pipeflow.lowering.engines.sim.Sim` with a seed.
            record: whether to keep the trace of the run's events, `Run.trace`.
            resume: what `Run.checkpoint` returned of a run of this plan, or the folder that it wrote; goes on
                there.

        Raises:
            PlanError: a stream of the plan feeds two places.
            CheckpointError: there is no checkpoint at `resume`, or it is damaged, or of another plan.
            EngineError: the engine is unknown, or cannot be started or reached.
        """
        # The only arrow that points up from the DSL, and only when it is called.
        from pipeflow.lowering.run import Run

        return Run(self.node, engine, record=record, resume=resume)


@final
class Merged(Stream[T_co]):
    """A union whose policy can be set. Unset, a branch is served when it has an item ready (law 12)."""

    def round_robin(self, *weights: int) -> Stream[T_co]:
        """Serve the branches in turns: every cycle takes `weights[i]` items of branch i, in order (law 11).

        A branch that is not ready, or whose filter rejected an item, passes its turn.

        Args:
            weights: one positive number a branch; none means one each.
        """
        for weight in weights:
            check_positive(weight, "round_robin(weights)")
        return self._weighed("round_robin", weights)

    def by_steps(self: Merged[HasSteps], *weights: float) -> Stream[T_co]:
        """Keep the steps of the branches in proportion: those of branch i to all as `weights[i]` to their sum.

        The branch that is furthest behind is served next, by the ``steps`` of its items; what a drained branch
        consumes counts too. One that is not ready, or whose filter rejected an item, passes its turn and is owed
        nothing for it (law 11).

        Args:
            weights: one positive number a branch, such as steps trained on for each step sampled.
        """
        if not weights or min(weights) <= 0:
            message = f"by_steps(weights) needs a positive number for every branch, got {weights}"
            raise ValueError(message)
        for branch in self._union.branches:
            check_counts(branch, "by_steps", call_site())
        return self._weighed("by_steps", weights)

    def prioritised(self) -> Stream[T_co]:
        """Serve the first branch that has an item ready: an earlier one always before a later (law 12)."""
        return Stream(dataclasses.replace(self._union, policy="prioritised", name="prioritised"))

    def async_(self) -> Stream[T_co]:
        """Serve every branch as soon as it has an item ready; no branch starves (law 12)."""
        return Stream(dataclasses.replace(self._union, policy="async"))

    # `Any`: the callers' signatures state the type.
    def _weighed(self, policy: nodes.UnionPolicy, weights: Sequence[float]) -> Stream[Any]:
        branches = len(self._union.branches)
        if weights and len(weights) != branches:
            given = f"{len(weights)} {'weight' if len(weights) == 1 else 'weights'}"
            message = f"{call_site()}: {policy} has {given} for {branches} branches"
            raise PlanError(message)
        weights = tuple(weights) or (1,) * branches
        return Stream(dataclasses.replace(self._union, policy=policy, weights=weights, name=policy))

    @property
    def _union(self) -> nodes.Union:
        assert isinstance(self.node, nodes.Union)
        return self.node


def _joined_branches(left: Expression, right: object, kind: type[Expression]) -> tuple[Node, ...]:
    """The branches of ``left & right``, or `PlanError` where the right operand is not of the same kind."""
    if isinstance(right, kind):
        return (*_branches(left.node), *_branches(right.node))
    if isinstance(right, Expression):
        advice = "gather the shards first, or join two parallel streams"
    else:
        advice = "& joins two streams; did you mean | ?"
    raise PlanError(f"{call_site()}: {left!r} & {right!r}: {advice}")


def _branches(node: Node) -> tuple[Node, ...]:
    """The branches of a union without a policy: ``a & b & c`` is one union of three (law 10)."""
    if isinstance(node, nodes.ParallelUnion) or (isinstance(node, nodes.Union) and node.policy == "async"):
        return node.branches
    return (node,)


def _outlets(
    node: Node, name: str, count: int, buffer: int, predicate: Callable[[Any], bool] | None
) -> list[Node]:
    check_positive(buffer, f"{name}, buffer")
    site = call_site()
    check_not_drained(node, name, site)
    share = nodes.Share(
        name=name,
        site=site,
        item_type=node.item_type,
        input=node,
        outlets=count,
        buffer=buffer,
        predicate=predicate,
    )
    types = [node.item_type] * count
    if predicate is not None:
        types[0] = narrowed_type(node, predicate)
    return [
        nodes.Outlet(name=f"{name}[{index}]", site=site, item_type=item_type, input=share, index=index)
        for index, item_type in enumerate(types)
    ]
