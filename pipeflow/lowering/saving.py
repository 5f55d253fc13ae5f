"""From a running plan to a checkpoint (law 22): the states of its actors, and of everything on the driver.

Apart from `resuming`, its reverse. In one process nothing moves for it: calls that have not run are written
down. On Ray, whatever is under way is finished first, and its items are kept with the driver's state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipeflow.dsl.errors import CheckpointError
from pipeflow.dsl.nodes import Node
from pipeflow.lowering.checkpoint import ACTORS, DRIVER, ENGINE, OUTLINE, UNSTARTED, Checkpoint
from pipeflow.lowering.cursors import Cursor
from pipeflow.lowering.cursors.shards import Scattering, Shard
from pipeflow.lowering.cursors.sharing import Sharing
from pipeflow.lowering.engine import Actor, Call, Engine, Handle
from pipeflow.lowering.engines.inline import InlineEngine, LocalActor, LocalCall
from pipeflow.lowering.host import Host
from pipeflow.lowering.plan_names import names_of, outline, start_of
from pipeflow.lowering.program import Status
from pipeflow.state import objects
from pipeflow.state.values import Json, StateValue, prefixed
from pipeflow.state.writing import UnsavableValue, Writer

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor

_ADVICE = "give its class state() and load_state(state), or keep plain values, arrays and dataclasses in it"


def checkpoint_of(executor: Executor, about: Mapping[str, Json]) -> Checkpoint:
    """The state of a run between two of its items.

    Raises:
        CheckpointError: something of it cannot be saved; says what, and whose it is.
        RunError: what was under way failed while it was waited for.
    """
    executor.start()
    if not isinstance(executor.engine, InlineEngine):
        executor.settle()
    try:
        state = {**_actor_states(executor), **_Driver(executor).state()}
    except UnsavableValue as error:
        message = f"the run cannot be saved: {error}; {_ADVICE}"
        raise CheckpointError(message) from error
    told = {**about, OUTLINE: outline(executor.nodes[-1])}
    recorder = executor.recorder
    return Checkpoint(told, state, None if recorder is None else recorder.copied())


def _actor_states(executor: Executor) -> dict[str, StateValue]:
    """The state of every actor that was built and not given up, under its name."""
    engine = executor.engine
    while True:
        asked = [
            (actor, engine.submit(actor, Host.state, apart=True))
            for actor in executor.running.all()
            if _is_built(actor) and not executor.running.is_given_up(actor)
        ]
        engine.complete([call for _, call in asked])
        dead = [
            call.actor for _, call in asked if call.reply is not None and call.reply.status is Status.DIED
        ]
        if not dead:
            break
        for actor in dead:
            owner = executor.running.all()[actor]
            node = Node(name=f"checkpoint of {owner.name}", site=owner.site)
            executor.running.died(actor, node, "its process is gone")
        executor.settle()
    states: dict[str, StateValue] = {}
    for actor, call in asked:
        failure = None if call.reply is None else call.reply.failure
        if failure is not None:
            advice = f"; {_ADVICE}" if isinstance(failure.cause, UnsavableValue) else ""
            message = f"{actor.name} cannot be saved: {failure.cause}{advice}"
            raise CheckpointError(message) from failure.cause
        # `Any`: a host's answer.
        state: Any = engine.fetch(call.item)
        states |= prefixed(f"{ACTORS}{actor.name}/", state)
    return states


def _is_built(actor: Actor) -> bool:
    """Whether an actor has begun; on other engines than those of this process all have."""
    return not isinstance(actor, LocalActor) or actor.host.built


class _Driver:
    """Writes the state of what runs on the driver: calls under way first, since items may be of them."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._unrun = {id(call.item): call for call in executor.outstanding if call.reply is None}
        names = {id(value): name for name, value in names_of(executor).items()}
        self._writer = Writer(_attributes, names=names, special=self._special)

    def state(self) -> dict[str, StateValue]:
        """Everything under flat names."""
        executor = self._executor
        running, engine = executor.running, executor.engine
        groups = running.groups
        root = {
            "outstanding": [
                self._outstanding(call)
                for call, whose in executor.outstanding.items()
                if whose.purpose != "ask"
            ],
            "counters": {
                "epoch": executor.epoch,
                "looks": executor.looks,
                "finished": executor.finished,
                "lost": executor.lost,
                "versions": executor.versions,
                "busy": executor.busy,
                "stopwatch": executor.stopwatch.stopped(),
            },
            "meters": executor.meters,
            "cursors": executor.cursors,
            "broadcasts": executor.broadcasts.attributes(),
            "restarted": running.restarted,
            "starts_used": [running.starts_used[group] for group in groups],
            "given_up": running.given_up,
            "gone": [
                [group_index, index]
                for group_index, group in enumerate(groups)
                for index, actor in enumerate(running.of(group))
                if running.is_given_up(actor)
            ],
            "programs": {
                actor.name: [
                    (installed.made, installed.given_up) for installed in running.programs(actor.name)
                ]
                for actor in running.all()
            },
            "engine": engine.name,
            "time": engine.now(),
        }
        starts = (start_of(call) for call in executor.outstanding)
        unstarted: dict[str, StateValue] = {start: 1 for start in starts if start is not None}
        written = self._writer.finish(self._writer.write(root, "the driver"))
        return {**prefixed(DRIVER, written), **prefixed(UNSTARTED, unstarted), **_engine_state(engine)}

    def _outstanding(self, call: Call) -> list[object]:
        """A call under way, and whom it is for. Those that start an actor are made again in every run."""
        start = start_of(call)
        if start is not None:
            return ["start", start, call.number]
        node, installed, purpose = self._executor.outstanding[call]
        return ["call", call, node, installed, purpose]

    def _special(self, value: object) -> tuple[str, object] | None:
        if isinstance(value, Call):
            return "call", self._call(value)
        if isinstance(value, Handle):
            unrun = self._unrun.get(id(value))
            if unrun is not None:
                return "handle_of", unrun
            if InlineEngine.is_lost(value):
                return "lost", None
            return "held", self._executor.engine.fetch(value)
        if isinstance(value, LocalActor):  # those that live are known by name
            return "gone", value.name
        return None

    def _call(self, call: Call) -> dict[str, object]:
        known = {"actor": call.actor, "number": call.number, "version": call.version}
        if call.reply is None:
            assert isinstance(call, LocalCall)
            return {**known, "method": call.method, "args": call.args, "apart": call.apart}
        # What failed was dealt with when it came back.
        reply = replace(call.reply, failure=None, tallies=())
        made = call.item if reply.status is Status.ITEM or InlineEngine.is_lost(call.item) else None
        return {**known, "reply": reply, "finished": call.finished, "item": made}


def _engine_state(engine: Engine) -> dict[str, StateValue]:
    """Apart from the rest, since another engine may go on with that."""
    if not isinstance(engine, InlineEngine):
        return {}
    writer = Writer(objects.attributes)
    return prefixed(ENGINE, writer.finish(writer.write(engine.state(), engine.name)))


def _attributes(value: object) -> Mapping[str, object] | None:
    if isinstance(value, Cursor):
        return value.attributes()
    if isinstance(value, Shard | Scattering | Sharing):
        return vars(value)
    return objects.attributes(value)
