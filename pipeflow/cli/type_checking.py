"""mypy, as `pipeflow check` runs it: with the settings that docs/typing.md asks for, its reports as findings."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeflow.cli.errors import UsageError
from pipeflow.dsl.findings import Finding, Severity
from pipeflow.dsl.sites import Site

# `truthy-bool` finds `left and right` where `left & right` was meant. What a module imports is followed for its
# types, and not reported. Without a summary every line is a report: mypy would end with an empty one.
_SETTINGS = (
    "--strict",
    "--enable-error-code=truthy-bool",
    "--follow-imports=silent",
    "--no-error-summary",
    "--output=json",
    # Of its own: mypy forgets what it knows when it is run with other settings, and a project runs it, too.
    "--cache-dir=.mypy_cache/pipeflow_check",
)
_ANY_RETURNED = "no-any-return"
_SEVERITIES: dict[str, Severity] = {"error": "error", "note": "note"}


def type_findings(files: Sequence[Path]) -> list[Finding]:
    """What mypy reports in the files, under mypy's own codes.

    Raises UsageError if mypy is not installed, or cannot read its configuration or a file.
    """
    if importlib.util.find_spec("mypy") is None:
        raise UsageError(
            "mypy is not installed; pip install 'pipeflow[check]', or pass --no-types to look at the plans alone"
        )
    command = [sys.executable, "-m", "mypy", *_SETTINGS, *map(str, files)]
    # Paths of reports are relative to the working directory.
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        said = [line for line in f"{done.stderr}\n{done.stdout}".splitlines() if line.strip()]
        raise UsageError(f"mypy came to no end: {said[0] if said else f'exit code {done.returncode}'}")
    found: list[Finding] = []
    for line in done.stdout.splitlines():
        report = json.loads(line)
        site = Site(os.path.abspath(report["file"]), report["line"])
        code = report["code"] or "mypy"
        found.append(Finding(code, _SEVERITIES.get(report["severity"], "error"), report["message"], site))
        hints = (report["hint"] or "").splitlines()
        found.extend(Finding(code, "note", hint, site) for hint in hints)
    return _without_consequences(found)


def _without_consequences(found: Sequence[Finding]) -> list[Finding]:
    """The findings but for `no-any-return` in a function in which something else does not fit.

    To mypy the result of a ``|`` that it refuses is `Any`, and to return that a second mistake.
    """
    misfits = {
        finding.site for finding in found if finding.severity == "error" and finding.code != _ANY_RETURNED
    }

    def follows(finding: Finding) -> bool:
        file = finding.site.file
        return any(Site(file, line) in misfits for line in _function_around(finding.site))

    return [finding for finding in found if finding.code != _ANY_RETURNED or not follows(finding)]


def _function_around(site: Site) -> range:
    """The lines of the innermost function that a line is in."""
    functions = [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(ast.parse(Path(site.file).read_bytes()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return min((lines for lines in functions if site.line in lines), key=len, default=range(0))
