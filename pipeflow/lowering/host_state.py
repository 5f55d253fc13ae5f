"""The state of a host: of its actor, and of the programs that run on it.

Apart from the host, so that a run without checkpoints imports nothing for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeflow.lowering.machine import Machine
from pipeflow.state import objects
from pipeflow.state.objects import load_object_state, object_state
from pipeflow.state.reading import UNREADABLE, Reader
from pipeflow.state.values import StateValue, prefixed, under
from pipeflow.state.writing import Writer

ACTOR = "actor/"
"""Where the state of the user's object stands in a host's."""

_PROGRAMS = "programs/"


# `Any`: the user's object.
def host_state(actor: Any, machines: Mapping[int, Machine], calls: int) -> dict[str, StateValue]:
    """All that the host's next calls depend on, under flat names.

    Raises UnsavableValue if the actor, or what is under way in a program, cannot be saved.
    """
    writer = Writer(_attributes)
    root = {"calls": calls, "programs": dict(machines)}
    programs = writer.finish(writer.write(root, f"the programs of {type(actor).__name__}"))
    return {**prefixed(ACTOR, object_state(actor)), **prefixed(_PROGRAMS, programs)}


# `Any`: the user's object.
def load_host_state(actor: Any, machines: Mapping[int, Machine], state: Mapping[str, StateValue]) -> int:
    """Go on where the host stood that gave this state; how many calls it had run.

    Raises ValueError if the state is of another actor, or damaged.
    """
    load_object_state(actor, under(ACTOR, state))
    like = {"calls": 0, "programs": dict(machines)}
    try:
        read = Reader(under(_PROGRAMS, state), _fill).read(like, f"the programs of {type(actor).__name__}")
        return int(read["calls"])
    except UNREADABLE as error:
        message = f"the saved state does not fit the programs of {type(actor).__name__}: {error}"
        raise ValueError(message) from error


def _attributes(value: object) -> Mapping[str, object] | None:
    return value.attributes() if isinstance(value, Machine) else objects.attributes(value)


def _fill(value: object, saved: Mapping[str, object]) -> None:
    if isinstance(value, Machine):
        value.fill(saved)
    else:
        objects.fill(value, saved)
