"""The laws' clauses on single operators: their checkers reject what `operator_mutants` breaks."""

from __future__ import annotations

import re

import pytest

from pipeflow.semantics.laws import check
from tests.semantics.mutants import Mutant, trace_of
from tests.semantics.operator_mutants import OPERATOR_MUTANTS


@pytest.mark.parametrize("mutant", OPERATOR_MUTANTS, ids=lambda mutant: f"law {mutant.law}: {mutant.broken}")
def test_a_law_rejects_an_operator_that_is_broken(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    found = mutant.rejected(monkeypatch)
    assert any(re.match(mutant.says, message) for message in found), found[0]


@pytest.mark.parametrize("mutant", OPERATOR_MUTANTS, ids=lambda mutant: f"law {mutant.law}: {mutant.broken}")
def test_the_operator_as_it_is_keeps_every_law(mutant: Mutant) -> None:
    for seed in range(5):
        assert check(trace_of(mutant.plan(), mutant.engine(seed))) == []
