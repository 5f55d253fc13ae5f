"""Cursors of the gathers: from shards in actors to one sequence, in rounds or as items become ready.

A shard's program runs in its actor; one call returns one finished item, which stays there until it is read.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from pipeflow.dsl import nodes
from pipeflow.lowering.cursors.cursor import Cursor
from pipeflow.lowering.cursors.shards import Shard
from pipeflow.lowering.items import Item, Signal

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor


class _GatherCursor(Cursor):
    def __init__(
        self, executor: Executor, node: nodes.Gather, shards: Sequence[Shard], feeding: Sequence[Cursor]
    ) -> None:
        super().__init__(executor, node, feeding)
        self._shards = shards
        self._num_async = node.num_async
        self._rounds = node.mode == "rounds"
        self._stopped = False

    @property
    @override
    def queue(self) -> int:
        return sum(len(shard.calls) for shard in self._shards)

    @override
    def _stop(self) -> None:
        self._stopped = True
        super()._stop()

    def _taken(self, item: Item) -> Item:
        self.meter.taken += 1
        self.meter.add_lag(item.lag or 0)
        return item

    def _wait_for_sources(self) -> Signal:
        names = ", ".join(shard.name for shard in self._shards if not shard.ended)
        self.waits_for = f"{names}, which had nothing (NotReady) and which nothing in the plan can change"
        return Signal.NOT_READY


class SyncGatherCursor(_GatherCursor):
    """Rounds behind a barrier (laws 5 and 6).

    A round is opened only by a poll that comes after the last item of the round before was delivered.
    """

    def __init__(
        self, executor: Executor, node: nodes.Gather, shards: Sequence[Shard], feeding: Sequence[Cursor]
    ) -> None:
        super().__init__(executor, node, shards, feeding)
        self._round: deque[Shard] = deque()
        self._collected: list[Item] = []

    @override
    def _poll(self) -> Item | Signal:
        while True:
            if not self._round:
                live = [
                    shard for shard in self._shards if not shard.ended and (shard.fed or not self._stopped)
                ]
                if self._collected or not live:
                    return self._last_round()
                for shard in live:
                    shard.ask()
                self._round.extend(live)
            for shard in self._round:
                shard.feed()
            first = self._round[0]
            found = first.head()
            if isinstance(found, Item):
                self._round.popleft()
                if not self._rounds:
                    return self._taken(found)
                self._collected.append(self._taken(found))
            elif found is Signal.DONE:
                self._round.popleft()
            elif found is Signal.PENDING or first.wanted:
                if found is Signal.PENDING:
                    self.executor.awaits(1 if first.wanted else len(self._round))
                return found
            elif self._stopped:
                self._round.popleft()
            elif found is Signal.NOT_READY:
                return self._wait_for_sources()
            else:
                first.ask()
                return found

    def _last_round(self) -> Item | Signal:
        collected, self._collected = tuple(self._collected), []
        return Item(parts=collected) if collected else Signal.DONE


class AsyncGatherCursor(_GatherCursor):
    """Items as they become ready, each shard's own in order (laws 1, 7 and 8).

    A shard is asked again by the poll that follows the delivery of an item of it, so whatever the consumer sent
    to its actor in between comes first.
    """

    # How many weights an item may be behind; so that none gets older, shards are asked less and some items wait.
    max_lag: float = math.inf

    def __init__(
        self, executor: Executor, node: nodes.Gather, shards: Sequence[Shard], feeding: Sequence[Cursor]
    ) -> None:
        super().__init__(executor, node, shards, feeding)
        # Those that may be asked for more.
        self._open = list(shards)
        self._place = {shard: place for place, shard in enumerate(shards)}

    @override
    def _poll(self) -> Item | Signal:
        self._ask()
        rejected = False
        for shard in self._ready():
            found = shard.head()
            if shard not in self._open:
                self._open.append(shard)
            if isinstance(found, Item):
                return self._taken(found)
            rejected |= found is Signal.REJECTED
        self._ask()  # a shard whose call came to nothing waits for no other
        if rejected:
            return Signal.REJECTED
        if any(shard.calls for shard in self._shards):
            self.executor.awaits(1)
            return Signal.PENDING
        if self._stopped or all(shard.ended for shard in self._shards):
            return Signal.DONE
        if any(not shard.ended and not shard.waits for shard in self._shards):
            return Signal.PASS
        return self._wait_for_sources()

    def _ready(self) -> list[Shard]:
        """The shards with something to deliver, in the order in which it was finished."""
        ready = [shard for shard in self._shards if shard.calls and shard.calls[0].reply is not None]
        if self.max_lag < math.inf:
            ready = [shard for shard in ready if self._in_time(shard)]
        if len(ready) > 1:
            ready.sort(key=lambda shard: shard.calls[0].finished)
        return ready

    def _ask(self) -> None:
        if self._stopped or not self._open:
            return
        if len(self._open) > 1:
            self._open.sort(key=lambda shard: (shard.asked, self._place[shard]))
        self._open = [shard for shard in self._open if self._has_room(shard)]

    def _has_room(self, shard: Shard) -> bool:
        """Ask a shard for as many items as it may start; whether it may be asked for more."""
        if shard.ended:
            return False
        if shard.waits:  # a source that was not ready is asked once, not `num_async` times
            return True
        room = self._num_async - len(shard.calls)
        if self.max_lag < math.inf:
            while room > 0 and self._feasible([*self._lags(), 0]):
                shard.ask()
                room -= 1
        else:
            while room > 0 and (asked := shard.ask_for(room)):
                room -= asked
        return room > 0

    def _in_time(self, shard: Shard) -> bool:
        """Whether all other items can still be delivered within the limit after one of this shard was."""
        others = self._lags()
        if others:
            others.remove(shard.lags()[0])
        return self._feasible([lag + 1 for lag in others])

    def _lags(self) -> list[int]:
        return [] if self.max_lag == math.inf else [lag for shard in self._shards for lag in shard.lags()]

    def _feasible(self, lags: list[int]) -> bool:
        """Whether items of these lags fit into the limit, the oldest first, each ageing the next by one."""
        return all(lag + waited <= self.max_lag for waited, lag in enumerate(sorted(lags, reverse=True)))
