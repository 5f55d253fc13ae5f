"""Weights on their way from a learner to actors, by reference, and never many at a time in a slow one.

Apart from the executor because weights differ from every other message: newer ones replace older ones.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeflow.dsl.nodes import Group, ReplyWeights, SyncWeights
from pipeflow.lowering.engine import Actor, Call
from pipeflow.lowering.host import Host
from pipeflow.lowering.items import Item
from pipeflow.semantics.events import Purpose

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor

Sender = SyncWeights | ReplyWeights

# So many weights may wait in an actor. While an actor is busy with a long call, the driver keeps what comes then,
# the newest only, and sends it before the actor's next call: what the actor starts reflects all of it (laws 7, 9).
_WEIGHTS_AHEAD = 4


class Broadcasts:
    """What was sent, by whom, and what is kept for actors in which enough weights wait."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._latest: dict[tuple[Sender, Group], Item] = {}
        self._under_way: defaultdict[Actor, deque[Call]] = defaultdict(deque)
        self.kept: dict[Actor, dict[Sender, Item]] = {}

    def send(self, node: Sender, group: Group, receivers: Sequence[Actor]) -> None:
        """Send a learner's weights to some actors of a group; a restarted one gets them as well."""
        executor = self._executor
        learner = executor.running.of(node.learner)[0]
        call = executor.submit(node, learner, Host.lend, node.get, apart=True)
        weights = Item(handle=call.item, call=call)
        self._latest[node, group] = weights
        for receiver in receivers:
            executor.versions[receiver.name] += 1
            if self._full(receiver):
                kept = self.kept.setdefault(receiver, {})
                kept.pop(node, None)  # the newest goes to the end, so that order stays that of sending
                kept[node] = weights
                if executor.recorder is not None:
                    executor.recorder.kept(node, receiver.name, weights)
            else:
                self.kept.get(receiver, {}).pop(node, None)
                self._under_way[receiver].append(self._submit(node, receiver, weights, "weights"))

    def attributes(self) -> dict[str, object]:
        """What the next weights depend on, by name, for a checkpoint."""
        return {
            "latest": [(node, group, weights) for (node, group), weights in self._latest.items()],
            "under_way": [(actor, list(calls)) for actor, calls in self._under_way.items()],
            "kept": [(actor, list(kept.items())) for actor, kept in self.kept.items()],
        }

    # `Any`: what `attributes` gave.
    def fill(self, saved: Mapping[str, Any]) -> None:
        """Load what `attributes` gave."""
        self._latest = {(node, group): weights for node, group, weights in saved["latest"]}
        for actor, calls in saved["under_way"]:
            self._under_way[actor] = deque(calls)
        self.kept = {actor: dict(kept) for actor, kept in saved["kept"]}

    def flush(self, actor: Actor) -> None:
        """Send what was kept for an actor."""
        for node, weights in self.kept.pop(actor, {}).items():
            self._under_way[actor].append(self._submit(node, actor, weights, "setup"))

    def flush_all(self) -> None:
        """Send whatever was kept."""
        for actor in list(self.kept):
            self.flush(actor)

    def latest(self, group: Group) -> list[tuple[Sender, Item]]:
        """The latest weights that were sent to actors of a group, by every node that sends any."""
        return [(node, weights) for (node, known), weights in self._latest.items() if known is group]

    def give_latest(self, group: Group, actor: Actor) -> None:
        """Give an actor of a group that was started again the latest weights."""
        for node, weights in self.latest(group):
            self._submit(node, actor, weights, "setup")

    def forget(self, actor: Actor) -> None:
        """An actor is gone, and with it what was on its way to it."""
        self._under_way.pop(actor, None)
        self.kept.pop(actor, None)

    def _full(self, actor: Actor) -> bool:
        under_way = self._under_way[actor]
        while under_way and under_way[0].reply is not None:
            under_way.popleft()
        return len(under_way) >= _WEIGHTS_AHEAD

    def _submit(self, node: Sender, actor: Actor, weights: Item, purpose: Purpose) -> Call:
        return self._executor.submit(
            node, actor, Host.message, node.set, weights.argument, purpose=purpose, given=weights
        )
