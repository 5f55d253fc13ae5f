"""What an actor that died is given back when it is started again: programs, place in the data, latest weights.

Apart from the executor, which decides when; this only remembers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from pipeflow.dsl.nodes import Group, Node, ReplyWeights, SyncWeights
from pipeflow.lowering.items import Item
from pipeflow.lowering.program import Program, Tally


class Restarts:
    """The memory of a run for the sake of actors that may die."""

    def __init__(self) -> None:
        self._used: Counter[int] = Counter()
        self._programs: defaultdict[str, list[tuple[Node, int, Program]]] = defaultdict(list)
        self._weights: dict[tuple[int, int], tuple[SyncWeights | ReplyWeights, Item]] = {}
        # How many items the source of each program is known to have made, by the program's key.
        self.made: Counter[int] = Counter()

    def allowed(self, group: Group) -> bool:
        """Whether one more actor of the group may be started again; counts it."""
        self._used[id(group)] += 1
        return self._used[id(group)] <= group.restarts

    def installed(self, actor: str, node: Node, key: int, program: Program) -> None:
        """A program was installed."""
        self._programs[actor].append((node, key, program))

    def programs(self, actor: str) -> Sequence[tuple[Node, int, Program]]:
        """The programs of an actor, with their nodes and keys, in the order of installation."""
        return self._programs[actor]

    def broadcast(self, node: SyncWeights | ReplyWeights, group: Group, weights: Item) -> None:
        """Weights were sent to actors of a group."""
        self._weights[id(node), id(group)] = (node, weights)

    def weights_of(self, group: Group) -> list[tuple[SyncWeights | ReplyWeights, Item]]:
        """The latest weights that were sent to actors of a group, by every node that sends any."""
        return [sent for (_, known), sent in self._weights.items() if known == id(group)]

    def count(self, program: Program, actor: str, tallies: Sequence[Tally]) -> None:
        """Note how many items a program's source made."""
        if program.source is not None:
            for _, key, known in self._programs[actor]:
                if known is program:
                    self.made[key] += tallies[0].made
