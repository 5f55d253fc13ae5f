"""The actors of a run: started, given their programs, and after a failure started again or given up (law 19).

Apart from the executor, whose loop knows nodes and calls: here is which actor stands for which place in its group,
what was installed in it, and what its failure means for the run.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeflow.dsl.errors import ActorDiedError, RunError, StageError
from pipeflow.dsl.nodes import Group, Node
from pipeflow.dsl.trees import group_names, groups_of
from pipeflow.lowering.engine import Actor
from pipeflow.lowering.host import FIRST, Host
from pipeflow.lowering.program import Program

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor

_LOGGER = logging.getLogger(__name__)


class Installed:
    """A program in an actor: whose it is, the key that its calls name, and the nodes of its steps in order.

    `named` is the key as the last arguments of a call, `made` how many items its source is known to have made.
    `given_up` says that its actor is gone for good.
    """

    def __init__(self, node: Node, key: int, program: Program) -> None:
        self.node = node
        self.key = key
        self.program = program
        self.nodes = tuple(step.node for step in program.all_steps)
        self.named = () if key == FIRST else (key,)
        self.made = 0
        self.given_up = False


class RunningActors:
    """The actors of a plan while it runs, by group and index."""

    def __init__(self, executor: Executor, root: Node) -> None:
        self._executor = executor
        self.groups = groups_of(root)
        self.restarted: Counter[str] = Counter()
        self.given_up: list[str] = []
        # By the group's identity.
        self.group_names = group_names(root)
        self._actors: dict[int, list[Actor]] = {}
        self._gone: set[Actor] = set()
        self._programs: defaultdict[str, list[Installed]] = defaultdict(list)
        self.starts_used: Counter[Group] = Counter()

    def start(self) -> None:
        """Start the actors of all groups."""
        for group in self.groups:
            self._actors[id(group)] = [self._start(group, index) for index in range(group.count)]

    def of(self, group: Group) -> list[Actor]:
        """The actors of a group by index, those that were given up among them; the list follows restarts."""
        return self._actors[id(group)]

    def actor_names(self, group: Group) -> list[str]:
        """What the actors of a group are called, by index."""
        return [f"{self.group_names[id(group)]}[{index}]" for index in range(group.count)]

    def living(self, group: Group) -> list[Actor]:
        """The actors of a group that were not given up."""
        actors = self._actors[id(group)]
        return actors if not self._gone else [actor for actor in actors if actor not in self._gone]

    def is_given_up(self, actor: Actor) -> bool:
        """Whether an actor is gone for good."""
        return actor in self._gone

    def all(self) -> dict[Actor, Group]:
        """Every actor that stands for a place in its group, with the group."""
        return {actor: group for group in self.groups for actor in self._actors.get(id(group), ())}

    def install(self, node: Node, group: Group, index: int, program: Program) -> Installed:
        """Install a program in an actor, under the actor's next key."""
        actor = self.of(group)[index]
        programs = self._programs[actor.name]
        installed = Installed(node, len(programs) + FIRST, program)
        programs.append(installed)
        if self._executor.recorder is not None:
            self._executor.recorder.installed(actor.name, program)
        self._install(actor, installed)
        return installed

    def raised(self, actor: Actor, error: StageError) -> None:
        """Code raised in an actor: do as its group's policy says.

        Raises:
            StageError: the error, where it is to end the run, or nothing else is left.
        """
        place = self._place(actor)
        if place is None:  # it was ended meanwhile, and this call is lost with it
            return
        group, index = place
        if group.on_error == "restart" and self._may_restart(group):
            self._executor.engine.kill(actor)
            self._restart(group, index, error)
        elif group.on_error == "drop_shard" and len(self.living(group)) > 1:
            self._executor.engine.kill(actor)
            self._give_up(group, actor, error)
        else:
            raise error

    def died(self, actor: Actor, node: Node, reason: str) -> None:
        """An actor is gone: start it again, with its programs and the latest weights of its group (law 19).

        Args:
            actor: the actor.
            node: for which the run needed it.
            reason: why it died, as far as the engine knows.

        Raises:
            ActorDiedError: its group may not be restarted, or not again, nor be one actor less.
        """
        place = self._place(actor)
        if place is None:
            return
        group, index = place
        restarts = group.restarts
        again = f" after {restarts} restart{'s' if restarts > 1 else ''}" if restarts else ""
        message = (
            f"{actor.name} died{again} while the run needed it for {node.name} ({node.site}): {reason}; "
            f"let its group be restarted with actors(...).restarts(n), written at {group.site}"
        )
        error = ActorDiedError(message)
        if self._may_restart(group):
            self._restart(group, index, ActorDiedError(f"{actor.name} died: {reason}"))
        elif group.on_error == "drop_shard" and len(self.living(group)) > 1:
            self._give_up(group, actor, error)
        else:
            raise error

    def lose(self, group: Group, index: int) -> None:
        """Give up an actor that was given up in the run that is gone on with."""
        actor = self.of(group)[index]
        self._executor.engine.kill(actor)
        self._gone.add(actor)

    def programs(self, actor: str) -> Sequence[Installed]:
        """The programs of an actor, in the order of installation."""
        return self._programs[actor]

    def stop(self) -> dict[Actor, Group]:
        """Forget all actors; returns them, for the engine to end."""
        actors = self.all()
        self._actors.clear()
        return actors

    def _place(self, actor: Actor) -> tuple[Group, int] | None:
        """Where an actor stands, or None if another took its place or it was given up."""
        if actor in self._gone:
            return None
        for group in self.groups:
            actors = self._actors.get(id(group), [])
            if actor in actors:
                return group, actors.index(actor)
        return None

    def _start(self, group: Group, index: int, restart: bool = False) -> Actor:
        owner = Node(name=f"actors({group.name}, {group.count})", site=group.site)
        actor = self._executor.engine.start(self.actor_names(group)[index], index, group)
        if self._executor.recorder is not None:
            self._executor.recorder.spawned(actor.name, restart)
        shard = () if group.shards is None else (group.shards[index],)
        self._executor.submit(
            owner, actor, Host.build, group.factory, (*shard, *group.args), dict(group.kwargs)
        )
        return actor

    def _install(self, actor: Actor, installed: Installed) -> None:
        key, program = installed.key, installed.program
        self._executor.submit(installed.node, actor, Host.install, key, program, installed=installed)

    def _may_restart(self, group: Group) -> bool:
        """Whether one more actor of the group may be started again; counts it."""
        if self.starts_used[group] >= group.restarts:
            return False
        self.starts_used[group] += 1
        return True

    def _restart(self, group: Group, index: int, why: RunError) -> None:
        self._executor.broadcasts.forget(self.of(group)[index])
        actor = self.of(group)[index] = self._start(group, index, restart=True)
        self.restarted[actor.name] += 1
        count = self.starts_used[group]
        _LOGGER.warning("restart %d of %d of %s: %s", count, group.restarts, group.name, why)
        for installed in self._programs[actor.name]:
            self._install(actor, installed)
            if group.shards is not None:
                # The data of a shard starts anew: what came of it before is not made again.
                self._executor.submit(
                    installed.node, actor, Host.skip, installed.key, installed.made, installed=installed
                )
        self._executor.broadcasts.give_latest(group, actor)

    def _give_up(self, group: Group, actor: Actor, why: RunError) -> None:
        """Let the shards of an actor end."""
        self._executor.broadcasts.forget(actor)
        self._gone.add(actor)
        self.given_up.append(actor.name)
        for installed in self._programs[actor.name]:
            installed.given_up = True
        left = len(self.living(group))
        _LOGGER.warning("%s is given up, %d of %d are left: %s", actor.name, left, group.count, why)
        if self._executor.recorder is not None:
            self._executor.recorder.given_up(actor.name)
