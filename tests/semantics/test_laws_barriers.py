"""Laws 5 to 9: their checkers reject broken rounds, barriers, run-ahead, progress and message order."""

from __future__ import annotations

import re

import pytest

from tests.semantics.mutants import MUTANTS


def test_law_5_rejects_rounds_in_the_order_in_which_shards_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[5].rejected(monkeypatch)
    assert re.match(r"gather_sync\(\) \(.*\) leaves shard 0 out of a round", found[0])


def test_law_6_rejects_a_gather_without_a_barrier(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[6].rejected(monkeypatch)
    assert re.match(
        r"gather_sync\(\) \(.*\) starts another item of shard 1 before item 1 of shard 0 was delivered",
        found[0],
    )


def test_law_7_rejects_a_gather_that_starts_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[7].rejected(monkeypatch)
    assert re.match(r"gather_async\(2\) \(.*\) starts item 3 of shard 0 ahead; expected at most 2", found[0])


def test_law_8_rejects_a_gather_in_which_all_wait_for_the_slowest(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[8].rejected(monkeypatch)
    assert re.match(r"gather_async\(1\) \(.*\) delivers nothing, though shard \d has an item ready", found[0])


def test_law_9_rejects_an_engine_in_which_calls_overtake_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[9].rejected(monkeypatch)
    assert re.match(r"Worker\[\d\] ran call \d+ before call \d+; expected the order", found[0])
