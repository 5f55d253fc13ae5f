"""What mypy refuses, refused again when the plan is built: for those who run no checker, and for its holes."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from pipeflow import PlanError
from tests.typing.checkers import REJECT, ROOT
from tests.typing.mistakes import Mistake, in_order, mistakes

REFUSED = [
    pytest.param(mistake, id=mistake.name)
    for file in REJECT
    for mistake in mistakes(file)
    if mistake.raises is not None
]


@pytest.mark.parametrize("file", [pytest.param(file, id=file.stem) for file in REJECT])
def test_every_mistake_says_what_building_its_plan_raises_or_why_nothing(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    counts = {node.name: "\n".join(_lines(text, node)).count("# R: ") for node in functions}
    silent = {name for name, count in counts.items() if count != 1} - {"sampled", "sharded"}
    assert silent == set()


@pytest.mark.parametrize("mistake", REFUSED)
def test_building_the_plan_names_both_sides_and_the_line(
    mistake: Mistake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)  # sites are shown relative to it
    module = importlib.import_module(f"tests.typing.reject.{mistake.file.stem}")
    with pytest.raises(PlanError) as raised:
        getattr(module, mistake.function)()
    message = str(raised.value)
    assert mistake.raises is not None
    assert in_order(mistake.raises, message), message
    assert f"{mistake.file.relative_to(ROOT)}:{mistake.line}" in message, message
    assert "\n" not in message


def _lines(text: str, node: ast.FunctionDef) -> list[str]:
    # A comment below the last statement belongs to it, but not to its node.
    lines = text.splitlines()
    end = node.end_lineno or node.lineno
    while end < len(lines) and lines[end].lstrip().startswith("#"):
        end += 1
    return lines[node.lineno - 1 : end]
