"""From a checkpoint to a running plan that stands where it was taken (law 22): the reverse of `saving`.

The plan is started as any other, so that its actors are built and have their programs, and then everything is
given the state that it had.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pipeflow.dsl.errors import ActorDiedError, CheckpointError
from pipeflow.dsl.nodes import Function, Node
from pipeflow.lowering.checkpoint import ACTORS, DRIVER, ENGINE, OUTLINE, UNSTARTED, Checkpoint
from pipeflow.lowering.cursors import Cursor
from pipeflow.lowering.cursors.shards import Scattering, Shard
from pipeflow.lowering.cursors.sharing import Sharing
from pipeflow.lowering.engine import Actor, Call, Engine, Handle
from pipeflow.lowering.engines.inline import InlineEngine
from pipeflow.lowering.executor import Executor, Outstanding
from pipeflow.lowering.host import Host
from pipeflow.lowering.plan_names import names_of, outline, start_of
from pipeflow.lowering.program import Reply, Status
from pipeflow.state import objects
from pipeflow.state.classes import set_attributes
from pipeflow.state.reading import UNREADABLE, Reader
from pipeflow.state.values import under

if TYPE_CHECKING:
    from pipeflow.lowering.recording import Recorder


def resumed(root: Node, engine: Engine, checkpoint: Checkpoint) -> Executor:
    """A running executor of a plan that stands where the checkpoint was taken.

    Raises:
        CheckpointError: it was taken of another plan, or is damaged.
        RunError: the plan cannot be started.
    """
    _check_same(root, checkpoint)
    executor = Executor(root, engine)
    try:
        executor.start()
        _Resuming(executor, checkpoint).go_on()
    except BaseException:
        executor.stop()
        raise
    return executor


def recorder_of(executor: Executor, recorder: Recorder) -> Recorder:
    """A recorder that goes on where that of the checkpoint's run stood."""
    copied = recorder.copied()
    for actor in executor.running.all():
        programs = executor.running.programs(actor.name)
        copied.reinstalled(actor.name, [installed.program for installed in programs])
    return copied


def _check_same(root: Node, checkpoint: Checkpoint) -> None:
    lines, saved = outline(root), checkpoint.about[OUTLINE]
    assert isinstance(saved, list)
    if lines == saved:
        return
    for here, there in zip(lines, saved, strict=False):
        if here != there:
            message = f"the checkpoint is of another plan: it has {there!r} where this one has {here!r}"
            raise CheckpointError(message)
    message = (
        f"the checkpoint is of another plan: it has {len(saved)} stages and groups, this one {len(lines)}"
    )
    raise CheckpointError(message)


class _Resuming:
    """One run that is given the state of another."""

    def __init__(self, executor: Executor, checkpoint: Checkpoint) -> None:
        self._executor = executor
        self._engine = executor.engine
        self._state = checkpoint.state
        # The calls that start the actors are made anew in every run.
        self._starting = {start_of(call): call for call in executor.outstanding}
        self._setup = dict(executor.outstanding)

    def go_on(self) -> None:
        """Give the run that state."""
        in_process = isinstance(self._engine, InlineEngine)
        unstarted = under(UNSTARTED, self._state) if in_process else {}
        self._executor.complete([call for call in self._setup if start_of(call) not in unstarted])
        self._load_actors()
        try:
            self._load_driver()
        except UNREADABLE as error:
            message = f"the checkpoint does not fit the plan: {error}; resume the plan that it was taken of"
            raise CheckpointError(message) from error

    def _load_actors(self) -> None:
        loading = [
            self._engine.submit(actor, Host.load_state, state)
            for actor in self._executor.running.all()
            if (state := under(f"{ACTORS}{actor.name}/", self._state))
        ]
        self._engine.complete(loading)
        for call in loading:
            assert call.reply is not None
            if call.reply.status is Status.DIED:
                message = f"{call.actor.name} died while it was given its state"
                raise ActorDiedError(message)
            if call.reply.failure is not None:
                cause = call.reply.failure.cause
                message = f"the checkpoint does not fit {call.actor.name}: {cause}"
                raise CheckpointError(message) from cause

    def _load_driver(self) -> None:
        executor, running = self._executor, self._executor.running
        reader = Reader(under(DRIVER, self._state), _fill, named=names_of(executor), make=self._make)
        like = {"cursors": executor.cursors}
        # `Any`: what `saving` wrote; what reads it raises if it is anything else.
        root: Any = reader.read(like, "the driver")
        issued = [self._issued(entry) for entry in root["outstanding"]]
        executor.outstanding = dict(entry for entry in issued if entry is not None)
        set_attributes(executor, root["counters"])
        executor.meters[:] = root["meters"]
        executor.broadcasts.fill(root["broadcasts"])
        running.restarted = root["restarted"]
        running.given_up = root["given_up"]
        running.starts_used.update(dict(zip(running.groups, root["starts_used"], strict=True)))
        for group, index in root["gone"]:
            running.lose(running.groups[group], index)
        for name, programs in root["programs"].items():
            for installed, (made, given_up) in zip(running.programs(name), programs, strict=True):
                installed.made, installed.given_up = made, given_up
        if isinstance(self._engine, InlineEngine) and self._engine.name == root["engine"]:
            reader = Reader(under(ENGINE, self._state), objects.fill)
            decides = reader.read(self._engine.state(), self._engine.name)
            self._engine.load_state(decides, {actor.name: actor for actor in running.all()})
        elapsed = self._engine.now() - root["time"]
        for cursor in executor.cursors.values():
            cursor.resumed(elapsed)

    # `Any`: what `saving` wrote.
    def _issued(self, entry: Any) -> tuple[Call, Outstanding] | None:
        if entry[0] == "call":
            _, call, node, installed, purpose = entry
            return call, Outstanding(node, installed, purpose)
        _, start, number = entry
        call = self._starting.get(start)
        if call is None:  # where calls run at once, all actors have started by now
            return None
        call.number = number
        return call, self._setup[call]

    def _make(self, kind: str, saved: Any) -> object:
        if kind == "call":
            return self._call(**saved)
        if kind == "handle_of":
            return saved.item
        if kind == "held":
            return self._engine.hold(saved)
        if kind == "lost" and isinstance(self._engine, InlineEngine):
            return self._engine.lost()
        if kind == "gone" and isinstance(self._engine, InlineEngine):
            return self._engine.gone(saved)
        message = f"{kind} is nothing that {self._engine.name} can have"
        raise ValueError(message)

    def _call(
        self,
        actor: Actor,
        number: int,
        version: int,
        method: Function | None = None,
        args: tuple[object, ...] = (),
        apart: bool = False,
        reply: Reply | None = None,
        finished: int = 0,
        item: Handle | None = None,
    ) -> Call:
        """A call that has still to run, or one that has finished."""
        if method is not None:
            call = self._engine.submit(actor, method, *args, apart=apart)
        else:
            call = Call(actor, self._engine.hold(None) if item is None else item)
        call.number, call.version, call.reply, call.finished = number, version, reply, finished
        return call


def _fill(value: object, saved: Mapping[str, object]) -> None:
    if isinstance(value, Cursor | Shard | Scattering | Sharing):
        vars(value).update(saved)
    else:
        objects.fill(value, saved)
