"""Law 23: its checkers reject an engine's trace that cannot be, and runs of one plan that differ."""

from __future__ import annotations

import re

import pytest

from pipeflow.dsl import gather_async, gather_sync
from pipeflow.lowering.engines.inline import InlineEngine
from pipeflow.lowering.engines.sim import Sim
from pipeflow.semantics.laws import law_23_same
from tests.semantics.broken import RoundsAsTheyCome
from tests.semantics.mutants import MUTANTS, counters, trace_of


def test_law_23_rejects_a_gather_that_delivers_before_items_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[23].rejected(monkeypatch)
    assert re.match(r"gather_async\(2\) \(.*\) delivers item \d+ before calls \[\d+\] came back", found[0])


def test_law_23_compares_a_synchronous_plan_on_two_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    inline = trace_of(counters(gather_sync()), InlineEngine())
    assert all(law_23_same(inline, trace_of(counters(gather_sync()), Sim(seed))) == [] for seed in range(25))
    monkeypatch.setattr("pipeflow.lowering.cursors.SyncGatherCursor", RoundsAsTheyCome)
    found = [
        broken
        for seed in range(25)
        for broken in law_23_same(inline, trace_of(counters(gather_sync()), Sim(seed)))
    ]
    assert found[0].message == "one run delivers ('shard', 0, 0, 0), the other ('shard', 0, 1, 0)"


def test_law_23_compares_no_plans_with_asynchronous_operators() -> None:
    inline = trace_of(counters(gather_async()), InlineEngine())
    assert all(law_23_same(inline, trace_of(counters(gather_async()), Sim(seed))) == [] for seed in range(25))
