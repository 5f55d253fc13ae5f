"""The expression tree: one frozen node for every stage that a user wrote.

Nodes are plain data. They know what was written and where, not how it runs: the lowering reads them, and so
do `explain` and `to_mermaid`. Two nodes are the same only if they are the same object, for a stage that is
written twice is two stages.

Where later operators go: a source, a transform, a gate or a message is a new `Operator` over the nodes that
are here (`shuffle` is an `Expand`, `once_per_steps` a `Gate`); what is concurrent in a new way is a new node
beside `Union` and `Share`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Never, Protocol, runtime_checkable

from typing_extensions import override

from pipeflow.dsl.item_types import UNKNOWN, ItemType, show
from pipeflow.dsl.sites import Site
from pipeflow.dsl.sourced import Sourced

# The nodes hold functions of every signature. Their types were checked where the stage was written; a node
# only carries them to the place that calls them, hence `...`.
Function = Callable[..., Any]

OnError = Literal["raise", "restart", "drop_shard"]
"""What an error in an actor means: the end of the run, a new start of the actor, or the end of its shards."""

Placement = Literal["spread", "pack"]
"""How actors share the nodes of a cluster: on as many of them as possible, or on as few."""


class Expansion(Protocol):
    """The state of an expanding stage while it runs: zero or more outputs for every input."""

    # `Any`: one protocol for the states of all expanding stages; `Expand[A, B]` is what types them.
    def push(self, item: Any, /) -> Iterable[Any]:
        """Take one item and return the outputs that it completes."""
        ...

    def finish(self) -> Iterable[Any]:
        """Return what is left, such as a partial batch, when the input has ended (law 18)."""
        ...


class Gating(Protocol):
    """The state of a gate while it runs."""

    @property
    def closed(self) -> bool:
        """Whether no further item will be admitted; the stream then ends without asking for another."""
        ...

    # `Any`: a gate that does not read its items is handed None instead.
    def admit(self, item: Any, /) -> bool:
        """Whether the item goes on."""
        ...


@runtime_checkable
class Closing(Protocol):
    """The state of a gate that holds something open, such as a file, until the run is over."""

    def close(self, error: BaseException | None, /) -> None:
        """Give it back. error: what ended the run early, None where nothing did."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Group:
    """A number of identical actors, as described by `actors`; started when a run begins.

    `shards`, where given, is one further first argument for each actor. `restarts` is how often an actor of the
    group may be started again, `on_error` what an error in user code means, and a death for which no restart is
    left. `time_limit` is how many seconds a call may take, None for as long as it likes. `placement` is how the
    actors share the nodes of a cluster, None where the cluster decides.
    """

    factory: Function
    count: int
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict[str, object])
    shards: tuple[object, ...] | None = None
    resources: Mapping[str, float] = field(default_factory=dict[str, float])
    restarts: int = 0
    on_error: OnError = "raise"
    time_limit: float | None = None
    placement: Placement | None = None
    name: str
    site: Site


@dataclass(frozen=True, eq=False, kw_only=True)
class Node:
    """A stage of the plan: its readable name, where it was written, and the type of the items it delivers."""

    name: str
    site: Site
    item_type: ItemType = UNKNOWN

    # Whether items that are `Sourced` before the node are so after it.
    keeps_source: ClassVar[bool] = False

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes that this one takes its items from."""
        return ()

    @property
    def groups(self) -> tuple[Group, ...]:
        """The actor groups that this node itself uses."""
        return tuple(value for value in vars(self).values() if isinstance(value, Group))

    @property
    def parallel(self) -> bool:
        """Whether the node runs inside each shard, before a gather."""
        return any(node.parallel for node in self.inputs)

    @property
    def sourced(self) -> bool:
        """Whether its items are `Sourced`."""
        return self.keeps_source and all(node.sourced for node in self.inputs if not node.drained)

    @property
    def partly_sourced(self) -> bool:
        """Whether some of its items may be `Sourced`, as behind a union of such a stream and another."""
        return self.keeps_source and any(node.partly_sourced for node in self.inputs)

    @property
    def drained(self) -> bool:
        """Whether it delivers nothing and is consumed for its side effects."""
        return False

    @property
    def delivered_type(self) -> ItemType:
        """The type of what a function on the driver is given: `Sourced` around the item's where it is that."""
        if not self.sourced:
            return self.item_type
        makers = {group.factory for group in producers_of(self)}
        maker = makers.pop() if len(makers) == 1 else object
        return Sourced[self.item_type, maker if isinstance(maker, type) else object]  # type: ignore[misc, name-defined]

    @property
    def type_name(self) -> str:
        """The stream that the node makes, as a user would write its type."""
        return f"{'ParallelStream' if self.parallel else 'Stream'}[{show(self.delivered_type)}]"


# Sources


@dataclass(frozen=True, eq=False, kw_only=True)
class FromItems(Node):
    """The items of an iterable, read by the driver."""

    items: Iterable[object]


@dataclass(frozen=True, eq=False, kw_only=True)
class Produce(Node):
    """One ordered shard an actor: the results of calling `method` on it again and again."""

    group: Group
    method: Function

    @property
    @override
    def parallel(self) -> bool:
        return True


# Nodes with one input


@dataclass(frozen=True, eq=False, kw_only=True)
class OneInput(Node):
    """A node that takes the items of one other."""

    input: Node

    @property
    @override
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, eq=False, kw_only=True)
class Apply(OneInput):
    """One output for every input: `function` of the item. `here` pins it to the driver."""

    function: Function
    here: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Expand(OneInput):
    """Zero or more outputs for every input; `factory` makes the state."""

    factory: Callable[[], Expansion]


