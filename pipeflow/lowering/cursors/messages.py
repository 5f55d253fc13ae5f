"""Cursors of the nodes that pass items on and send messages to actors on the way.

A message is submitted before the item is delivered. Calls to one actor take effect in the order of submission,
so what the consumer asks for next comes after the message (law 9).
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import override

from pipeflow.dsl import nodes
from pipeflow.lowering.cursors.cursor import Cursor, OneInputCursor
from pipeflow.lowering.engine import Call
from pipeflow.lowering.host import Host
from pipeflow.lowering.items import Item, Origin, Signal

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor


# So many messages may wait in each actor of a group that is slower than the stream, so that they never pile up.
_MESSAGES_AHEAD = 64


class SendCursor(OneInputCursor):
    """Sends every item to all actors of a group."""

    def __init__(self, executor: Executor, node: nodes.Send, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._method = node.method
        self._group = node.group
        self._sent: deque[Call] = deque()

    @override
    def _poll(self) -> Item | Signal:
        while self._sent and self._sent[0].reply is not None:
            self._sent.popleft()
        actors = self.executor.running.living(self._group)
        if len(self._sent) >= _MESSAGES_AHEAD * len(actors):
            return Signal.PENDING
        found = self._pull()
        if isinstance(found, Item):
            payload = self.executor.reader.argument(found)
            for actor in actors:
                self._sent.append(
                    self.executor.submit(
                        self.node, actor, Host.message, self._method, payload, purpose="message", given=found
                    )
                )
        return found


class SyncWeightsCursor(OneInputCursor):
    """Sends the learner's weights to all workers, at the start and after every n-th item; by reference."""

    def __init__(self, executor: Executor, node: nodes.SyncWeights, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._sync = node
        self._started = False

    @override
    def _poll(self) -> Item | Signal:
        if not self._started:
            self._started = True
            self._broadcast()
        found = self._pull()
        if isinstance(found, Item) and self.meter.taken % self._sync.every == 0:
            self._broadcast()
        return found

    def _broadcast(self) -> None:
        workers = self._sync.workers
        self.executor.broadcasts.send(self._sync, workers, self.executor.running.living(workers))


class NotifyCursor(OneInputCursor):
    """Calls a method on all actors of a group after every n-th item."""

    def __init__(self, executor: Executor, node: nodes.Notify, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._notify = node

    @override
    def _poll(self) -> Item | Signal:
        found = self._pull()
        if isinstance(found, Item) and self.meter.taken % self._notify.every == 0:
            for actor in self.executor.running.living(self._notify.group):
                self.executor.submit(self.node, actor, Host.notify, self._notify.method, purpose="message")
        return found


class ReplyWeightsCursor(OneInputCursor):
    """Sends the learner's weights to the actors that items came from, and to all of them at the start."""

    def __init__(self, executor: Executor, node: nodes.ReplyWeights, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._reply = node
        self._started = False
        self._had: Counter[Origin] = Counter()

    @override
    def _poll(self) -> Item | Signal:
        if not self._started:
            self._started = True
            for group in dict.fromkeys(nodes.producers_of(self._reply.input)):
                self.executor.broadcasts.send(self._reply, group, self.executor.running.living(group))
        found = self._pull()
        if isinstance(found, Signal):
            return found
        self._had.update(found.origins)
        due = [origin for origin in found.origins if self._had[origin] % self._reply.every == 0]
        for group in dict.fromkeys(origin.group for origin in due):
            actors = self.executor.sources_of([origin for origin in due if origin.group is group])
            self.executor.broadcasts.send(self._reply, group, actors)
        return replace(found, origins=(), uid=0)


class ReplyCursor(OneInputCursor):
    """Answers just the actors that each item came from, each once."""

    def __init__(self, executor: Executor, node: nodes.Reply, upstream: Cursor) -> None:
        super().__init__(executor, node, upstream)
        self._method, self._message = node.method, node.message

    @override
    def _poll(self) -> Item | Signal:
        found = self._pull()
        if isinstance(found, Signal):
            return found
        value = self.executor.reader.value(found)
        message = self._called(self._message, value)
        for source in self.executor.sources_of(found.origins):
            self.executor.submit(
                self.node, source, Host.message, self._method, message, purpose="message", given=found
            )
        return Item(value)
