"""What is expected of the lines in `reject`, read from the comments at their ends.

    stream | stage  # E: code: part .. part    mypy's error code, and parts of its message in their order;
                                               ``none`` for a mistake that mypy does not see
    # P: rule, rule                            pyright's rules on that line where `RULES` does not give them; or none
    # R: part .. part                          parts of the `PlanError` that building the plan raises, in their order;
                                               or ``none, why``
    # W: why                                   why mypy's message is longer than a line, or has notes

Comments on lines of their own belong to the line of code above. A ``# P:`` alone marks the line on which pyright
reports a mistake of a chain over several lines, since it always takes the first.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Where mypy and pyright name the same mistake differently.
RULES = {
    "arg-type": "reportArgumentType",
    "assignment": "reportAssignmentType",
    "attr-defined": "reportAttributeAccessIssue",
    "call-arg": "reportCallIssue",
    "call-overload": "reportCallIssue",
    "index": "reportIndexIssue",
    "operator": "reportOperatorIssue",
    "return-value": "reportReturnType",
    "type-var": "reportArgumentType",
    "union-attr": "reportAttributeAccessIssue",
}


@dataclass(frozen=True)
class Mistake:
    """A line that must be refused.

    Attributes:
        file: the file that it stands in.
        line: its number, from 1.
        function: the function that it is in.
        errors: mypy's error codes, each with the parts of its message.
        rules: pyright's rules.
        raises: the parts of the message of the `PlanError`, or None if building the plan raises none.
        why: why the message is long.
    """

    file: Path
    line: int
    function: str
    errors: tuple[tuple[str, tuple[str, ...]], ...]
    rules: frozenset[str]
    raises: tuple[str, ...] | None
    why: str

    @property
    def name(self) -> str:
        """As pytest shows it."""
        return f"{self.file.stem}:{self.line}-{self.function}"


def mistakes(file: Path) -> list[Mistake]:
    """The mistakes that a file of rejected lines declares."""
    text = file.read_text(encoding="utf-8")
    functions = {
        line: node.name
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines: list[tuple[int, dict[str, list[str]]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        tags = re.findall(r"# ([EPRW]): (.*?)(?=  # [EPRW]: |$)", line)
        if tags and not line.lstrip().startswith("#"):
            lines.append((number, {}))
        for tag, content in tags:
            lines[-1][1].setdefault(tag, []).append(content.strip())
    return [_mistake(file, number, functions[number], tags) for number, tags in lines]


def _mistake(file: Path, line: int, function: str, tags: dict[str, list[str]]) -> Mistake:
    errors = [_code_and_parts(content) for content in tags.get("E", ()) if content != "none"]
    expected = [RULES[code] for code, _ in errors if code in RULES]
    for content in tags.get("P", ()):
        expected = [] if content == "none" else content.split(", ")
    raised = tags.get("R", ["none, another line of the function says what it raises"])[0]
    raises = None if raised.startswith("none, ") else tuple(raised.split(" .. "))
    why = "; ".join(tags.get("W", ()))
    return Mistake(file, line, function, tuple(errors), frozenset(expected), raises, why)


def _code_and_parts(content: str) -> tuple[str, tuple[str, ...]]:
    code, _, parts = content.partition(": ")
    return code, tuple(parts.split(" .. "))


def in_order(parts: Sequence[str], text: str) -> bool:
    """Whether the text has all parts, one after the other."""
    place = 0
    for part in parts:
        place = text.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return True
