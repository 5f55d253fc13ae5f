"""The algorithms that have a name: one line each in a table, and what a command needs to run one.

Apart from the algorithms, which are complete without it, and from the command line, which knows none of them.
An algorithm is imported when it is asked for, since that imports torch; the table itself costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pipeflow.dsl import Stream

if TYPE_CHECKING:
    from pipeflow.rl.batches import Report
    from pipeflow.rl.environments import EnvSpec
    from pipeflow.rl.policies import PolicySpec


class Configuration(Protocol):
    """What every algorithm's configuration, a frozen dataclass, has among its fields."""

    @property
    def env(self) -> EnvSpec:
        """The environment that is learnt."""
        ...

    @property
    def seed(self) -> int:
        """From which all random numbers of a run are derived."""
        ...


C = TypeVar("C", bound=Configuration)


@dataclass(frozen=True)
class Algorithm(Generic[C]):
    """An algorithm that has been imported.

    configuration: its class; made without arguments it has the defaults. plan: builds the plan, and starts
    nothing. policy: the policy that the plan trains, for whoever has only its weights.
    """

    configuration: type[C]
    plan: Callable[[C], Stream[Report]]
    policy: Callable[[C], PolicySpec]


@dataclass(frozen=True)
class Entry:
    """A line of the table. name: as a command takes it. summary: one line. load: imports the algorithm.

    `Any`: a name typed by a user does not tell the checker which configuration belongs to it.
    """

    name: str
    summary: str
    load: Callable[[], Algorithm[Any]]


class UnknownAlgorithm(ValueError):
    """No algorithm has that name."""


def entry_of(name: str) -> Entry:
    """The table's line of a name.

    Raises UnknownAlgorithm if there is none.
    """
    found = {entry.name: entry for entry in CATALOGUE}
    if name not in found:
        close = get_close_matches(name.lower(), found, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}? " if close else ""
        raise UnknownAlgorithm(
            f"there is no algorithm {name!r}; {hint}the algorithms are: {', '.join(found)}"
        )
    return found[name]


def _ppo() -> Algorithm[Any]:
    from pipeflow.algorithms import ppo

    return Algorithm(ppo.PPOConfig, ppo.ppo, ppo.policy_of)


CATALOGUE = (
    Entry("ppo", "proximal policy optimisation: synchronous rounds, clipped minibatch epochs", _ppo),
)  # fmt: skip
"""Every algorithm, in the order in which lists show them."""
