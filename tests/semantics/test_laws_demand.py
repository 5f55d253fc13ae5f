"""Laws 17 and 18: their checkers reject executors that start too much or end too early."""

from __future__ import annotations

import re

import pytest

from tests.semantics.mutants import MUTANTS


def test_law_17_rejects_a_placed_stage_that_starts_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[17].rejected(monkeypatch)
    assert re.match(r"Arithmetic.stage\(.*\) has 2 items in flight; expected at most 1", found[0])


def test_law_18_rejects_a_batch_that_drops_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[18].rejected(monkeypatch)
    assert re.match(r"batch\(2\) \(.*\) has ended without items \[\d+\]", found[0])
