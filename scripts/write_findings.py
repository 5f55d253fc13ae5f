"""Write the table of docs/check.md: every fault that `pipeflow check` finds, and what it prints about it.

The command is run on the plans of tests/cli/planted.py, each of which has one fault, so what stands in the table
has been printed. The table stands between the lines `<!-- findings -->` and `<!-- /findings -->`.

    python scripts/write_findings.py          put the table into docs/check.md
    python scripts/write_findings.py --check  fail when the table there is not this one
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeflow.cli import main as pipeflow
from pipeflow.dsl.lint import RULES

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "check.md"
PLANTED = "tests/cli/planted.py"

BEGIN = "<!-- findings -->"
END = "<!-- /findings -->"


class DocumentError(Exception):
    """The table cannot be made, or the document has none or another."""


def planted() -> Iterator[tuple[str, str]]:
    """The plans with a fault: the code of each, and its name."""
    for node in ast.parse((ROOT / PLANTED).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            yield ast.get_docstring(node) or "", node.name


def printed(code: str, name: str) -> str:
    """What the command says of a plan, from the severity on.

    Raises:
        DocumentError: it finds another fault, or several.
    """
    words = ["check", f"{PLANTED}:{name}", "--no-types", "--format=json"]
    claim = ["--on-policy"] if code >= "PF300" else []
    output = io.StringIO()
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(output):
        pipeflow([*words, *claim])
    found = json.loads(output.getvalue() or "[]")
    if [finding["code"] for finding in found] != [code]:
        message = f"{PLANTED}:{name} is to have the fault {code}, but this is found: {found}"
        raise DocumentError(message)
    return f"{found[0]['severity']}: {found[0]['message']}"


def table() -> str:
    """The Markdown table.

    Raises:
        DocumentError: a fault has no plan, or a plan another fault than it says.
    """
    plans = list(planted())
    missing = [rule.code for rule in RULES if rule.code not in {code for code, _ in plans}]
    if missing:
        message = f"{PLANTED} has no plan with the fault {', '.join(missing)}"
        raise DocumentError(message)
    rows = [
        f"| {rule.code} | {rule.fault} | `{name}` | {_cell(printed(code, name))} |"
        for rule in RULES
        for code, name in plans
        if code == rule.code
    ]
    return "\n".join(
        ["| code | fault | planted as | printed behind `path:line: ` |", "|---|---|---|---|", *rows]
    )


def replaced(document: str, wanted: str) -> str:
    """The document with the wanted table between its markers.

    Raises:
        DocumentError: the markers are missing.
    """
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        message = f"needs a line {BEGIN} and, below it, a line {END}"
        raise DocumentError(message)
    return f"{before}{BEGIN}\n{wanted}\n{END}{after}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit status."""
    parser = argparse.ArgumentParser(description="Write the table of findings into docs/check.md.")
    parser.add_argument("--check", action="store_true", help="fail when the table there is another")
    options = parser.parse_args(arguments)
    try:
        document = DOCUMENT.read_text(encoding="utf-8")
        renewed = replaced(document, table())
        if not options.check:
            DOCUMENT.write_text(renewed, encoding="utf-8")
        elif renewed != document:
            message = "the table is not what is printed; renew it with python scripts/write_findings.py"
            raise DocumentError(message)
    except (DocumentError, OSError) as error:
        print(f"{DOCUMENT}: {error}", file=sys.stderr)
        return 1
    return 0


def _cell(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
