"""The executor: one small loop that pulls a plan's items, the same for every engine.

Every node that acts on the driver is a cursor with ``poll() -> item | signal``, and poll never blocks. When the
root has nothing, the loop waits for any of the outstanding calls of the whole plan; it never spins. When nothing
is outstanding either, the plan can never go on, and that is a `DeadlockError`.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from pipeflow.dsl.errors import ActorDiedError, DeadlockError, EngineError, StageError
from pipeflow.dsl.item_types import name_of
from pipeflow.dsl.nodes import Group, Node, ReplyWeights, SyncWeights
from pipeflow.dsl.sites import call_site
from pipeflow.dsl.sourced import Source, Sourced
from pipeflow.dsl.trees import group_names, groups_of, walk
from pipeflow.lowering.cursors import BufferCursor, Cursor, cursor_of
from pipeflow.lowering.engine import Actor, Call, Engine
from pipeflow.lowering.host import Answer, Host
from pipeflow.lowering.items import Item, Signal
from pipeflow.lowering.program import Failure, Program, Status
from pipeflow.lowering.reading import read_on_driver
from pipeflow.lowering.recording import Recorder
from pipeflow.lowering.restarts import Installed, Restarts
from pipeflow.lowering.stats import Meter, NodeStats, RunStats
from pipeflow.semantics.events import Closed, Purpose, Stopped

# A filter that rejects everything never waits: after so many answers without an item the executor looks what else
# has finished.
_PASSES_UNHEARD = 64


class _Purpose(NamedTuple):
    """Whom an outstanding call is for: its node, and the program that it runs, if it runs one."""

    node: Node
    installed: Installed | None


class Executor:
    """A plan while it runs on an engine."""

    def __init__(self, root: Node, engine: Engine, recorder: Recorder | None = None) -> None:
        self.engine = engine
        self.recorder = recorder
        self.nodes = list(walk(root))
        self.number = {id(node): index for index, node in enumerate(self.nodes)}
        self.meters = [Meter() for _ in self.nodes]
        self.cursors: dict[int, Cursor] = {}
        # Counts what moved, so that a source which was not ready is asked again only after something did.
        self.epoch = 0
        # Counts how often the engine was asked what has finished.
        self.looks = 0
        # What runs ahead of whoever reads it.
        self.buffers: list[BufferCursor] = []
        # When to ask the root again though nothing has finished, as it said when it was asked last.
        self._alarm = math.inf
        # How many weights each actor was sent, by the actor's name: a restarted actor goes on where it stood.
        self.versions: Counter[str] = Counter()
        # The gathers and placed stages whose items the driver reads, by identity.
        self.read_here = read_on_driver(root, self.number)
        # How many calls have to finish before the root has anything new, as it said when it was asked last.
        self._needed = math.inf
        self._groups = groups_of(root)
        self._names = group_names(root)
        self._actors: dict[int, list[Actor]] = {}
        self._outstanding: dict[Call, _Purpose] = {}
        self._restarts = Restarts()
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
        passes = 0
        while True:
            self._alarm = self._needed = math.inf
            found = self._cursor.poll()
            if isinstance(found, Item):
                yield self.delivered(found)
            elif found is Signal.DONE:
                self._apply_messages()
                return
            elif found is Signal.PENDING or found is Signal.NOT_READY:
                if self._run_ahead():
                    self.look()
                else:
                    self._wait()
            else:
                passes += 1
                if passes % _PASSES_UNHEARD == 0:
                    self.look()

    def ask(self, group: Group, method: Callable[..., object]) -> list[object]:
        """What the method returns on every actor of a group, in order."""
        if group not in self._groups:
            known = ", ".join(known.name for known in self._groups) or "none"
            message = f"{group.name} ({group.site}) is no group of this plan; its groups are: {known}"
            raise LookupError(message)
        self.start()
        self._alarm = self._needed = math.inf
        node = Node(name=f"ask({name_of(method)})", site=call_site())
        calls = [self.submit(node, actor, Host.ask, method) for actor in self.actors(group)]
        while True:
            unanswered = [index for index, call in enumerate(calls) if call.reply is None]
            lost = [i for i, call in enumerate(calls) if call.reply and call.reply.status is Status.DIED]
            for index in lost:  # the actor was started again: ask the new one
                calls[index] = self.submit(node, self.actors(group)[index], Host.ask, method)
            if not unanswered and not lost:
                return [self.engine.fetch(call.item) for call in calls]
            self._wait()

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
            if self.recorder is not None:
                for actor in groups:
                    self.recorder.record(Stopped(actor.name))
                self.recorder.record(Closed())
        for call in closings:
            if (
                call.reply is not None
                and call.reply.status is Status.FAILED
                and call.reply.failure is not None
            ):
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
                    node.name,
                    str(node.site),
                    meter.taken,
                    meter.made,
                    meter.busy,
                    meter.waiting,
                    queue,
                    meter.lag_sum / meter.made if meter.made else 0.0,
                    meter.lag_max,
                )
            )
        return RunStats(self.engine.name, tuple(found))

    # What cursors use

    def actors(self, group: Group) -> list[Actor]:
        """The running actors of a group, by index."""
        return self._actors[id(group)]

    def install(self, node: Node, group: Group, index: int, program: Program) -> Installed:
        """Install a program in an actor, for `run` to run."""
        actor = self.actors(group)[index]
        installed = self._restarts.installed(actor.name, node, program)
        if self.recorder is not None:
            self.recorder.installed(actor.name, program)
        self._install(actor, installed)
        return installed

    # `Any`: a host's methods differ in their arguments.
    def run(
        self,
        installed: Installed,
        actor: Actor,
        method: Callable[..., Answer],
        *args: Any,
        purpose: Purpose = "item",
        given: Item | None = None,
    ) -> Call:
        """Run a program that is installed in an actor: a method of `Host` that takes its key last."""
        return self.submit(
            installed.node, actor, method, *args, *installed.named,
            installed=installed, purpose=purpose, given=given, apart=installed.program.apart,
        )  # fmt: skip

    def advance(self, installed: Installed, actor: Actor) -> Call:
        """Run a program from its source until one item is finished."""
        method = Host.advance_by_key if installed.named else Host.advance
        return self.run(installed, actor, method)

    def advance_together(self, installed: Installed, actor: Actor) -> Sequence[Call]:
        """Run an actor's first program for as many items as it says, with one call where the engine can."""
        program = installed.program
        calls = self.engine.submit_together(actor, program.together, apart=program.apart)
        for call in calls:
            self._issued(call, installed.node, installed, "item", None)
        return calls

    def feed(self, installed: Installed, actor: Actor, item: Item) -> Call:
        """Give a program an item: by reference where it is remote; of a list, each member by itself."""
        if item.parts is None:
            return self.run(installed, actor, Host.feed, item.argument, given=item)
        parts = tuple(self.argument(part) for part in item.parts)
        return self.submit(
            installed.node, actor, Host.feed_list, installed.key, *parts,
            installed=installed, purpose="item", given=item, apart=installed.program.apart,
        )  # fmt: skip

    def broadcast(self, node: SyncWeights | ReplyWeights, group: Group) -> None:
        """Send a learner's weights to all actors of a group, by reference."""
        self.send_weights(node, group, self.actors(group))

    def send_weights(
        self, node: SyncWeights | ReplyWeights, group: Group, receivers: Sequence[Actor]
    ) -> None:
        """Send a learner's weights to some actors of a group, by reference; a restarted one gets them as well."""
        learner = self.actors(node.learner)[0]
        call = self.submit(node, learner, Host.lend, node.get, apart=True)
        weights = Item(handle=call.item, call=call)
        self._restarts.broadcast(node, group, weights)
        for receiver in receivers:
            self._send_weights(node, receiver, weights, "weights")

    # `Any`: a host's methods differ in their arguments.
    def submit(
        self,
        node: Node,
        actor: Actor,
        method: Callable[..., Answer],
        *args: Any,
        installed: Installed | None = None,
        purpose: Purpose = "setup",
        given: Item | None = None,
        apart: bool = False,
    ) -> Call:
        """Call a host on behalf of a node. A failure in it ends the run even if nobody looks at the call.

        `installed` is the program that the call runs, `purpose` what it is for, `given` the item that it takes
        along. `apart` is as in `Engine.submit`.
        """
        try:
            call = self.engine.submit(actor, method, *args, apart=apart)
        except Exception as error:  # pickling runs code of the user's classes, which may raise anything
            if installed is not None:
                node = self._unsendable(actor, installed)
            told = error.__cause__ or error  # an engine wraps what its pickling raised
            reason = (str(told).strip() or type(told).__name__).splitlines()[0]
            message = f"{node.site}: what {node.name} needs cannot be sent to {actor.name}: {reason}"
            raise EngineError(message) from error
        self._issued(call, node, installed, purpose, given)
        return call

    def _issued(
        self, call: Call, node: Node, installed: Installed | None, purpose: Purpose, given: Item | None
    ) -> None:
        if purpose == "weights":
            self.versions[call.actor.name] += 1
        call.version = self.versions[call.actor.name]
        if self.recorder is not None:
            program = None if installed is None else installed.program
            self.recorder.called(call, node, purpose, given, program)
        self._outstanding[call] = _Purpose(node, installed)

    def value(self, item: Item) -> object:
        """The item itself; fetched once where it is remote."""
        if item.parts is not None:
            return [self.value(part) for part in item.parts]
        if item.handle is not None:
            item.value, item.handle = self.engine.fetch(item.handle), None
        return item.value

    def argument(self, item: Item) -> object:
        """The item as an argument of a call: by reference where it is remote; only a list is read for it."""
        return item.argument if item.parts is None else self.value(item)

    def delivered(self, item: Item) -> object:
        """The item as its stream's type says: together with its source where the stream is `Sourced`."""
        value = self.value(item)
        if not item.origins:
            return value
        return Sourced(value, tuple(Source(origin.group.name, origin.index) for origin in item.origins))

    def copied(self, item: Item) -> Item:
        """The same item for another branch, sharing nothing writable with this one (law 26)."""
        if item.parts is not None:
            return Item(parts=tuple(self.copied(part) for part in item.parts), origins=item.origins)
        if item.handle is not None:
            return Item(handle=self.engine.duplicate(item.handle), origins=item.origins)
        return Item(copy.deepcopy(item.value), origins=item.origins)

    def sources_of(self, item: Item) -> list[Actor]:
        """The running actors that an item came from."""
        return [self.actors(origin.group)[origin.index] for origin in item.origins]

    def fail(
        self, node: Node, item: int, error: BaseException, actor: str = "driver", trace: str = ""
    ) -> NoReturn:
        """End the run with an error of user code."""
        raise StageError(node.name, str(node.site), actor, item, error, trace) from error

    # Waiting

    def wake_at(self, time: float) -> None:
        """Let whoever is being asked be asked again at a time of the engine's clock, if nothing happens before."""
        self._alarm = min(self._alarm, time)

    def awaits(self, calls: int) -> None:
        """Say that whoever is being asked needs so many calls to finish before it has anything new."""
        self._needed = min(self._needed, calls)

    def look(self) -> None:
        """Take note of what has finished, without waiting.

        For a union or a buffer that could be served for ever by what never waits, so that the others are heard.
        """
        if self._outstanding:
            self._wait(0.0)

    def _start_group(self, group: Group) -> None:
        self._actors[id(group)] = [self._start_actor(group, index) for index in range(group.count)]

    def _start_actor(self, group: Group, index: int, restart: bool = False) -> Actor:
        owner = Node(name=f"actors({group.name}, {group.count})", site=group.site)
        actor = self.engine.start(f"{self._names[id(group)]}[{index}]", index, dict(group.resources))
        if self.recorder is not None:
            self.recorder.spawned(actor.name, restart)
        shard = () if group.shards is None else (group.shards[index],)
        self.submit(owner, actor, Host.build, group.factory, (*shard, *group.args), dict(group.kwargs))
        return actor

    def _install(self, actor: Actor, installed: Installed) -> None:
        key, program = installed.key, installed.program
        self.submit(installed.node, actor, Host.install, key, program, installed=installed)

    def _send_weights(
        self, node: SyncWeights | ReplyWeights, worker: Actor, weights: Item, purpose: Purpose
    ) -> None:
        self.submit(node, worker, Host.message, node.set, weights.argument, purpose=purpose, given=weights)

    def _restart(self, dead: Actor, node: Node, reason: str) -> None:
        """Start a dead actor again, with its programs and the latest weights of its group (law 19).

        Raises:
            ActorDiedError: its group may not be restarted, or not again.
        """
        group, index = next(
            (group, self.actors(group).index(dead)) for group in self._groups if dead in self.actors(group)
        )
        if not self._restarts.allowed(group):
            again = f" after {group.restarts} restarts" if group.restarts else ""
            message = (
                f"{dead.name} died{again} while the run needed it for {node.name} ({node.site}): {reason}; "
                f"let its group be restarted with actors(...).restarts(n), written at {group.site}"
            )
            raise ActorDiedError(message)
        actor = self.actors(group)[index] = self._start_actor(group, index, restart=True)
        for installed in self._restarts.programs(actor.name):
            self._install(actor, installed)
            if group.shards is not None:
                # The data of a shard starts anew: what came of it before is not made again.
                self.submit(
                    installed.node, actor, Host.skip, installed.key, installed.made, installed=installed
                )
        for sync, weights in self._restarts.weights_of(group):
            self._send_weights(sync, actor, weights, "setup")

    def _run_ahead(self) -> bool:
        """Let buffers fill; whether any of them took an item in."""
        moved = [buffer.fill() for buffer in self.buffers]
        return any(moved)

    def _wait(self, timeout: float | None = None) -> None:
        if timeout is None and self._alarm < math.inf:
            timeout = max(self._alarm - self.engine.now(), 0.0)
        if not self._outstanding:
            if timeout is None:
                self._deadlock()
            self.engine.sleep(timeout)
            return
        self.looks += 1
        needed = 1 if self._needed == math.inf else int(self._needed)
        for call in self.engine.wait(list(self._outstanding), timeout, needed):
            self._finish(call)

    def _apply_messages(self) -> None:
        """Wait for the messages that are under way, so that none is lost and none fails unheard (law 20)."""
        while any(purpose.installed is None for purpose in self._outstanding.values()):
            self._wait()

    def _unsendable(self, actor: Actor, installed: Installed) -> Node:
        """The stage of a program that cannot be sent to an actor; the program's node where none is to blame."""
        for step in installed.program.all_steps:
            try:
                self.engine.submit(actor, Host.install, installed.key, Program(steps=(step,)))
            except Exception:
                return self.nodes[step.node]
        return installed.node

    def _finish(self, call: Call) -> None:
        node, installed = self._outstanding.pop(call)
        reply = call.reply
        assert reply is not None
        self._finished += 1
        call.finished = self._finished
        if self.recorder is not None:
            self.recorder.finished(call)
        if reply.status is not Status.NOT_READY:
            self.epoch += 1
        if installed is not None and reply.tallies:
            for number, tally in zip(installed.nodes, reply.tallies, strict=True):
                self.meters[number].add(tally)
            if installed.program.source is not None:
                installed.made += reply.tallies[0].made
        if reply.status is Status.DIED:
            if any(call.actor in self.actors(group) for group in self._groups):
                told = "" if reply.failure is None else str(reply.failure.cause)
                self._restart(call.actor, node, (told.strip() or "its process is gone").splitlines()[0])
        elif reply.failure is not None:
            failure = reply.failure
            if installed is not None:
                # What was made could not be sent where no step is to blame, and -1 is what made it.
                node = self.nodes[installed.nodes[failure.step]]
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
