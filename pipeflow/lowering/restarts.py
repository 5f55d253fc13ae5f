"""What an actor that died is given back when it is started again: programs, place in the data, latest weights.

Apart from the executor, which decides when; this only remembers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from pipeflow.dsl.nodes import Group, Node, ReplyWeights, SyncWeights
from pipeflow.lowering.host import FIRST
from pipeflow.lowering.items import Item
from pipeflow.lowering.program import Program


class Installed:
    """A program in an actor: whose it is, the key that its calls name, and the nodes of its steps in order.

    `named` is the key as the last arguments of a call, `made` how many items its source is known to have made.
    """

    def __init__(self, node: Node, key: int, program: Program) -> None:
        self.node = node
        self.key = key
        self.program = program
        self.nodes = tuple(step.node for step in program.all_steps)
        self.named = () if key == FIRST else (key,)
        self.made = 0


class Restarts:
    """The memory of a run for the sake of actors that may die."""

    def __init__(self) -> None:
        self._used: Counter[int] = Counter()
        self._programs: defaultdict[str, list[Installed]] = defaultdict(list)
        self._weights: dict[tuple[int, int], tuple[SyncWeights | ReplyWeights, Item]] = {}

    def allowed(self, group: Group) -> bool:
        """Whether one more actor of the group may be started again; counts it."""
        self._used[id(group)] += 1
        return self._used[id(group)] <= group.restarts

    def installed(self, actor: str, node: Node, program: Program) -> Installed:
        """A program is installed, under the next key of its actor."""
        installed = Installed(node, len(self._programs[actor]) + FIRST, program)
        self._programs[actor].append(installed)
        return installed

    def programs(self, actor: str) -> Sequence[Installed]:
        """The programs of an actor, in the order of installation."""
        return self._programs[actor]

    def broadcast(self, node: SyncWeights | ReplyWeights, group: Group, weights: Item) -> None:
        """Weights were sent to actors of a group."""
        self._weights[id(node), id(group)] = (node, weights)

    def weights_of(self, group: Group) -> list[tuple[SyncWeights | ReplyWeights, Item]]:
        """The latest weights that were sent to actors of a group, by every node that sends any."""
        return [sent for (_, known), sent in self._weights.items() if known == id(group)]
