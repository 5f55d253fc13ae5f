"""docs/semantics.md says of the laws what their checkers say: statements, examples, and what tests them.

Run as a program it writes that part of the document anew.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from pathlib import Path

from pipeflow.semantics.laws import LAWS
from pipeflow.semantics.laws.law import Law
from tests.semantics.mutants import MUTANTS
from tests.semantics.operator_mutants import OPERATOR_MUTANTS

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "semantics.md"
_MARK = "<!-- from here on written by: python -m tests.semantics.test_laws_document -->\n"

# The property tests, by law; on every trace all laws are checked.
_ALL_LAWS = "tests/semantics/test_properties.py::test_every_trace_keeps_every_law"
_PROPERTY_TESTS = {
    3: "tests/lowering/test_laws.py::test_grouping_and_place_of_stages_change_nothing",
    19: "tests/semantics/test_properties.py::test_every_trace_keeps_every_law_though_actors_die",
    22: "tests/semantics/test_properties.py::test_a_resumed_run_delivers_what_the_uninterrupted_one_does",
    23: "tests/semantics/test_properties.py::test_a_synchronous_plan_delivers_the_same_on_every_engine",
}


def written() -> str:
    """The part of the document that follows from the laws and the mutants."""
    return "\n".join([*(_section(law) for law in LAWS), "## How they are tested\n", *_table()]) + "\n"


def _section(law: Law) -> str:
    statement, _, rest = (inspect.getdoc(law.check) or "").partition(">>>")
    example = f"{_imports(law, rest)}\n>>>{rest.rstrip()}"
    return f"### {law.number}. {law.title}\n\n{statement.strip()}\n\n```python\n{example}\n\n```\n"


def _imports(law: Law, example: str) -> str:
    """What an example needs of its module, which a doctest has anyway."""
    module = inspect.getmodule(law.check)
    assert module is not None
    used = sorted({word for word in re.findall(r"\w+", example) if word in vars(module)})
    return f">>> from {module.__name__} import {', '.join(used)}"


def _table() -> list[str]:
    rows = [
        f"| {law.number}. {law.title} | `{_file(law.check)}` | {_named(_property_test(law))} | {_mutant(law)} |"
        for law in LAWS
    ]
    return [
        "| law | checker | property test | mutants, and the tests that reject them |",
        "|---|---|---|---|",
        *rows,
    ]


def _file(function: object) -> str:
    assert inspect.isfunction(function)
    return f"{function.__module__.removeprefix('pipeflow.semantics.')}.{function.__name__}"


def _property_test(law: Law) -> str:
    return _PROPERTY_TESTS.get(law.number, _ALL_LAWS)


def _named(test: str) -> str:
    path, _, name = test.partition("::")
    return f"[{name}](../{path})"


def _mutant(law: Law) -> str:
    file, name = _rejecting_test(law)
    first = f'[{MUTANTS[law.number].broken}](../tests/semantics/{file.name} "{name}")'
    others = [mutant.broken for mutant in OPERATOR_MUTANTS if mutant.law == law.number]
    return "; ".join(
        [first, *(f"[{broken}](../tests/semantics/test_laws_operators.py)" for broken in others)]
    )


def _rejecting_test(law: Law) -> tuple[Path, str]:
    """The test that rejects a law's mutant, by its name."""
    for file in sorted(Path(__file__).parent.glob("test_laws_*.py")):
        for name in _functions(file):
            if name.startswith(f"test_law_{law.number}_rejects_"):
                return file, name
    message = f"no test rejects the mutant of law {law.number}"
    raise AssertionError(message)


def _functions(file: Path) -> list[str]:
    return [
        node.name for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)
    ]


def test_every_law_has_a_mutant_and_a_property_test_that_exists() -> None:
    assert sorted(MUTANTS) == [law.number for law in LAWS]
    for law in LAWS:
        path, _, name = _property_test(law).partition("::")
        assert name in _functions(ROOT / path)


def test_the_document_says_what_the_checkers_say() -> None:
    before, mark, after = DOCUMENT.read_text("utf-8").partition(_MARK)
    assert before
    assert mark
    assert after.strip() == written().strip(), "write it anew: python -m tests.semantics.test_laws_document"


def test_the_examples_of_the_document_come_out_as_they_stand_there() -> None:
    failed, tried = doctest.testfile(str(DOCUMENT), module_relative=False)
    assert failed == 0
    assert tried > 26


if __name__ == "__main__":
    kept = DOCUMENT.read_text("utf-8").partition(_MARK)[0]
    DOCUMENT.write_text(f"{kept}{_MARK}\n{written()}", "utf-8")
