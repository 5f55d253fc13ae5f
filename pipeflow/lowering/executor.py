"""The executor: one small loop that pulls a plan's items, the same for every engine.

Every node that acts on the driver is a cursor with ``poll() -> item | signal``, and poll never blocks. When the
root has nothing, the loop waits for any of the outstanding calls of the whole plan; it never spins. When nothing
is outstanding either, the plan can never go on, and that is a `DeadlockError`.
"""

from __future__ import annotations

import math
from bdb import BdbQuit
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, NoReturn

from pipeflow.dsl.errors import DeadlockError, EngineError, StageError
from pipeflow.dsl.item_types import name_of
from pipeflow.dsl.nodes import Group, Node
from pipeflow.dsl.sites import call_site
from pipeflow.dsl.trees import walk
from pipeflow.lowering.actors import Installed, RunningActors
from pipeflow.lowering.broadcasts import Broadcasts
from pipeflow.lowering.cursors import BufferCursor, Cursor, GateCursor, cursor_of
from pipeflow.lowering.engine import Actor, Call, Engine
from pipeflow.lowering.fusion import places_of
from pipeflow.lowering.host import Host
from pipeflow.lowering.items import Item, Origin, Signal
from pipeflow.lowering.program import Answer, Program, Reply, Status
from pipeflow.lowering.reading import Reader, read_on_driver
from pipeflow.lowering.recording import Recorder
from pipeflow.lowering.stats import Meter, RunStats, Stopwatch, run_stats
from pipeflow.semantics.events import Closed, Purpose, Stopped

# A filter that rejects everything never waits: after so many answers without an item the executor looks what else
# has finished.
_PASSES_UNHEARD = 64
_PUBLISH_SECONDS = 1.0


class Outstanding(NamedTuple):
    """Whom an outstanding call is for: its node, the program that it runs, if it runs one, and why."""

    node: Node
    installed: Installed | None
    purpose: Purpose


