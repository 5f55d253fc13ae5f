"""A cluster whose nodes come and go, and a process of its own for the driver of its runs.

The tests' process has a Ray already, and a process can be connected to one only. So a scenario is a function that
is called in another process, which has started the nodes as well; what it returns comes back to the test.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import ray
from ray._private.node import Node
from ray.cluster_utils import Cluster

P = ParamSpec("P")
T = TypeVar("T")

# Places for workers on each node but the first.
PLACES = 2
_SCENARIO_SECONDS = 240.0


class Nodes:
    """The nodes: a first one, which the driver joins, and two with places for workers; each has two cores."""

    def __init__(self) -> None:
        self._cluster = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 2, "include_dashboard": False, "resources": {"first": 1}},
        )
        self._others: dict[str, Node] = {}
        self._frozen: list[str] = []
        self._stopped: list[int] = []
        self.complete()

    @property
    def address(self) -> str:
        """To join it by."""
        return self._cluster.address

    @property
    def others(self) -> list[str]:
        """All but the first, by what Ray calls them."""
        return list(self._others)

    def complete(self) -> None:
        """Make it a first node and two others again."""
        self.thaw()
        for name in self.others[2:]:
            self.remove(name)
        while len(self._others) < 2:
            self.add()

    def add(self, **resources: float) -> str:
        """A further node; with two places for workers, if nothing is said of its resources."""
        node = self._cluster.add_node(num_cpus=2, resources=resources or {"place": PLACES})
        self._others[node.node_id] = node
        return node.node_id

    def remove(self, name: str) -> None:
        """Take a node away as an autoscaler does: its processes are asked to end."""
        self._cluster.remove_node(self._others.pop(name), allow_graceful=True)

    def lose(self, name: str) -> None:
        """A node is gone without a word."""
        self._cluster.remove_node(self._others.pop(name), allow_graceful=False)

    def freeze(self, name: str) -> None:
        """A node is there and answers nobody, as one whose network is gone, until the scenario is over."""
        [raylet] = self._others[name].all_processes["raylet"]
        self._frozen.append(name)
        for pid in [raylet.process.pid, *_children(raylet.process.pid)]:
            os.kill(pid, signal.SIGSTOP)
            self._stopped.append(pid)

    def thaw(self) -> None:
        """Let what was frozen be gone."""
        for name in self._frozen:
            self.lose(name)
        for pid in self._stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._frozen.clear()
        self._stopped.clear()

    def close(self) -> None:
        """End all nodes."""
        self._cluster.shutdown()


class Driver:
    """The process that starts the nodes and runs the plans."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,))
        self._process.start()
        theirs.close()

    def do(self, scenario: Callable[Concatenate[Nodes, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What a scenario returns; it starts with a first node and two others."""
        self._ours.send((scenario, args, kwargs))
        if not self._ours.poll(_SCENARIO_SECONDS):
            self._process.kill()
            message = f"{scenario.__name__} is not done after {_SCENARIO_SECONDS:g} s"
            raise TimeoutError(message)
        result, error = self._ours.recv()
        if error is not None:
            message = f"in the driver:\n{error}"
            raise AssertionError(message)
        found: T = result
        return found

    def end(self) -> None:
        """End it, and the nodes with it."""
        if self._process.is_alive():
            self._ours.send(None)
        self._process.join(60)
        self._process.kill()
        self._process.join()
        self._process.close()
        self._ours.close()


def _serve(pipe: Connection) -> None:
    nodes = Nodes()
    try:
        while (asked := pipe.recv()) is not None:
            scenario, args, kwargs = asked
            result, error = None, None
            try:
                nodes.complete()
                result = scenario(nodes, *args, **kwargs)
            except BaseException:  # whatever it is, it is the test's
                error = traceback.format_exc()
            finally:
                nodes.thaw()
                ray.shutdown()
            pipe.send((result, error))
    finally:
        nodes.close()


def _children(parent: int) -> list[int]:
    tasks = Path(f"/proc/{parent}/task").glob("*/children")
    return [int(pid) for task in tasks for pid in task.read_text().split()]
