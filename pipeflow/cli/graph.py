"""`pipeflow graph`: what a plan looks like. Starts nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeflow.algorithms.catalogue import entry_of
from pipeflow.cli.flags import parse_with_configuration
from pipeflow.cli.plans import build_plan


@dataclass(frozen=True)
class GraphOptions:
    """How the plan is shown."""

    mermaid: bool = False
    """As a Mermaid flowchart, for instance for a page on GitHub; otherwise as text."""


def show_graph(name: str, words: Sequence[str]) -> int:
    """Print the plan of an algorithm for the configuration that the flags give.

    Raises UsageError for words that do not fit, UnknownAlgorithm for a name that is not in the catalogue.
    """
    entry = entry_of(name)
    algorithm = entry.load()
    options, config = parse_with_configuration(
        GraphOptions,
        algorithm.configuration,
        words,
        f"pipeflow graph {name}",
        f"The plan of {entry.summary}.",
    )
    plan = build_plan(algorithm, config)
    print(plan.to_mermaid().rstrip("\n") if options.mermaid else plan.explain())
    return 0