class Executor:
    """A plan while it runs on an engine."""

    def __init__(self, root: Node, engine: Engine, recorder: Recorder | None = None) -> None:
        self.engine = engine
        self.recorder = recorder
        self.nodes = list(walk(root))
        self.number = {id(node): index for index, node in enumerate(self.nodes)}
        self.meters = [Meter() for _ in self.nodes]
        # The groups that each node runs in.
        self.places = places_of(root)
        # Seconds inside stages, by the actor's name.
        self.busy: dict[str, float] = {}
        self.stopwatch = Stopwatch()
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
        self.reader = Reader(engine)
        # How many calls have to finish before the root has anything new, as it said when it was asked last.
        self._needed = math.inf
        self.running = RunningActors(self, root)
        self.broadcasts = Broadcasts(self)
        # Calls for an item that came to nothing since user code raised or their actor died.
        self.lost = 0
        self.outstanding: dict[Call, Outstanding] = {}
        self.finished = 0
        # When the figures are due, where they are published.
        self._publish_at = -math.inf if engine.publishes else math.inf
        # What ends the run early.
        self.error: BaseException | None = None
        self._opened = False
        # Of a run that has ended: how long its queues were.
        self._queues: dict[int, int] = {}
        self._root = root
        self._cursor: Cursor | None = None

    # Running

    def start(self) -> None:
        """Start the engine and the actors, and install the programs."""
        if self._opened:
            return
        self.engine.open()
        self._opened = True
        self.running.start()
        self._cursor = cursor_of(self, self._root)

    def items(self) -> Iterator[object]:
        """The plan's items."""
        self.start()
        assert self._cursor is not None
        passes = 0
        self.stopwatch.ask()
        while True:
            if self._publish_at < math.inf:
                self._publish()
            self._alarm = self._needed = math.inf
            found = self._cursor.poll()
            if isinstance(found, Item):
                item = self.reader.delivered(found)
                self.stopwatch.deliver()
                yield item
                del item  # what the reader lets go of is not kept here
                self.stopwatch.ask()
            elif found is Signal.DONE:
                self._apply_messages()
                self.stopwatch.stop()
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

    def settle(self) -> None:
        """Let all calls finish that are under way."""
        self._alarm = self._needed = math.inf
        while self.outstanding:
            self._wait()

    def complete(self, calls: Sequence[Call]) -> None:
        """Let some outstanding calls finish, ahead of the others where the engine can."""
        self.engine.complete(calls)
        for call in calls:
            self._finish(call)

    def ask(self, group: Group, method: Callable[..., object]) -> list[object]:
        """What the method returns on every actor of a group, in order; those that were given up left out."""
        if group not in self.running.groups:
            known = ", ".join(known.name for known in self.running.groups) or "none"
            message = f"{group.name} ({group.site}) is no group of this plan; its groups are: {known}"
            raise LookupError(message)
        self.start()
        self._alarm = self._needed = math.inf
        node = Node(name=f"ask({name_of(method)})", site=call_site())
        calls: dict[Actor, Call] = {}
        while True:
            asked = self.running.living(group)
            for actor in asked:  # one that was started again is asked anew
                if actor not in calls:
                    calls[actor] = self.submit(node, actor, Host.ask, method, purpose="ask")
            if all(calls[actor].reply is not None for actor in asked):
                return [self.engine.fetch(calls[actor].item) for actor in asked]
            self._wait()

    def stop(self) -> None:
        """End all actors of the run, and give back what the engine took and what is held open on the driver.

        Raises:
            StageError: the ``close`` of an actor or of a gate raised. All the others were closed all the same.
        """
        if not self._opened:
            return
        self._opened = False
        self.stopwatch.stop()
        gates = [cursor for cursor in self.cursors.values() if isinstance(cursor, GateCursor)]
        self._release()
        with ExitStack() as stack:
            for gate in gates:
                stack.callback(gate.close, self.error)
            self._stop_actors()

    def _release(self) -> None:
        """Let go of the items of a run that ends: whoever keeps the run for its figures does not keep them."""
        self._queues = self._queue_lengths()
        self.outstanding.clear()
        self.cursors.clear()
        self.buffers.clear()
        self._cursor = None

    def _queue_lengths(self) -> dict[int, int]:
        return {index: cursor.queue for index, cursor in self.cursors.items()}

    def stats(self) -> RunStats:
        """The figures of every node so far."""
        queues = self._queue_lengths() if self._opened else self._queues
        return run_stats(self, queues)

    # What cursors use

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
        if self.broadcasts.kept:
            self.broadcasts.flush(actor)
        program = installed.program
        calls = self.engine.submit_together(actor, program.together, apart=program.apart)
        for call in calls:
            self._issued(call, installed.node, installed, "item", None)
        return calls

    def feed(self, installed: Installed, actor: Actor, item: Item) -> Call:
        """Give a program an item: by reference where it is remote; of a list, each member by itself."""
        if item.parts is None:
            return self.run(installed, actor, Host.feed, item.argument, given=item)
        parts = tuple(self.reader.argument(part) for part in item.parts)
        return self.submit(
            installed.node, actor, Host.feed_list, installed.key, *parts,
            installed=installed, purpose="item", given=item, apart=installed.program.apart,
        )  # fmt: skip

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
        if self.broadcasts.kept:
            self.broadcasts.flush(actor)
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
        call.version = self.versions[call.actor.name]
        if self.recorder is not None:
            program = None if installed is None else installed.program
            self.recorder.called(call, node, purpose, given, program)
        self.outstanding[call] = Outstanding(node, installed, purpose)

    def sources_of(self, origins: Sequence[Origin]) -> list[Actor]:
        """The running actors at some origins, without those that were given up."""
        actors = [self.running.of(origin.group)[origin.index] for origin in origins]
        return [actor for actor in actors if not self.running.is_given_up(actor)]

    def fail(
        self, node: Node, item: int, error: BaseException, actor: str = "driver", trace: str = ""
    ) -> NoReturn:
        """End the run with an error of user code."""
        raise StageError(node.name, str(node.site), actor, item, error, trace) from error

    def _publish(self, *, last: bool = False) -> None:
        now = self.engine.now()
        if last or now >= self._publish_at:
            self._publish_at = now + _PUBLISH_SECONDS
            self.engine.publish(self.stats())

    def _stop_actors(self) -> None:
        if self._publish_at < math.inf:
            self._publish(last=True)
        groups = self.running.stop()
        try:
            closings = self.engine.stop(list(groups))
        finally:
            self.engine.close()
            if self.recorder is not None:
                for actor in groups:
                    self.recorder.record(Stopped(actor.name))
                self.recorder.record(Closed())
        for call in closings:
            reply = call.reply
            if reply is not None and reply.status is Status.FAILED and reply.failure is not None:
                group, failure = groups[call.actor], reply.failure
                closing = Node(name=f"{group.name}.close", site=group.site)
                self.fail(closing, failure.item, failure.cause, call.actor.name, failure.trace)

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
        if self.outstanding:
            self._wait(0.0)

    def _run_ahead(self) -> bool:
        """Let buffers fill; whether any of them took an item in."""
        moved = [buffer.fill() for buffer in self.buffers]
        return any(moved)

    def _wait(self, timeout: float | None = None) -> None:
        if timeout is None and self._alarm < math.inf:
            timeout = max(self._alarm - self.engine.now(), 0.0)
        if not self.outstanding:
            if timeout is None:
                self._deadlock()
            self.engine.sleep(timeout)
            return
        self.looks += 1
        needed = 1 if self._needed == math.inf else int(self._needed)
        for call in self.engine.wait(list(self.outstanding), timeout, needed):
            self._finish(call)

    def _apply_messages(self) -> None:
        """Wait for the messages that are under way, so that none is lost and none fails unheard (law 20)."""
        self.broadcasts.flush_all()
        while any(purpose.installed is None for purpose in self.outstanding.values()):
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
        node, installed, purpose = self.outstanding.pop(call)
        reply = call.reply
        assert reply is not None
        self.finished += 1
        call.finished = self.finished
        if self.recorder is not None:
            self.recorder.finished(call)
        if reply.status is not Status.NOT_READY:
            self.epoch += 1
        if installed is not None and reply.tallies:
            for number, tally in zip(installed.nodes, reply.tallies, strict=True):
                self.meters[number].add(tally)
            self.busy[call.actor.name] = self.busy.get(call.actor.name, 0.0) + reply.busy
            if installed.program.source is not None:
                installed.made += reply.tallies[0].made
        elif reply.tallies and not self.running.restarted:
            self.stopwatch.started(reply.busy, concurrent=self.engine.concurrent)
        status = reply.status
        if status is Status.FAILED or status is Status.DIED or status is Status.LOST:
            self.lost += purpose == "item"
            self._failed(call, reply, node, installed, purpose)

    def _failed(
        self, call: Call, reply: Reply, node: Node, installed: Installed | None, purpose: Purpose
    ) -> None:
        """A call came to nothing: the actor's group says what that means (laws 19 and 20)."""
        failure = reply.failure
        if reply.status is Status.DIED:
            told = "" if failure is None else str(failure.cause)
            self.running.died(call.actor, node, (told.strip() or "its process is gone").splitlines()[0])
        elif failure is not None:
            if installed is not None:
                # What was made could not be sent where no step is to blame, and -1 is what made it.
                node = self.nodes[installed.nodes[failure.step]]
            actor, cause = call.actor, failure.cause
            error = StageError(node.name, str(node.site), actor.name, failure.item, cause, failure.trace)
            # Whoever asks is told, and decides; and who quits the debugger means the run, whatever the policy.
            if purpose == "ask" or isinstance(cause, BdbQuit):
                raise error from cause
            self.running.raised(actor, error)

    def _deadlock(self) -> NoReturn:
        waiting = [
            f"{self.nodes[index].name} ({self.nodes[index].site}) waits for {cursor.waits_for}"
            for index, cursor in self.cursors.items()
            if cursor.waits_for
        ]
        message = "the plan can never go on: " + ("; ".join(waiting) or "no node can move")
        raise DeadlockError(message)
