"""The inline engine: calls run one at a time, in the order of submission, when somebody waits."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

import itertools
import traceback

import pytest

from pipeflow.dsl import StageError, actors, from_shards, gather_async, gather_sync
from pipeflow.lowering.engines.inline import InlineEngine
from pipeflow.lowering.host import Host
from tests.lowering.actors import Counter


def test_a_run_is_deterministic() -> None:
    """Law 22: asynchronous operators too come out the same each time."""
    plans = [
        (from_shards([range(5), range(9)]) | gather_async(2)) & (from_shards([range(3)]) | gather_async(3))
        for _ in range(2)
    ]
    assert list(plans[0].run()) == list(plans[1].run())


def test_a_call_runs_when_it_is_waited_for_and_in_the_order_of_submission() -> None:
    engine = InlineEngine()
    engine.open()
    actor = engine.start("Counter[0]", 0, actors(Counter, 1).group)
    build = engine.submit(actor, Host.build, Counter, (), {})
    asked = [engine.submit(actor, Host.ask, Counter.next_number) for _ in range(2)]
    assert build.reply is None
    calls = [build, *asked]
    while calls:
        for done in engine.wait(calls, None):
            assert done is calls.pop(0)
    assert [engine.fetch(call.item) for call in asked] == [1, 2]
    engine.stop([actor])
    engine.close()


def test_an_error_keeps_its_traceback() -> None:
    """So a debugger stops in the user's code."""

    def fails(number: int) -> int:
        raise ValueError(number)

    with pytest.raises(StageError) as caught:
        list((from_shards([[1]]) | fails | gather_sync()).run())
    cause = caught.value.__cause__
    assert cause is not None
    assert traceback.extract_tb(cause.__traceback__)[-1].name == "fails"


def test_a_copy_of_an_item_shares_nothing_with_it() -> None:
    """Law 26."""
    engine = InlineEngine()
    actor = engine.start("Counter[0]", 0, actors(Counter, 1).group)
    calls = [
        engine.submit(actor, Host.build, Counter, (), {}),
        engine.submit(actor, Host.ask, lambda counter: [[1]]),
    ]
    for call in calls:
        engine.wait([call], None)
    copied = engine.duplicate(calls[1].item)
    original = engine.fetch(calls[1].item)
    assert engine.fetch(copied) == original
    assert engine.fetch(copied) is not original
    assert engine.now() <= engine.now()


def test_a_long_plan_does_not_slow_down() -> None:
    """Nothing of a run grows with its items."""
    plan = actors(Counter, 2).produce(Counter.next_number) | gather_async(2)
    run = plan.run()
    for _ in itertools.islice(run, 5000):
        pass
    executor = run._executor
    assert len(executor.outstanding) <= 4
    run.close()
