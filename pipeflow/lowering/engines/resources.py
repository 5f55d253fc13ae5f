"""What actors reserve and what a cluster has: errors for what would otherwise wait for ever.

Apart from the engine, and without Ray: these are sums and sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipeflow.dsl.errors import EngineError
from pipeflow.dsl.nodes import Group
from pipeflow.lowering.engine import Actor

Resources = Mapping[str, float]


def refuse_impossible(group: Group, reserved: Iterable[Resources], there: Resources) -> None:
    """Refuse what a cluster that does not grow can never have.

    Args:
        group: whose actor was started last.
        reserved: what each actor of the run reserves, that one included.
        there: what the cluster has in all.

    Raises:
        EngineError: names the group, what the run wants, and what there is.
    """
    wanted: dict[str, float] = {}
    for resources in reserved:
        for key, count in resources.items():
            wanted[key] = wanted.get(key, 0.0) + count
    lacking = {key: count for key, count in wanted.items() if count > there.get(key, 0.0)}
    if lacking:
        message = (
            f"{group.name} ({group.site}) cannot be started: with it the run wants {_listed(lacking)}, and "
            f"the cluster has {_listed({key: there.get(key, 0.0) for key in lacking})}; ask for less with "
            ".resources(...), or join a larger cluster"
        )
        raise EngineError(message)


def not_up(actor: Actor, group: Group, limit: float, there: Resources, free: Resources) -> EngineError:
    """The error for an actor that did not come up in time.

    Args:
        actor: the actor.
        group: its group.
        limit: how many seconds it had.
        there: what the cluster has in all.
        free: what nobody has reserved of that.
    """
    keys = dict.fromkeys(["CPU", *group.resources])
    wants = _listed(group.resources) or "a process"
    return EngineError(
        f"{actor.name} ({group.site}) did not come up within {limit:g} s: each actor of {group.name} wants "
        f"{wants}; the cluster has {_listed({key: there.get(key, 0.0) for key in keys})}, of which "
        f"{_listed({key: free.get(key, 0.0) for key in keys})} are free; ask for less with .resources(...), "
        "join a larger cluster, or allow it more time with Ray(start_limit=...)"
    )


def _listed(resources: Resources) -> str:
    return ", ".join(f"{count:g} {name}" for name, count in resources.items())
