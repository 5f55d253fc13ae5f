"""What actors reserve and what a cluster has: errors for what would otherwise wait for ever.

Apart from the engine, and without Ray: these are sums and sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pipeflow.dsl.errors import EngineError
from pipeflow.dsl.nodes import Group
from pipeflow.lowering.engine import Actor

Resources = Mapping[str, float]

# Of a core: a place on a node cannot be reserved with nothing at all.
_LEAST_CORES = 0.001


def reserved_by(group: Group) -> Resources:
    """What each actor of a group reserves; empty where nothing was said of resources or placement."""
    if group.placement is None:
        return group.resources
    reserved = dict(group.resources) or {"CPU": 1.0}
    return reserved if any(reserved.values()) else {**reserved, "CPU": _LEAST_CORES}


def refuse_impossible(group: Group, reserved: Iterable[Resources], there: Resources) -> None:
    """Refuse what a cluster that does not grow can never have.

    Args:
        group: whose actor was started last.
        reserved: what each actor of the run reserves, that one included.
        there: what the cluster has in all.

    Raises:
        EngineError: names the group, what the run wants, and what there is.
    """
    wanted = _sum(reserved)
    lacking = {key: count for key, count in wanted.items() if count > there.get(key, 0.0)}
    if lacking:
        message = (
            f"{group.name} ({group.site}) cannot be started: with it the run wants {_listed(lacking)}, and "
            f"the cluster has {_listed({key: there.get(key, 0.0) for key in lacking})}; ask for less with "
            ".resources(...), or join a larger cluster"
        )
        raise EngineError(message)


def not_up(
    actor: Actor, group: Group, limit: float, nodes: Sequence[Resources], free: Resources
) -> EngineError:
    """The error for an actor that did not come up in time.

    Args:
        actor: the actor.
        group: its group.
        limit: how many seconds it had.
        nodes: what each node of the cluster has.
        free: what nobody has reserved of all that.
    """
    wanted, there = reserved_by(group), _sum(nodes)
    keys = dict.fromkeys(["CPU", *wanted])
    has = _listed({key: there.get(key, 0.0) for key in keys})
    left = _listed({key: free.get(key, 0.0) for key in keys})
    places = ""
    if group.placement is not None:
        places = f', all {group.count} of them at once for placement("{group.placement}")'
    # In all there is enough, so nothing of what is said above would explain why it waits.
    enough = all(count <= there.get(key, 0.0) for key, count in wanted.items())
    alone = (
        "" if not enough or _fits_on_one(wanted, nodes) else ", but no node has as much as one actor wants"
    )
    return EngineError(
        f"{actor.name} ({group.site}) did not come up within {limit:g} s: each actor of {group.name} wants "
        f"{_listed(wanted) or 'a process'}{places}; the cluster has {has}, of which {left} are free{alone}; ask "
        "for less with .resources(...), join a larger cluster, or allow it more time with Ray(start_limit=...)"
    )


def _fits_on_one(wanted: Resources, nodes: Sequence[Resources]) -> bool:
    return any(all(count <= node.get(key, 0.0) for key, count in wanted.items()) for node in nodes)


def _sum(parts: Iterable[Resources]) -> Resources:
    total: dict[str, float] = {}
    for part in parts:
        for key, count in part.items():
            # To a ten-thousandth, as Ray counts: ten tenths of a core are one.
            total[key] = round(total.get(key, 0.0) + count, 4)
    return total


def _listed(resources: Resources) -> str:
    return ", ".join(f"{count:g} {name}" for name, count in resources.items())
