"""Laws 24 to 26: their checkers reject items that are too old, of a wrong type, or shared."""

from __future__ import annotations

import re

import pytest

from tests.semantics.mutants import MUTANTS


def test_law_24_rejects_a_lag_limit_that_admits_one_version_more(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[24].rejected(monkeypatch)
    assert re.match(
        r"max_lag\(1\) \(.*\) delivers item \d+, which is 2 weights behind; the limit is 1", found[0]
    )


def test_law_25_rejects_a_stage_that_passes_its_input_on(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[25].rejected(monkeypatch)
    assert re.match(r"str \(.*\) delivers int, item \d+; expected str", found[0])


def test_law_26_rejects_a_fork_that_hands_one_object_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[26].rejected(monkeypatch)
    assert re.match(r"fork\(2\) \(.*\) gives outlet 1 item 1 itself; expected a copy", found[0])
