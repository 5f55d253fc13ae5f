"""A hundred random chains: mypy computes the types that they have by construction, and finds the one bad stage."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from pipeflow import PlanError
from tests.typing.chains import pairs
from tests.typing.conftest import Reports

PAIRS = pairs()
NUMBERS = range(len(PAIRS))


def _line_of_swap(file: Path, number: int) -> int:
    lines = file.read_text(encoding="utf-8").splitlines()
    # After the line with `def` and the one with the parenthesis.
    return lines.index(f"def chain_{number}() -> None:") + 3 + PAIRS[number].swap


def test_the_chains_are_not_trivial() -> None:
    assert len({pair.chain.type for pair in PAIRS}) > 25
    assert sum(len(pair.chain.lines) for pair in PAIRS) > 5 * len(PAIRS)


def test_every_operator_is_drawn() -> None:
    text = "\n".join(line for pair in PAIRS for line in pair.accepted)
    operators = (
        "map stage flat_map expand batch flatten concat take every filter tap until gather_sync gather_async"
    )
    more = "gather_rounds with_source reply round_robin by_steps prioritised async_ fork drain zip scatter broadcast"
    pace = "once_per_steps every_seconds throttle buffer shuffle select_shards"
    assert [name for name in f"{operators} {more} {pace}".split() if name not in text] == []


def test_mypy_computes_their_types(generated: Path, mypy_reports: Reports) -> None:
    assert [str(report) for report in mypy_reports[generated / "accepted_chains.py"]] == []


def test_pyright_computes_their_types(generated: Path, pyright_reports: Reports) -> None:
    assert [str(report) for report in pyright_reports[generated / "accepted_chains.py"]] == []


def test_mypy_reports_one_error_a_swapped_stage_and_on_its_line(
    generated: Path, mypy_reports: Reports
) -> None:
    file = generated / "rejected_chains.py"
    expected = sorted(_line_of_swap(file, number) for number in NUMBERS)
    assert sorted(report.line for report in mypy_reports[file]) == expected
    assert [str(report) for report in mypy_reports[file] if report.notes] == []


def test_building_accepts_what_mypy_accepts(generated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(generated)
    module = importlib.import_module("accepted_chains")
    for number in NUMBERS:
        getattr(module, f"chain_{number}")()


def test_building_refuses_on_the_same_line_as_mypy(generated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = generated / "rejected_chains.py"
    monkeypatch.syspath_prepend(generated)
    module = importlib.import_module("rejected_chains")
    messages = {number: _refusal(module, number) for number in NUMBERS}
    refused = {number: message for number, message in messages.items() if message}
    for number, message in refused.items():
        assert message.startswith(f"{file}:{_line_of_swap(file, number)}: ")
        assert "takes Stranger" in message
    # Not all, for what an annotation does not say plainly is not known when a plan is built.
    assert len(refused) > 0.8 * len(PAIRS)


def _refusal(module: ModuleType, number: int) -> str:
    try:
        getattr(module, f"chain_{number}")()
    except PlanError as error:
        return str(error)
    return ""
