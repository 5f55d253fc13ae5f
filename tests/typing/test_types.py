"""What mypy and pyright accept and refuse, and in which words: the files of `accept` and `reject`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import pipeflow.dsl
from tests.typing import differences
from tests.typing.checkers import ACCEPT, REJECT, ROOT, Diagnostic
from tests.typing.conftest import Reports
from tests.typing.mistakes import Mistake, in_order, mistakes

MISTAKES = [pytest.param(mistake, id=mistake.name) for file in REJECT for mistake in mistakes(file)]
ACCEPTED = [pytest.param(file, id=file.stem) for file in ACCEPT]
REJECTED = [pytest.param(file, id=file.stem) for file in REJECT]

# An error is to be read at a glance: one line, of at most so many characters after the place.
LONGEST = 160


@pytest.mark.parametrize("file", ACCEPTED)
def test_mypy_accepts(file: Path, mypy_reports: Reports) -> None:
    assert [str(report) for report in mypy_reports[file]] == []


@pytest.mark.parametrize("file", ACCEPTED)
def test_pyright_accepts(file: Path, pyright_reports: Reports) -> None:
    assert [str(report) for report in pyright_reports[file]] == []


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mypy_refuses_the_line_in_these_words(mistake: Mistake, mypy_reports: Reports) -> None:
    reports = _on_line(mistake, mypy_reports)
    assert [report.code for report in reports] == [code for code, _ in mistake.errors], _shown(reports)
    for report, (_, parts) in zip(reports, mistake.errors, strict=True):
        assert in_order(parts, report.message), _shown(reports)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mypy_needs_one_line_for_it(mistake: Mistake, mypy_reports: Reports) -> None:
    reports = _on_line(mistake, mypy_reports)
    brief = len(reports) <= 1 and all(len(r.message) <= LONGEST and not r.notes for r in reports)
    # A reason that is no longer needed must go as well.
    assert brief == (mistake.why == ""), _shown(reports)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_pyright_refuses_the_line_by_these_rules(mistake: Mistake, pyright_reports: Reports) -> None:
    reports = _on_line(mistake, pyright_reports)
    assert {report.code for report in reports} == mistake.rules, _shown(reports)


@pytest.mark.parametrize("file", REJECTED)
def test_no_other_line_is_refused(file: Path, mypy_reports: Reports, pyright_reports: Reports) -> None:
    expected = {mistake.line for mistake in mistakes(file)}
    reports = [*mypy_reports[file], *pyright_reports[file]]
    assert [str(report) for report in reports if report.line not in expected] == []


@pytest.mark.parametrize("index", range(len(differences.differences())))
def test_the_checkers_differ_as_the_table_says(
    index: int, generated: Path, mypy_reports: Reports, pyright_reports: Reports
) -> None:
    row = differences.differences()[index]
    file, line = generated / "differences.py", differences.first_line() + index
    assert row.mypy != row.pyright
    mypy = [r for r in mypy_reports[file] if r.line == line and not r.message.startswith("Revealed type")]
    assert mypy == [], "mypy asserts the type that the table gives it"
    revealed = [r.message for r in pyright_reports[file] if r.line == line and not r.code]
    assert len(revealed) == 1
    assert revealed[0].endswith(f' is "{row.pyright}"')


# What needs no example of its own: what a run raises, and protocols for those who write operators.
NOT_OPERATORS = {
    "ActorDiedError",
    "CheckpointError",
    "DeadlockError",
    "Ended",
    "EngineError",
    "NotReady",
    "Operator",
    "PipeflowError",
    "PlanError",
    "RunError",
    "StageError",
}


def test_every_public_name_has_an_accepted_use() -> None:
    used = {
        node.id if isinstance(node, ast.Name) else node.attr
        for file in ACCEPT
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name | ast.Attribute)
    }
    exported = {name for name in vars(pipeflow.dsl) if not name.startswith("_") and name not in _modules()}
    streams = (pipeflow.dsl.Stream, pipeflow.dsl.ParallelStream, pipeflow.dsl.Merged, pipeflow.dsl.Actors)
    methods = {name for kind in streams for name in dir(kind) if not name.startswith("_")}
    assert exported | methods >= NOT_OPERATORS
    assert sorted((exported | methods - {"node", "group"}) - used - NOT_OPERATORS) == []


def test_the_table_of_the_documentation_has_mypys_own_words(mypy_reports: Reports) -> None:
    text = (ROOT / "docs" / "typing.md").read_text(encoding="utf-8")
    quoted = [row.replace("\\|", "|") for row in re.findall(r"^\| [^|]+ \| `(.+?)` \| ", text, re.MULTILINE)]
    said = {f"{r.message}  [{r.code}]" for file in REJECT for r in mypy_reports[file]}
    assert len(quoted) > 10
    assert [message for message in quoted if message not in said] == []


def _modules() -> set[str]:
    return {path.stem for path in (ROOT / "pipeflow" / "dsl").glob("*.py")}


def _on_line(mistake: Mistake, reports: Reports) -> list[Diagnostic]:
    return [report for report in reports[mistake.file] if report.line == mistake.line]


def _shown(reports: list[Diagnostic]) -> str:
    return "\n".join(str(report) for report in reports) or "nothing was reported"
