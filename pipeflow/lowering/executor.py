"""The executor: one small loop that pulls a plan's items, the same for every engine.

Every node that acts on the driver is a cursor with ``poll() -> item | signal``, and poll never blocks. When the
root has nothing, the loop waits for any of the outstanding calls of the whole plan; it never spins. When nothing
is outstanding either, the plan can never go on, and that is a `DeadlockError`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from pipeflow.dsl.errors import DeadlockError, EngineError, StageError
from pipeflow.dsl.item_types import name_of
from pipeflow.dsl.nodes import Group, Node, groups_of, walk
from pipeflow.dsl.sites import call_site
from pipeflow.dsl.sourced import Source, Sourced
from pipeflow.lowering.cursors import Cursor, cursor_of
from pipeflow.lowering.engine import Actor, Call, Engine
from pipeflow.lowering.host import Answer, Host
from pipeflow.lowering.items import Item, Origin, Signal
from pipeflow.lowering.program import Failure, Program, Status
from pipeflow.lowering.stats import Meter, NodeStats, RunStats


class Executor:
    """A plan while it runs on an engine."""

    def __init__(self, root: Node, engine: Engine) -> None:
        self.engine = engine
        self.nodes = list(walk(root))
        self.number = {id(node): index for index, node in enumerate(self.nodes)}
        self.meters = [Meter() for _ in self.nodes]
        self.cursors: dict[int, Cursor] = {}
        # Counts what moved, so that a source which was not ready is asked again only after something did.
        self.epoch = 0
        # Counts how often the engine was asked what has finished.
        self.looks = 0
        self._groups = groups_of(root)
        self._actors: dict[int, list[Actor]] = {}
        self._outstanding: dict[Call, tuple[Node, Program | None]] = {}
        self._programs = 0
        self._finished = 0
        self._opened = False
        self._root = root
        self._cursor: Cursor | None = None

    # Running

    def start(self) -> None:
        """Start the engine and the actors, and install the programs."""
        if self._opened:
            return
        self.engine.open()
        self._opened = True
        for group in self._groups:
            self._start_group(group)
        self._cursor = cursor_of(self, self._root)

    def items(self) -> Iterator[object]:
        """The plan's items."""
        self.start()
        assert self._cursor is not None
        while True:
            found = self._cursor.poll()
            if isinstance(found, Item):
                yield self.delivered(found)
            elif found is Signal.DONE:
                self._apply_messages()
                return
            elif found is Signal.PENDING or found is Signal.NOT_READY:
                self._wait()

    def ask(self, group: Group, method: Callable[..., object]) -> list[object]:
        """What the method returns on every actor of a group, in order."""
        if group not in self._groups:
            known = ", ".join(known.name for known in self._groups) or "none"
            message = f"{group.name} ({group.site}) is no group of this plan; its groups are: {known}"
            raise LookupError(message)
        self.start()
        node = Node(name=f"ask({name_of(method)})", site=call_site())
        calls = [self.submit(node, actor, Host.ask, method) for actor in self.actors(group)]
        while any(call.reply is None for call in calls):
            self._wait()
        return [self.engine.fetch(call.item) for call in calls]

    def stop(self) -> None:
        """End all actors of the run and give back what the engine took.

        Raises:
            StageError: an actor's ``close`` raised. All the others were closed all the same.
        """
        if not self._opened:
            return
        self._opened = False
        self._outstanding.clear()
        groups = {actor: group for group in self._groups for actor in self._actors.get(id(group), ())}
        self._actors.clear()
        try:
            closings = self.engine.stop(list(groups))
        finally:
            self.engine.close()
        for call in closings:
            if call.reply is not None and call.reply.failure is not None:
                group = groups[call.actor]
                self._fail_in_actor(
                    Node(name=f"{group.name}.close", site=group.site), call, call.reply.failure
                )

    def stats(self) -> RunStats:
        """The figures of every node so far."""
        found: list[NodeStats] = []
        for index, (node, meter) in enumerate(zip(self.nodes, self.meters, strict=True)):
            cursor = self.cursors.get(index)
            queue = 0 if cursor is None else cursor.queue
            found.append(
                NodeStats(
                    node.name, str(node.site), meter.taken, meter.made, meter.busy, meter.waiting, queue
                )
            )
        return RunStats(self.engine.name, tuple(found))

    # What cursors use

    def actors(self, group: Group) -> list[Actor]:
        """The running actors of a group, by index."""
        return self._actors[id(group)]

    def install(self, node: Node, group: Group, index: int, program: Program) -> int:
        """Install a program in an actor; the key that its calls name."""
        self._programs += 1
        self.submit(node, self.actors(group)[index], Host.install, self._programs, program, program=program)
        return self._programs

    # `Any`: a host's methods differ in their arguments.
    def submit(
        self,
        node: Node,
        actor: Actor,
        method: Callable[..., Answer],
        *args: Any,
        program: Program | None = None,
    ) -> Call:
        """Call a host on behalf of a node. A failure in it ends the run even if nobody looks at the call."""
        try:
            call = self.engine.submit(actor, method, *args)
        except Exception as error:  # pickling runs code of the user's classes, which may raise anything
            node = self._unsendable(node, actor, program)
            told = error.__cause__ or error  # an engine wraps what its pickling raised
            reason = (str(told).strip() or type(told).__name__).splitlines()[0]
            message = f"{node.site}: what {node.name} needs cannot be sent to {actor.name}: {reason}"
            raise EngineError(message) from error
        self._outstanding[call] = (node, program)
        return call

    def value(self, item: Item) -> object:
        """The item itself; fetched once where it is remote."""
        if item.parts is not None:
            return [self.value(part) for part in item.parts]
        if item.handle is not None:
            item.value, item.handle = self.engine.fetch(item.handle), None
        return item.value

    def delivered(self, item: Item) -> object:
        """The item as its stream's type says: together with its source where the stream is `Sourced`."""
        value = self.value(item)
        if item.origin is None:
            return value
        return Sourced(value, Source(item.origin.group.name, item.origin.index))

    def copied(self, item: Item) -> Item:
        """The same item for another branch, sharing nothing writable with this one (law 26)."""
        if item.parts is not None:
            return Item(parts=tuple(self.copied(part) for part in item.parts), origin=item.origin)
        if item.handle is not None:
            return Item(handle=self.engine.duplicate(item.handle), origin=item.origin)
        return Item(copy.deepcopy(item.value), origin=item.origin)

    def origin_of(self, item: Item) -> Actor:
        """The running actor that an item came from."""
        assert isinstance(item.origin, Origin)
        return self.actors(item.origin.group)[item.origin.index]

    def fail(
        self, node: Node, item: int, error: BaseException, actor: str = "driver", trace: str = ""
    ) -> NoReturn:
        """End the run with an error of user code."""
        raise StageError(node.name, str(node.site), actor, item, error, trace) from error

    # Waiting

    def look(self) -> None:
        """Take note of what has finished, without waiting.

        For a union that could be served for ever by branches which never wait, so that the others are heard.
        """
        if self._outstanding:
            self._wait(0.0)

    def _start_group(self, group: Group) -> None:
        owner = Node(name=f"actors({group.name}, {group.count})", site=group.site)
        started: list[Actor] = []
        self._actors[id(group)] = started
        for index in range(group.count):
            name = f"{group.name}[{index}]"
            actor = self.engine.start(name, index, dict(group.resources))
            started.append(actor)
            shard = () if group.shards is None else (group.shards[index],)
            self.submit(owner, actor, Host.build, group.factory, (*shard, *group.args), dict(group.kwargs))

    def _wait(self, timeout: float | None = None) -> None:
        if not self._outstanding:
            self._deadlock()
        self.looks += 1
        for call in self.engine.wait(list(self._outstanding), timeout):
            self._finish(call)

    def _apply_messages(self) -> None:
        """Wait for the messages that are under way, so that none is lost and none fails unheard (law 20)."""
        while any(program is None for _, program in self._outstanding.values()):
            self._wait()

    def _unsendable(self, node: Node, actor: Actor, program: Program | None) -> Node:
        """The stage of a program that cannot be sent to an actor; the given node where none is to blame."""
        for step in () if program is None else program.all_steps:
            try:
                self.engine.submit(actor, Host.install, self._programs, Program(steps=(step,)))
            except Exception:
                return self.nodes[step.node]
        return node

    def _finish(self, call: Call) -> None:
        node, program = self._outstanding.pop(call)
        reply = call.reply
        assert reply is not None
        self._finished += 1
        call.finished = self._finished
        if reply.status is not Status.NOT_READY:
            self.epoch += 1
        if program is not None and reply.tallies:
            for step, tally in zip(program.all_steps, reply.tallies, strict=True):
                self.meters[step.node].add(tally)
        if reply.failure is not None:
            failure = reply.failure
            if program is not None:
                # What was made could not be sent where no step is to blame, and -1 is what made it.
                node = self.nodes[program.all_steps[failure.step].node]
            self._fail_in_actor(node, call, failure)

    def _fail_in_actor(self, node: Node, call: Call, failure: Failure) -> NoReturn:
        self.fail(node, failure.item, failure.cause, call.actor.name, failure.trace)

    def _deadlock(self) -> NoReturn:
        waiting = [
            f"{self.nodes[index].name} ({self.nodes[index].site}) waits for {cursor.waits_for}"
            for index, cursor in self.cursors.items()
            if cursor.waits_for
        ]
        message = "the plan can never go on: " + ("; ".join(waiting) or "no node can move")
        raise DeadlockError(message)
