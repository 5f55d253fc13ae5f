"""Laws 1 to 4: their checkers reject executors that lose, double or reorder items."""

from __future__ import annotations

import re

import pytest

from pipeflow.dsl import actors, batch, from_items
from pipeflow.lowering.engines.sim import Sim
from pipeflow.semantics.laws import check, law_3_same
from tests.lowering.actors import Arithmetic
from tests.semantics.broken import OvertakesForEver
from tests.semantics.mutants import MUTANTS, negated, trace_of


def test_law_1_rejects_a_gather_that_loses_items(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[1].rejected(monkeypatch)
    assert re.match(
        r"gather_async\(2\) \(.*\) delivers call \d+ before call \d+, which was issued before", found[0]
    )


def test_law_2_rejects_a_stage_that_gives_nothing_for_an_item(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[2].rejected(monkeypatch)
    assert re.match(r"negated \(.*\) asks for more and has given nothing for item \d+", found[0])


def test_law_3_rejects_an_expansion_that_is_fused_into_two_actors(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[3].rejected(monkeypatch)
    assert re.match(r"flatten \(.*\) is fused into 2 actors of Arithmetic; expected one", found[0])


def test_law_4_rejects_a_placed_stage_that_delivers_what_finishes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = MUTANTS[4].rejected(monkeypatch)
    assert re.match(r"Arithmetic.stage\(.*\) delivers call \d+ before call \d+", found[0])


def test_law_3_compares_runs_of_plans_that_are_fused_otherwise() -> None:
    """Stages in the actor that follows and on the driver give the same items; one item less is told."""
    square = actors(Arithmetic, 1).stage(Arithmetic.square)
    fused = trace_of(from_items(range(6)) | negated | batch(3) | sum | square, Sim(1))
    pinned = trace_of(from_items(range(6)).map(negated, here=True) | batch(3) | sum | square, Sim(2))
    shorter = trace_of(from_items(range(6)) | batch(6) | sum | square, Sim(3))
    assert law_3_same(fused, pinned) == []
    (broken,) = law_3_same(fused, shorter)
    assert broken.message == "one run has ended, the other delivers ('made by', 0, 1) as well"


def test_law_4_bounds_how_far_a_stage_without_order_lets_overtake(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = from_items(range(12)) | actors(Arithmetic, 3).stage(Arithmetic.square).max_in_flight(2).unordered()
    assert all(check(trace_of(plan, Sim(seed)), [4]) == [] for seed in range(25))
    monkeypatch.setattr("pipeflow.lowering.cursors.PlaceCursor", OvertakesForEver)
    found = [broken for seed in range(25) for broken in check(trace_of(plan, Sim(seed)), [4])]
    assert re.search(r"was overtaken by \d+ others; expected at most 2", found[0].message)
