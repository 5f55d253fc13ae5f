"""`Host` and the programs in it, without any engine: what one call returns, and what is counted."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from pipeflow.dsl import Ended, NotReady, current_shard
from pipeflow.dsl.gating import EveryNth, Filtering, Taking, UntilHolds
from pipeflow.lowering.host import Host
from pipeflow.lowering.program import Answer, Gone, Program, Status, Step

KEY = 1


class Source:
    """Returns what it was built with, one by one."""

    def __init__(self, *items: object) -> None:
        self._items = list(items)

    def next_item(self) -> object:
        return self._items.pop(0) if self._items else Ended()


class Doubling:
    """Gives every item twice, and says at its end that it was told."""

    def push(self, item: object, /) -> Iterable[object]:
        return item, item

    def finish(self) -> Iterable[object]:
        return ("end",)


def shard(*items: object, steps: tuple[Step, ...] = ()) -> Host:
    host = Host(0)
    host.build(Source, items, {})
    host.install(KEY, Program(source=Step(0, method=Source.next_item), steps=steps))
    return host


def advanced(host: Host) -> list[tuple[Status, object]]:
    """The answers of `advance_by_key` up to the end of the shard."""
    found = list[tuple[Status, object]]()
    while not found or found[-1][0] in (Status.ITEM, Status.EMPTY):
        reply, item = host.advance_by_key(KEY)
        found.append((reply.status, item))
    return found


def test_one_call_returns_one_item_and_the_last_says_that_it_was_the_last() -> None:
    assert advanced(shard(1, 2)) == [(Status.ITEM, 1), (Status.ITEM, 2), (Status.ENDED, None)]


def test_a_shard_that_has_ended_stays_so() -> None:
    """Law 18: calls that were under way already find the same end."""
    host = shard(steps=(Step(1, expansion=Doubling),))
    assert advanced(host) == [(Status.ITEM, "end"), (Status.ENDED, None)]
    assert host.advance_by_key(KEY)[0].status is Status.ENDED


def test_outputs_beyond_the_first_wait_for_the_next_call() -> None:
    """Law 17: the source is not asked while something waits."""
    host = shard(1, 2, steps=(Step(1, expansion=Doubling),))
    reply, item = host.advance_by_key(KEY)
    assert (item, reply.more) == (1, True)
    assert [tally.made for tally in reply.tallies] == [1, 2]
    reply, item = host.advance_by_key(KEY)
    assert (item, reply.more) == (1, False)
    assert [tally.made for tally in reply.tallies] == [0, 0]


def test_a_source_that_is_not_ready_says_so_and_is_not_counted() -> None:
    host = shard(NotReady(), 5)
    reply, item = host.advance_by_key(KEY)
    assert (reply.status, item, reply.tallies[0].made) == (Status.NOT_READY, None, 0)
    assert host.advance_by_key(KEY)[1] == 5


def test_a_filter_that_rejects_everything_lets_the_driver_speak_now_and_then() -> None:
    """Law 21: one call is bounded, so a run can be closed."""
    host = Host(0)
    host.build(Source, (), {})
    program = Program(
        Step(0, method=lambda source: 7), (Step(1, gating=lambda: Filtering(lambda item: False)),)
    )
    host.install(KEY, program)
    reply, _ = host.advance_by_key(KEY)
    assert reply.status is Status.EMPTY
    assert reply.tallies[0].made == 1000


def test_a_closed_gate_ends_the_shard_without_asking_its_source() -> None:
    host = shard(1, 2, 3, steps=(Step(1, gating=lambda: Taking(2)),))
    assert [item for _, item in advanced(host)] == [1, 2, None]
    assert host.ask(Source.next_item)[1] == 3


def test_a_closed_gate_lets_nothing_more_through() -> None:
    """Also where one input makes several outputs, and though the gate would open again if asked."""
    for gate in (lambda: Taking(1), lambda: UntilHolds(lambda item: True)):
        host = shard(1, 2, steps=(Step(1, expansion=Doubling), Step(2, gating=gate)))
        assert [item for _, item in advanced(host)] == [1, None]


def test_only_what_stands_behind_the_last_closed_gate_is_told_of_the_end() -> None:
    """As on the driver, where a closed gate asks for nothing more."""
    steps = (
        Step(1, expansion=Doubling),
        Step(2, gating=lambda: Taking(1)),
        Step(3, expansion=Doubling),
        Step(4, gating=lambda: EveryNth(1)),
    )
    assert [item for _, item in advanced(shard(1, steps=steps))] == [1, 1, "end", None]


def test_a_consumer_takes_its_inputs_apart_from_its_outputs() -> None:
    host = Host(0)
    host.build(Source, (), {})
    host.install(KEY, Program(steps=(Step(0, expansion=Doubling), Step(1, function=str))))
    assert summary(host.feed(1, KEY)) == (Status.ITEM, "1", True)
    assert summary(host.more(KEY)) == (Status.ITEM, "1", False)
    assert summary(host.more(KEY)) == (Status.EMPTY, None, False)
    assert summary(host.feed_list(KEY, 1, 2)) == (Status.ITEM, "[1, 2]", True)
    assert summary(host.finish(KEY)) == (Status.ITEM, "[1, 2]", True)
    assert summary(host.more(KEY)) == (Status.ITEM, "end", False)
    assert summary(host.more(KEY)) == (Status.ENDED, None, False)


def summary(answer: Answer) -> tuple[Status, object, bool]:
    reply, item = answer
    return reply.status, item, reply.more


def test_a_program_that_is_installed_again_starts_afresh() -> None:
    host = shard(1, 2, 3, steps=(Step(1, gating=lambda: Taking(1)),))
    assert [item for _, item in advanced(host)] == [1, None]
    host.install(KEY, Program(Step(0, method=Source.next_item)))
    assert host.advance_by_key(KEY)[1] == 2


def test_calls_of_a_program_that_failed_to_be_installed_are_lost() -> None:
    def unmade() -> object:
        raise ValueError("no state")

    host = Host(0)
    host.build(list, (), {})
    assert host.install(KEY, Program(steps=(Step(0, expansion=unmade),)))[0].status is Status.FAILED
    calls = [host.advance_by_key(KEY), host.feed(1, KEY), host.more(KEY), host.finish(KEY), host.skip(KEY, 2)]
    assert [reply.status for reply, _ in calls] == [Status.LOST] * 5


def test_a_failure_tells_step_item_and_cause() -> None:
    """Law 20."""

    def inverse(number: float) -> float:
        return 1 / number

    host = shard(1, 2, 0, steps=(Step(1, function=abs), Step(2, function=inverse)))
    assert [host.advance_by_key(KEY)[1], host.advance_by_key(KEY)[1]] == [1.0, 0.5]
    reply, item = host.advance_by_key(KEY)
    assert isinstance(item, Gone)
    assert reply.failure is not None
    assert (reply.status, reply.failure.step, reply.failure.item) == (Status.FAILED, 2, 2)
    assert type(reply.failure.cause) is ZeroDivisionError
    assert [tally.taken for tally in reply.tallies] == [0, 1, 1]


@pytest.mark.parametrize("call", ["ask", "message"])
def test_a_method_that_fails_is_a_failure_of_no_step(call: str) -> None:
    host = Host(0)
    host.build(Source, (), {})

    def fails(source: Source, payload: object = None) -> object:
        raise StopIteration

    reply, _ = host.ask(fails) if call == "ask" else host.message(fails, 1)
    assert reply.failure is not None
    assert (reply.failure.step, reply.failure.item, type(reply.failure.cause)) == (-1, -1, StopIteration)


def test_ask_keeps_what_a_method_returns_and_message_does_not() -> None:
    host = shard(1)
    assert summary(host.ask(Source.next_item)) == (Status.ITEM, 1, False)
    assert summary(host.message(lambda source, payload: payload, 5)) == (Status.EMPTY, None, False)


def test_user_code_knows_the_index_of_its_actor_and_the_driver_is_left_as_it_was() -> None:
    class Indexed:
        def __init__(self) -> None:
            self.built_in = current_shard()

        def both(self) -> tuple[int, int]:
            return self.built_in, current_shard()

        def close(self) -> None:
            closed_in.append(current_shard())

    closed_in = list[int]()
    host = Host(3)
    host.build(Indexed, (), {})
    assert host.ask(Indexed.both)[1] == (3, 3)
    host.close()
    assert closed_in == [3]
    assert current_shard() == 0


def test_an_actor_is_closed_once_if_it_can_be() -> None:
    closed = list[int]()

    class Closable:
        def close(self) -> None:
            closed.append(1)

    hosts = [Host(0), Host(1), Host(2)]
    hosts[0].build(Closable, (), {})
    hosts[1].build(Source, (), {})
    for host in [*hosts, *hosts]:
        assert host.close()[0].status is Status.EMPTY
    assert closed == [1]


def test_an_interrupt_is_no_failure_of_a_stage() -> None:
    """Ctrl-C belongs to whoever runs the plan."""

    def interrupted(item: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shard(1, steps=(Step(1, function=interrupted),)).advance_by_key(KEY)
    assert current_shard() == 0
