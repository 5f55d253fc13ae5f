"""What the parts of a running plan are called in a checkpoint: those that are the same in every run of the plan.

Apart from saving and resuming, which are each other's reverse and need the same names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeflow.dsl.item_types import show
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.trees import groups_of, walk
from pipeflow.lowering.engine import Call
from pipeflow.lowering.engines.inline import LocalCall
from pipeflow.lowering.host import Host

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor


def outline(root: Node) -> list[str]:
    """A plan's stages and groups as lines that are the same for the same plan written again."""
    order = list(walk(root))
    place = {id(node): index for index, node in enumerate(order)}
    stages = [
        f"{node.name}: {show(node.item_type)} from {[place[id(other)] for other in node.inputs]}"
        for node in order
    ]
    return [*stages, *(f"{group.count} x {group.name}" for group in groups_of(root))]


def start_of(call: Call) -> str | None:
    """Which of the calls that start an actor and install its programs this is, None for any other."""
    if not isinstance(call, LocalCall) or call.method not in (Host.build, Host.install):
        return None
    return f"{call.actor.name}/{call.args[0] if call.method is Host.install else 'build'}"


def names_of(executor: Executor) -> dict[str, object]:
    """The objects of a started run that a checkpoint refers to by name."""
    found: dict[str, object] = {"executor": executor, "engine": executor.engine, "reader": executor.reader}
    for index, node in enumerate(executor.nodes):
        found[f"node/{index}"] = node
        # Functions that a call under way may name.
        found |= {f"node/{index}/{name}": value for name, value in vars(node).items() if callable(value)}
    for index, group in enumerate(executor.running.groups):
        actors = executor.running.of(group)
        found |= {f"group/{index}": group, f"actors/{index}": actors}
        for actor in actors:
            found[f"actor/{actor.name}"] = actor
            programs = executor.running.programs(actor.name)
            found |= {f"program/{actor.name}/{installed.key}": installed for installed in programs}
    found |= {f"host/{name}": value for name, value in vars(Host).items() if callable(value)}
    return found
