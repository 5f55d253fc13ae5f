"""What is played in the driver's process: each function runs plans on the nodes and returns what it saw."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import islice
from typing import Any, Literal, NamedTuple

import ray
from ray.util.placement_group import placement_group_table

from pipeflow import (
    Actors,
    PipeflowError,
    RunError,
    actors,
    gather_async,
    gather_rounds,
    gather_sync,
    sync_weights,
)
from pipeflow.algorithms.impala import IMPALAConfig, impala
from pipeflow.cli.entry import main
from pipeflow.lowering.engine import Engine
from pipeflow.lowering.engines.ray import Ray
from pipeflow.rl.batches import Advantages, Report
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.returns import gae
from pipeflow.rl.rollouts import RolloutWorker
from tests.cluster.nodes import PLACES, Nodes
from tests.cluster.workers import Located, LocatedLearner, Made, node_of

Going = Literal["removed", "lost", "frozen"]


class Spread(NamedTuple):
    """Where the workers of a run were, and what it reported."""

    nodes: list[str]
    reports: list[Report]


def placed(nodes: Nodes, placement: Literal["spread", "pack"], count: int) -> list[str]:
    """The nodes of the actors of a group, by index."""
    workers = actors(Located, count).placement(placement)
    with (workers.produce(Located.make) | gather_sync()).run(Ray(nodes.address)) as run:
        found = {made.shard: made.node for made in islice(run, count)}
    return [found[shard] for shard in range(count)]


def placed_by_name(nodes: Nodes) -> tuple[str, str, list[str]]:
    """A node with a resource of its own, and where the actor that wants it was, before and after `placement`."""
    special = nodes.add(accelerator=1)
    wanting = actors(Located, 1).resources(cpus=0, accelerator=1)
    found = []
    for workers in (wanting, wanting.placement("pack")):
        with (workers.produce(Located.make) | gather_sync()).run(Ray(nodes.address)) as run:
            found.append(next(run).node)
    return special, found[0], found[1:]


def learnt_by_ppo(nodes: Nodes, rounds: int, inline: bool = False) -> Spread:
    """PPO on CartPole with a worker a node."""
    env = EnvSpec("CartPole-v1")
    policy = PolicySpec.for_env(env, hidden=(8,))
    workers = actors(RolloutWorker, 3, env, policy, num_envs=2, fragment_length=16, seed=3).placement(
        "spread"
    )
    learner = actors(PPOLearner, 1, policy, epochs=2, minibatch_size=32, seed=3).resources(cpus=0)
    plan = (
        workers.produce(RolloutWorker.sample)
        | gae(gamma=0.99, lam=0.95)
        | gather_rounds()
        | Advantages.concatenate
        | learner.stage(PPOLearner.update)
        | sync_weights(learner, workers)
    )
    if inline:
        with plan.run() as run:
            return Spread([], list(islice(run, rounds)))
    with plan.run(Ray(nodes.address)) as run:
        reports = list(islice(run, rounds))
        return Spread(run.ask(workers, node_of), reports)


def learnt_by_impala(nodes: Nodes, updates: int) -> list[Report]:
    """IMPALA on CartPole, as it comes."""
    config = IMPALAConfig(workers=3, num_envs=2, fragment_length=8, hidden=(8,), seed=3)
    with impala(config).run(Ray(nodes.address)) as run:
        return list(islice(run, updates))


class Left(NamedTuple):
    """What is there after a run: reservations by their states, free cores, and processes of its actors."""

    placements: list[object]
    cores: tuple[float, float]
    pids: list[int]


def left_behind(nodes: Nodes) -> Left:
    """What a run with reserved places leaves."""
    workers = actors(Located, 3).placement("spread")
    with (workers.produce(Located.make) | gather_sync()).run(Ray(nodes.address)) as run:
        pids = {made.pid for made in islice(run, 3)}
    return _left(nodes, pids)


def left_by_two_runs(nodes: Nodes) -> tuple[int, Left]:
    """A run in a connection that was there before it and stays: how many places it had, and what it leaves."""
    ray.init(address=nodes.address, log_to_driver=False)
    workers = actors(Located, 2).placement("pack")
    with (workers.produce(Located.make) | gather_sync()).run("ray") as run:
        pids = {made.pid for made in islice(run, 2)}
        reserved = sum(each["state"] == "CREATED" for each in placement_group_table().values())
    return reserved, _left(nodes, pids)


class Fallen(NamedTuple):
    """A run in which a node goes after ten items.

    where: the nodes of the two workers before. gone, added: which node went, and which came after it. made: the
    items from then on. error: what ended the run. seconds: from the node's end to the run's, or to the first item
    of a worker that was started again. restarts, lost: as the run counted them. left: actors' processes after it.
    """

    where: list[str]
    gone: str
    added: str
    made: list[Made]
    error: str
    seconds: float
    restarts: int
    lost: int
    left: list[int]


def workers_lose_their_node(
    nodes: Nodes,
    going: Going,
    restarts: int = 0,
    *,
    placement: bool = False,
    add: bool = False,
) -> Fallen:
    """Two workers on a node each, of which one goes.

    Args:
        nodes: the cluster.
        going: how it goes.
        restarts: how often a worker may be started again.
        placement: whether the places are reserved, and half as large, so that the other node has room for both.
        add: whether another node comes then, without which there is no room for a worker.
    """
    workers = actors(Located, 2).resources(cpus=1, place=PLACES if add else 1).restarts(restarts)
    if placement or not add:
        workers = workers.placement("spread")
    return _fallen(nodes, workers, actors(LocatedLearner, 1).resources(cpus=0, first=1), going, add=add)


def a_learner_loses_its_node(nodes: Nodes) -> Fallen:
    """The learner is alone on a node, which goes."""
    own = nodes.add(learner=1)
    workers = actors(Located, 2).resources(cpus=1, place=1).restarts(5)
    return _fallen(nodes, workers, actors(LocatedLearner, 1).resources(cpus=1, learner=1), "lost", gone=own)


def no_room(nodes: Nodes, make: Callable[[], Actors[Located]]) -> str:
    """The error of a run whose actors find no place."""
    try:
        with (make().produce(Located.make) | gather_sync()).run(_patient(nodes, 3)) as run:
            next(run)
    except PipeflowError as error:
        return str(error)
    return "none"


def made_by_a_sent_module(nodes: Nodes, folder: str, sent: dict[str, object]) -> list[tuple[str, str, str]]:
    """What two actors make whose class is in a module of a folder that only this process has on its path.

    Returns: where each found the module, where it works, and what a variable is that was sent with it.
    """
    sys.path.insert(0, folder)
    try:
        own: Any = import_module("own_workers").OwnWorker
    finally:
        sys.path.remove(folder)
    plan = actors(own, 2).placement("spread").produce(own.make) | gather_sync()
    engine = Ray(nodes.address, runtime_env={**sent, "env_vars": {"FROM_THE_DRIVER": "sent"}})
    try:
        with plan.run(engine) as run:
            return list(islice(run, 2))
    finally:
        del sys.modules["own_workers"]


def a_program_runs(nodes: Nodes, program: str, address: str) -> None:
    """A program of the documents, whose address is that of the cluster; one node has a place for a learner."""
    own = nodes.add(learner=1)
    try:
        exec(
            compile(program.replace(address, nodes.address), "docs/cluster.md", "exec"),
            {"__name__": "program"},
        )
    finally:
        nodes.remove(own)


def a_training_runs(nodes: Nodes, words: Sequence[str]) -> int:
    """The exit code of ``pipeflow`` with these words, the address replaced by the cluster's."""
    words = list(words)
    words[words.index("--address") + 1] = nodes.address
    return main(words)


