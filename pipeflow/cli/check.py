"""`pipeflow check`: what is wrong with plans of the user's, types and structure, in a form for machines.

Starts nothing. Where plans come from is said in `targets`, what is looked for in `pipeflow.dsl.lint`.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from pipeflow.cli.errors import UsageError
from pipeflow.cli.flags import parse
from pipeflow.cli.targets import Target, target_of
from pipeflow.cli.type_checking import type_findings
from pipeflow.dsl.findings import REFUSED, Finding
from pipeflow.dsl.lint import RULES, lint
from pipeflow.dsl.structure_rules import left_out

Format = Literal["text", "github", "json"]


@dataclass(frozen=True)
class CheckOptions:
    """What is checked, and how it is told."""

    plans: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="PLAN ...")]
    """MODULE or MODULE:PLAN, the module by its dotted name or as a file; without PLAN, all plans of the module."""

    on_policy: bool = False
    """The plans claim to be on-policy: learners train only on what was made with their latest weights."""

    types: bool = True
    """Run mypy --strict on the modules."""

    ignore: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A code that is not reported, such as PF204; may be given again."""

    format: Format = "text"
    """One line a finding, annotations of a GitHub workflow, or JSON."""


def check_plans(words: Sequence[str]) -> int:
    """Check plans and print what is wrong with them.

    Returns 0 if nothing is, else 1. Raises UsageError for what names no plan or cannot be built, and for words
    that do not fit.
    """
    options = parse(
        CheckOptions,
        words,
        "pipeflow check",
        "Find mistakes in plans and their types, without starting anything.",
    )
    if not options.plans:
        raise UsageError("check needs a plan, as in pipeflow check my_module:my_plan, or a module with plans")
    codes = [rule.code for rule in RULES]
    unknown = [code for code in options.ignore if code.startswith("PF") and code not in codes]
    if unknown:
        raise UsageError(
            f"there is no finding {unknown[0]}; docs/check.md lists them, {codes[0]} to {codes[-1]}"
        )
    targets = [target_of(reference) for reference in options.plans]
    found = [finding for target in targets for finding in _findings(target, options.on_policy)]
    if options.types:
        found += type_findings(list(dict.fromkeys(target.file for target in targets)))
    found = _told_once([finding for finding in dict.fromkeys(found) if finding.code not in options.ignore])
    found.sort(key=lambda finding: (finding.site.file, finding.site.line))
    faults = [finding for finding in found if finding.severity != "note"]
    plans = sum(len(target.plans) for target in targets)
    _FORMATS[options.format](
        found, f"checked {_counted(plans, 'plan')}, found {_counted(len(faults), 'fault')}"
    )
    return 1 if faults else 0


def _findings(target: Target, on_policy: bool) -> Iterable[Finding]:
    yield from target.findings
    for plan in target.plans.values():
        yield from lint(plan, on_policy=on_policy)
    if not target.findings:  # else what is left out may be part of the plan that could not be built
        yield from left_out(target.parts, [plan.node for plan in target.plans.values()])


def _told_once(found: Sequence[Finding]) -> list[Finding]:
    """The findings, where mypy and the plan refuse the same line with the plan's words as a note to mypy's."""
    refused = {
        finding.site for finding in found if finding.severity == "error" and not finding.code.startswith("PF")
    }
    also = {finding for finding in found if finding.code == REFUSED.code and finding.site in refused}
    notes = [dataclasses.replace(finding, severity="note") for finding in found if finding in also]
    return [finding for finding in found if finding not in also] + notes


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number or 'no'} {noun}s"


# The formats


def _as_text(found: Sequence[Finding], summary: str) -> None:
    for finding in found:
        print(f"{finding.site}: {finding.severity}: {finding.message}  [{finding.code}]")
    print(summary)


def _as_annotations(found: Sequence[Finding], summary: str) -> None:
    for finding in found:
        kind = "notice" if finding.severity == "note" else finding.severity
        place = f"file={_property(_path(finding))},line={finding.site.line},title={_property(finding.code)}"
        print(f"::{kind} {place}::{_data(finding.message)}")
    print(summary)


def _as_json(found: Sequence[Finding], summary: str) -> None:
    rows = [
        {
            "path": _path(finding),
            "line": finding.site.line,
            "severity": finding.severity,
            "code": finding.code,
            "message": finding.message,
        }
        for finding in found
    ]
    print(json.dumps(rows, indent=2))


_FORMATS: dict[Format, Callable[[Sequence[Finding], str], None]] = {
    "text": _as_text,
    "github": _as_annotations,
    "json": _as_json,
}


def _path(finding: Finding) -> str:
    """Relative to the working directory where it lies below, as in a `Site`'s text."""
    return str(finding.site).rpartition(":")[0].replace(os.sep, "/")


def _data(text: str) -> str:
    """As a workflow command takes it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
