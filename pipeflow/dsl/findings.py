"""What can be said about a plan before it runs: a finding, and the rule that it breaks.

Apart from `lint`, which knows all rules, so that each family of rules stands in a file of its own.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Literal

from pipeflow.dsl.errors import PlanError
from pipeflow.dsl.sites import Site

Severity = Literal["error", "warning", "note"]
"""An error is always a mistake, a warning is one unless it was meant, a note belongs to what stands before it."""


@dataclass(frozen=True)
class Finding:
    """One fault: its code, how bad it is, what is wrong and what to do, and the line of the stage."""

    code: str
    severity: Severity
    message: str
    site: Site


@dataclass(frozen=True)
class Rule:
    """What is looked for: a code that does not change, how bad a breach is, and the fault in a few words."""

    code: str
    severity: Severity
    fault: str

    def broken(self, site: Site, message: str) -> Finding:
        """The finding that the rule is broken at a line."""
        return Finding(self.code, self.severity, message, site)


REFUSED = Rule("PF100", "error", "parts that do not fit, or a plan that a run refuses")

# How `PlanError` names a line: at the start, or in parentheses behind the stage.
_SITE = re.compile(r"(?:^|\()([^():\s][^():]*):(\d+)")


def refused(error: PlanError, otherwise: Site) -> Finding:
    """A plan that was refused, at the line that the message names first, or else at the one that is given."""
    message = str(error)
    found = _SITE.search(message)
    if found is None:
        return REFUSED.broken(otherwise, message)
    site = Site(os.path.abspath(found[1]), int(found[2]))
    return REFUSED.broken(site, message.removeprefix(f"{found[1]}:{found[2]}: "))