def one_on_four_cores() -> Actors[Located]:
    """More than a node has, and no more than the cluster."""
    return actors(Located, 1).named("wide").resources(cpus=4)


def eight_at_once() -> Actors[Located]:
    """Each of them finds a place, but not all at once."""
    return actors(Located, 8).named("many").placement("pack")


def _fallen(
    nodes: Nodes,
    workers: Actors[Located],
    learner: Actors[LocatedLearner],
    going: Going,
    *,
    gone: str = "",
    add: bool = False,
) -> Fallen:
    plan = (
        workers.produce(Located.make)
        | gather_async(1)
        | learner.stage(LocatedLearner.update)
        | sync_weights(learner, workers)
    )
    made: list[Made] = []
    error, restarts, lost, added = "", 0, 0, ""
    with plan.run(_patient(nodes, 120)) as run:
        before = list(islice(run, 10))
        where = run.ask(workers, node_of)
        pids = {each.pid for each in before}
        gone = gone or where[1]
        {"removed": nodes.remove, "lost": nodes.lose, "frozen": nodes.freeze}[going](gone)
        started = time.monotonic()
        if add:
            added = nodes.add()
        try:
            for item in run:
                made.append(item)
                if item.pid not in pids:
                    break
        except RunError as failed:
            error = str(failed)
        seconds = time.monotonic() - started
        if not error:
            made += islice(run, 50)
            restarts, lost = run.stats().restarts, run.stats().lost
    nodes.thaw()
    return Fallen(
        where,
        gone,
        added,
        made,
        error,
        seconds,
        restarts,
        lost,
        _alive({each.pid for each in [*before, *made]}),
    )


def _patient(nodes: Nodes, seconds: float) -> Engine:
    return Ray(nodes.address, start_limit=seconds)


def _left(nodes: Nodes, pids: set[int]) -> Left:
    alive = _alive(pids)
    if not ray.is_initialized():
        ray.init(address=nodes.address, log_to_driver=False)
    there = ray.cluster_resources()["CPU"]
    deadline = time.monotonic() + 15
    while (free := ray.available_resources().get("CPU", 0.0)) < there and time.monotonic() < deadline:
        time.sleep(0.1)
    return Left([each["state"] for each in placement_group_table().values()], (free, there), alive)


def _alive(pids: set[int]) -> list[int]:
    """Those that are there after at most 15 seconds, in which an actor's process may end."""
    deadline = time.monotonic() + 15
    while (left := [pid for pid in pids if _is_alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