@dataclass(frozen=True, eq=False, kw_only=True)
class Batch(Expand):
    """Lists of `size` consecutive items. Its items may stay where they are: the driver reads none of them."""

    keeps_source: ClassVar[bool] = True
    size: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Concat(Expand):
    """Consecutive batches joined until they hold `min_steps` steps."""

    keeps_source: ClassVar[bool] = True
    min_steps: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Gate(OneInput):
    """Keeps items or drops them. A gate that does not read its items leaves them where they are.

    With `passes_turn` what it drops passes the turn of a union: it may wait for what another branch does.
    """

    keeps_source: ClassVar[bool] = True
    factory: Callable[[], Gating]
    reads: bool
    passes_turn: bool = False


GatherMode = Literal["sync", "rounds", "async"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Gather(OneInput):
    """Turns the shards into one stream: in rounds behind a barrier, or as they come."""

    mode: GatherMode
    num_async: int
    with_source: bool

    @property
    @override
    def parallel(self) -> bool:
        return False

    @property
    @override
    def sourced(self) -> bool:
        return self.with_source

    @property
    @override
    def partly_sourced(self) -> bool:
        return self.with_source


@dataclass(frozen=True, eq=False, kw_only=True)
class MaxLag(OneInput):
    """Delivers no item of a gather that is more than `limit` weights behind (law 24).

    Older ones are dropped; with `wait`, the faster shards wait so that none gets older.
    """

    keeps_source: ClassVar[bool] = True

    limit: int
    wait: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Buffer(OneInput):
    """Lets up to `size` items run ahead of whoever reads them (law 16)."""

    keeps_source: ClassVar[bool] = True
    size: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Pace(OneInput):
    """Lets an item pass once in `seconds`. What comes too soon waits or, where it `drops`, is given up."""

    keeps_source: ClassVar[bool] = True
    seconds: float
    drops: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Scatter(OneInput):
    """Feeds a stream to the actors of a group, in each of which it goes on as a shard.

    Item k goes to actor ``k % count``, or, with `to_all`, every item to every actor.
    """

    group: Group
    to_all: bool

    @property
    @override
    def parallel(self) -> bool:
        return True


@dataclass(frozen=True, eq=False, kw_only=True)
class SelectShards(OneInput):
    """Some of the shards, by their place."""

    indices: tuple[int, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Place(OneInput):
    """A method of an actor group as a stage."""

    keeps_source: ClassVar[bool] = True
    group: Group
    method: Function
    max_in_flight: int
    ordered: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Send(OneInput):
    """Passes every item on, and sends it to all actors of a group."""

    keeps_source: ClassVar[bool] = True
    group: Group
    method: Function


@dataclass(frozen=True, eq=False, kw_only=True)
class SyncWeights(OneInput):
    """Passes every item on; after every n-th, the weights of `learner` go to all actors of `workers`."""

    keeps_source: ClassVar[bool] = True
    learner: Group
    workers: Group
    get: Function
    set: Function
    every: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Notify(OneInput):
    """Passes every item on; after every n-th, calls `method` on all actors of a group."""

    keeps_source: ClassVar[bool] = True
    group: Group
    method: Function
    every: int


@dataclass(frozen=True, eq=False, kw_only=True)
class ReplyWeights(OneInput):
    """Passes the plain items on; after every n-th of an actor, that actor gets the weights of `learner`."""

    learner: Group
    get: Function
    set: Function
    every: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Reply(OneInput):
    """Sends `message(item)` to every actor that the item came from, once, and passes the plain item on."""

    method: Function
    message: Function


@dataclass(frozen=True, eq=False, kw_only=True)
class Drain(OneInput):
    """Consumes the stream and delivers nothing."""

    item_type: ItemType = Never

    @property
    @override
    def drained(self) -> bool:
        return True


@dataclass(frozen=True, eq=False, kw_only=True)
class Share(OneInput):
    """One stream for several consumers, through bounded buffers.

    With a `predicate` every item goes to the first outlet if it holds and to the second if not; without one,
    every item goes to all outlets (law 14).
    """

    keeps_source: ClassVar[bool] = True
    outlets: int
    buffer: int
    predicate: Function | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Outlet(OneInput):
    """One consumer's end of a `Share`."""

    keeps_source: ClassVar[bool] = True
    input: Share
    index: int


# Nodes with several inputs

UnionPolicy = Literal["async", "round_robin", "by_steps", "prioritised"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Zip(Node):
    """Pairs: the k-th item of `left` with the k-th of `right`; it ends when one of them does."""

    left: Node
    right: Node

    @property
    @override
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, eq=False, kw_only=True)
class Union(Node):
    """The items of several streams, interleaved by a policy (laws 10 to 13).

    `weights` are turns for ``round_robin`` and steps for ``by_steps``, one number a branch.
    """

    keeps_source: ClassVar[bool] = True
    branches: tuple[Node, ...]
    policy: UnionPolicy = "async"
    weights: tuple[float, ...] = ()

    @property
    @override
    def inputs(self) -> tuple[Node, ...]:
        return self.branches

    @property
    @override
    def drained(self) -> bool:
        return all(branch.drained for branch in self.branches)


@dataclass(frozen=True, eq=False, kw_only=True)
class ParallelUnion(Node):
    """The shards of several parallel streams, side by side."""

    branches: tuple[Node, ...]

    @property
    @override
    def inputs(self) -> tuple[Node, ...]:
        return self.branches

    @property
    @override
    def parallel(self) -> bool:
        return True


def producers_of(node: Node) -> tuple[Group, ...]:
    """The groups whose actors the shards of a parallel node run in, or the items of a `Sourced` one came from."""
    if isinstance(node, Produce | Scatter):
        return (node.group,)
    if not (node.parallel or node.sourced):
        return ()
    return tuple(group for child in node.inputs for group in producers_of(child))
