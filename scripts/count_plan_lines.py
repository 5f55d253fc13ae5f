"""Count the lines of the functions that build plans, and set them beside RLlib Flow's.

The rule: the lines of the function that builds the plan, from its `def` line to its end, that are neither
blank nor comment nor docstring. The signature counts; decorators and helpers defined elsewhere do not. RLlib
Flow's figures were counted by the same rule in RLlib as of May 2021; the operators and threads that its plans
are made of are not in them.

    python scripts/count_plan_lines.py                    print the table
    python scripts/count_plan_lines.py --check README.md  fail when the table in the file is not this one
    python scripts/count_plan_lines.py --write README.md  put this table into the file

In a file the table stands between the lines `<!-- plan-lines -->` and `<!-- /plan-lines -->`.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# algorithm: (module below the root, function that builds the plan)
PLANS: Mapping[str, tuple[str, str]] = {
    "A3C": ("pipeflow/algorithms/a3c.py", "a3c"),
    "A2C": ("pipeflow/algorithms/a2c.py", "a2c"),
    "PPO": ("pipeflow/algorithms/ppo.py", "ppo"),
    "DD-PPO": ("pipeflow/algorithms/ddppo.py", "ddppo"),
    "IMPALA": ("pipeflow/algorithms/impala.py", "impala"),
    "APPO": ("pipeflow/algorithms/appo.py", "appo"),
    "DQN": ("pipeflow/algorithms/dqn.py", "dqn"),
    "Ape-X": ("pipeflow/algorithms/apex.py", "apex"),
    "MAML": ("pipeflow/algorithms/maml.py", "maml"),
    "two trainers": ("pipeflow/algorithms/two_trainers.py", "two_trainers"),
}

RLLIB_FLOW: Mapping[str, int] = {
    "A3C": 5,
    "A2C": 33,
    "PPO": 30,
    "DD-PPO": 75,
    "IMPALA": 24,
    "DQN": 59,
    "Ape-X": 72,
    "MAML": 42,
}

BEGIN = "<!-- plan-lines -->"
END = "<!-- /plan-lines -->"

RULE = (
    "Lines of the function that builds the plan, from `def` to its end, that are neither blank nor comment"
    " nor docstring; helpers are not counted. RLlib Flow: the same rule, RLlib as of May 2021."
    " Counted by `python scripts/count_plan_lines.py`."
)

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


class CountError(Exception):
    """The count or its table cannot be made, or the table in a file is not the one counted."""


@dataclass(frozen=True)
class _Span:
    """Part of a source text, from one position to another, each (line from 1, column from 0)."""

    begin: tuple[int, int]
    end: tuple[int, int]

    def holds(self, token: tokenize.TokenInfo) -> bool:
        return self.begin <= token.start and token.end <= self.end


def count_lines(source: str, function: str) -> int:
    """Count the lines of the function of this name at the top level of a module's text.

    Raises:
        CountError: if the module has no such function.
    """
    node = _function(source, function)
    body = _span(node)
    docstrings = [_span(found) for found in _docstrings(node)]
    counted: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in _NO_CODE or not body.holds(token) or any(doc.holds(token) for doc in docstrings):
            continue
        counted.update(range(token.start[0], token.end[0] + 1))
    lines = source.splitlines()
    return sum(1 for number in counted if lines[number - 1].strip())  # a string may hold blank lines


def table(counts: Mapping[str, int]) -> str:
    """The Markdown table of these counts beside RLlib Flow's, and the rule below it."""
    names = [*RLLIB_FLOW, *(name for name in counts if name not in RLLIB_FLOW)]
    rows = [f"| {name} | {counts.get(name, '–')} | {RLLIB_FLOW.get(name, '–')} |" for name in names]
    both = [name for name in RLLIB_FLOW if name in counts]
    if len(both) > 1:
        ours, theirs = sum(counts[name] for name in both), sum(RLLIB_FLOW[name] for name in both)
        rows.append(f"| the {len(both)} that both have | {ours} | {theirs} |")
    return "\n".join(["| plan | pipeflow | RLlib Flow |", "|---|---:|---:|", *rows, "", RULE])


def check(document: str, wanted: str) -> None:
    """Refuse a document whose table is not the wanted one.

    Raises:
        CountError: if the markers are missing or another text stands between them.
    """
    begin, end = _between_markers(document)
    if document[begin:end].strip() != wanted.strip():
        msg = f"the table between {BEGIN} and {END} is not what the sources count; renew it with --write"
        raise CountError(msg)


def replaced(document: str, wanted: str) -> str:
    """The document with the wanted table between its markers.

    Raises:
        CountError: if the markers are missing.
    """
    begin, end = _between_markers(document)
    return f"{document[:begin]}\n{wanted}\n{document[end:]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit status."""
    parser = argparse.ArgumentParser(description="Count the lines of the functions that build plans.")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", type=Path, metavar="FILE", help="fail when the table in FILE is another")
    mode.add_argument("--write", type=Path, metavar="FILE", help="put the table into FILE")
    options = parser.parse_args(arguments)
    path: Path | None = options.check or options.write
    try:
        wanted = table(_counts())
        if path is None:
            print(wanted)
        elif options.check:
            check(path.read_text(encoding="utf-8"), wanted)
        else:
            path.write_text(replaced(path.read_text(encoding="utf-8"), wanted), encoding="utf-8")
    except (CountError, OSError) as error:
        print(f"{path}: {error}" if path else error, file=sys.stderr)
        return 1
    return 0


def _counts() -> dict[str, int]:
    counts: dict[str, int] = {}
    for name, (module, function) in PLANS.items():
        try:
            counts[name] = count_lines((ROOT / module).read_text(encoding="utf-8"), function)
        except CountError as error:
            msg = f"{module}: {error}"
            raise CountError(msg) from error
    return counts


def _function(source: str, name: str) -> ast.FunctionDef:
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    msg = f"no function {name!r} at the top level; correct PLANS in {Path(__file__).name}"
    raise CountError(msg)


def _docstrings(function: ast.FunctionDef) -> list[ast.expr]:
    """The docstrings of the function and of whatever is defined inside it."""
    scopes = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    return [
        scope.body[0].value
        for scope in scopes
        if ast.get_docstring(scope, clean=False) is not None and isinstance(scope.body[0], ast.Expr)
    ]


def _span(node: ast.expr | ast.stmt) -> _Span:
    # A node's column counts bytes and a token's counts characters. That makes no difference here: a function
    # begins at its line's first column, a docstring after spaces, and an end too far right meets no token.
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return _Span((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))


def _between_markers(document: str) -> tuple[int, int]:
    begin, end = document.find(BEGIN), document.find(END)
    if begin < 0 or end < begin:
        msg = f"needs a line {BEGIN} and, below it, a line {END}"
        raise CountError(msg)
    return begin + len(BEGIN), end


if __name__ == "__main__":
    sys.exit(main())
