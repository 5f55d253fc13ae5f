"""Static findings about a plan: what is wrong with it beyond its types, found without starting anything.

The rules stand in families: `structure_rules`, `turn_rules`, `message_rules`, and `on_policy_rules` for plans
that claim to be that. What depends on the items, on timing or on what actors do is no rule:
`pipeflow.testing.check_laws` runs a plan under simulated schedules for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeflow.dsl import message_rules, on_policy_rules, structure_rules, turn_rules
from pipeflow.dsl.checks import check_linear, check_policies
from pipeflow.dsl.errors import PlanError
from pipeflow.dsl.findings import REFUSED, Finding, Rule, refused
from pipeflow.dsl.message_rules import message_findings
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.on_policy_rules import on_policy_findings
from pipeflow.dsl.streams import Stream
from pipeflow.dsl.structure_rules import structure_findings
from pipeflow.dsl.turn_rules import turn_findings

RULES = (
    REFUSED,
    *(
        rule
        for family in (structure_rules, turn_rules, message_rules, on_policy_rules)
        for rule in vars(family).values()
        if isinstance(rule, Rule)
    ),
)
"""Every rule, in the order of the codes."""


# `Any`: a plan of items of any type.
def lint(plan: Stream[Any], *, on_policy: bool = False) -> list[Finding]:
    """What is wrong with a plan, in the order of its stages; starts nothing.

    Args:
        plan: the whole plan, as it would be run.
        on_policy: whether the plan claims that its learners train only on what was made with their latest weights.
    """
    root = plan.node
    refusals = list(_refusals(root))
    if refusals:
        return refusals  # the rules rely on a tree in which every stream feeds one place
    found = [*structure_findings(root), *turn_findings(root), *message_findings(root)]
    if on_policy:
        found.extend(on_policy_findings(root))
    # A stage may break a rule for several reasons with one message, such as one gather of two senders.
    return list(dict.fromkeys(found))


def _refusals(root: Node) -> Iterator[Finding]:
    for check in (check_linear, check_policies):
        try:
            check(root)
        except PlanError as error:
            yield refused(error, root.site)
