"""The algorithms that have a name: one line each in a table, and what a command needs to run one.

Apart from the algorithms, which are complete without it, and from the command line, which knows none of them.
An algorithm is imported when it is asked for, since that imports torch; the table itself costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from pipeflow.dsl import Stream

if TYPE_CHECKING:
    from pipeflow.rl.batches import Report, Weights
    from pipeflow.rl.episodes import EpisodeStats
    from pipeflow.rl.policy import PolicyDescription


class Environment(Protocol):
    """The description of an environment, with one agent or several."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...


class Configuration(Protocol):
    """What every algorithm's configuration, a frozen dataclass, has among its fields."""

    @property
    def env(self) -> Environment:
        """The environment that is learnt."""
        ...

    @property
    def seed(self) -> int:
        """From which all random numbers of a run are derived."""
        ...


C = TypeVar("C", bound=Configuration)

Player: TypeAlias = "Callable[[C, Sequence[Weights], int, int], EpisodeStats]"
"""Plays greedy episodes, given a configuration, the weights of each learner of its plan, how many, and a seed."""


@dataclass(frozen=True)
class Algorithm(Generic[C]):
    """An algorithm that has been imported.

    configuration: its class; made without arguments it has the defaults. plan: builds the plan, and starts
    nothing. play: what the weights of a run are worth. plays_alone: whether that makes only the environments of
    its episodes, so that they can be filmed.
    """

    configuration: type[C]
    plan: Callable[[C], Stream[Report]]
    play: Player[C]
    plays_alone: bool = True


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


# `Any`: see `Entry`.
def _greedily(policy_of: Callable[[Any], PolicyDescription]) -> Player[Any]:
    """The player of an algorithm that trains one policy."""

    def play(config: Any, weights: Sequence[Weights], episodes: int, seed: int) -> EpisodeStats:
        from pipeflow.rl.evaluation import evaluate

        return evaluate(config.env, policy_of(config), weights[0], episodes, seed)

    return play


def _a2c() -> Algorithm[Any]:
    from pipeflow.algorithms import a2c

    return Algorithm(a2c.A2CConfig, a2c.a2c, _greedily(a2c.policy_of))


def _a3c() -> Algorithm[Any]:
    from pipeflow.algorithms import a3c

    return Algorithm(a3c.A3CConfig, a3c.a3c, _greedily(a3c.policy_of))


def _ppo() -> Algorithm[Any]:
    from pipeflow.algorithms import ppo

    return Algorithm(ppo.PPOConfig, ppo.ppo, _greedily(ppo.policy_of))


def _ddppo() -> Algorithm[Any]:
    from pipeflow.algorithms import ddppo

    return Algorithm(ddppo.DDPPOConfig, ddppo.ddppo, _greedily(ddppo.policy_of))


def _impala() -> Algorithm[Any]:
    from pipeflow.algorithms import impala

    return Algorithm(impala.IMPALAConfig, impala.impala, _greedily(impala.policy_of))


def _appo() -> Algorithm[Any]:
    from pipeflow.algorithms import appo

    return Algorithm(appo.APPOConfig, appo.appo, _greedily(appo.policy_of))


def _dqn() -> Algorithm[Any]:
    from pipeflow.algorithms import dqn

    return Algorithm(dqn.DQNConfig, dqn.dqn, _greedily(dqn.policy_of))


def _apex() -> Algorithm[Any]:
    from pipeflow.algorithms import apex

    return Algorithm(apex.ApexConfig, apex.apex, _greedily(apex.policy_of))


def _maml() -> Algorithm[Any]:
    from pipeflow.algorithms import maml

    return Algorithm(maml.MAMLConfig, maml.maml, maml.play, plays_alone=False)


def _two_trainers() -> Algorithm[Any]:
    from pipeflow.algorithms import two_trainers

    return Algorithm(two_trainers.TwoTrainersConfig, two_trainers.two_trainers, two_trainers.play)


CATALOGUE = (
    Entry("a2c", "advantage actor-critic: synchronous rounds, the workers' gradients averaged", _a2c),
    Entry("a3c", "advantage actor-critic, asynchronous: every worker's gradient as it comes", _a3c),
    Entry("ppo", "proximal policy optimisation: synchronous rounds, clipped minibatch epochs", _ppo),
    Entry("ddppo", "decentralised PPO: the workers average their gradients among themselves", _ddppo),
    Entry("impala", "importance-weighted actor-learner: asynchronous rollouts, V-trace", _impala),
    Entry("appo", "asynchronous PPO: IMPALA's dataflow, PPO's clipped loss", _appo),
    Entry("dqn", "deep Q-learning: double, dueling, n-step, prioritised as options", _dqn),
    Entry("apex", "Ape-X DQN: many rollout workers and replay actors, concurrent", _apex),
    Entry("maml", "model-agnostic meta-learning: inner gradient steps in the workers", _maml),
    Entry("two-trainers", "PPO and DQN in one environment with several agents, interleaved", _two_trainers),
)  # fmt: skip
"""Every algorithm, in the order in which lists show them."""
