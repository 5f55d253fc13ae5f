"""Laws 10 to 16: their checkers reject broken unions, drains, forks, partitions and buffers."""

from __future__ import annotations

import re

import pytest

from tests.semantics.mutants import MUTANTS


def test_law_10_rejects_a_union_that_loses_items(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[10].rejected(monkeypatch)
    assert re.match(r"& \(.*\) delivers item \d+ of from_items \(.*\) before an earlier one", found[0])


def test_law_11_rejects_a_round_robin_that_ignores_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[11].rejected(monkeypatch)
    assert re.match(r"round_robin \(.*\) takes from from_items \(.*\); expected item 2 of 2 of", found[0])


def test_law_12_rejects_a_union_that_prefers_its_first_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[12].rejected(monkeypatch)
    assert re.match(r"& \(.*\) has served others 2 times without asking from_items", found[0])


def test_law_13_rejects_a_union_that_ends_without_its_drained_branches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = MUTANTS[13].rejected(monkeypatch)
    assert re.match(r"& \(.*\) has ended before its branch drain", found[0])


def test_law_14_rejects_a_fork_whose_buffers_never_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[14].rejected(monkeypatch)
    assert re.match(r"fork\(2\)\[1\] \(.*\) holds 2 items; expected at most 1", found[0])


def test_law_15_rejects_a_partition_that_hands_items_to_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[15].rejected(monkeypatch)
    assert re.match(r"partition\(is_low\) \(.*\) hands item 1 to sides \[0, 1\]", found[0])


def test_law_16_rejects_a_buffer_that_takes_one_item_more(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[16].rejected(monkeypatch)
    assert re.match(r"partition\(is_low\)\[0\] \(.*\) holds 3 items; expected at most 2", found[0])
