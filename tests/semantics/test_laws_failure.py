"""Laws 19 to 22: their checkers reject broken restarts, swallowed errors, leaks and false checkpoints."""

from __future__ import annotations

import re

import pytest

from tests.semantics.mutants import MUTANTS


def test_law_19_rejects_a_restart_without_the_latest_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[19].rejected(monkeypatch)
    assert re.match(r"Worker\[\d\] was started again .* without the latest weights of sync_weights", found[0])


def test_law_20_rejects_an_executor_that_goes_on_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[20].rejected(monkeypatch)
    assert re.match(r"call \d+ failed in Failing\[0\]; expected the run to end with a StageError", found[0])


def test_law_21_rejects_an_executor_that_leaves_actors_running(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[21].rejected(monkeypatch)
    assert re.match(r"the run is closed and has not stopped Learner\[0\]", found[0])


def test_law_22_rejects_a_checkpoint_without_what_is_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    found = MUTANTS[22].rejected(monkeypatch)
    assert re.match(r"across the checkpoint, law 1: gather_async\(2\)", found[0])
