"""`pipeflow graph`: what a plan looks like. Starts nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeflow.algorithms.catalogue import entry_of
from pipeflow.cli.flags import parse, parse_with_configuration
from pipeflow.cli.plans import build_plan
from pipeflow.cli.targets import plans_of
from pipeflow.dsl import Stream
from pipeflow.dsl.drawing import draw
from pipeflow.dsl.trees import group_names, walk
from pipeflow.lowering.fusion import places_of


@dataclass(frozen=True)
class GraphOptions:
    """How the plan is shown."""

    mermaid: bool = False
    """As a Mermaid flowchart, for instance for a page on GitHub; otherwise drawn as text."""


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
    _show(build_plan(algorithm, config), options)
    return 0


def show_graphs(reference: str, words: Sequence[str]) -> int:
    """Print a plan of the user's, or all plans of a module, each under its name.

    reference: MODULE or MODULE:PLAN, the module by its dotted name or as a file.
    Raises UsageError for what names no plan or cannot be built, and for words that do not fit.
    """
    options = parse(GraphOptions, words, f"pipeflow graph {reference}", "A plan of yours.")
    plans = plans_of(reference)
    for number, (name, plan) in enumerate(plans.items()):
        if len(plans) > 1:
            # A comment in Mermaid.
            print(f"{chr(10) if number else ''}{'%% ' if options.mermaid else ''}{name}")
        _show(plan, options)
    return 0


def _show(plan: Stream[object], options: GraphOptions) -> None:
    print(plan.to_mermaid().rstrip("\n") if options.mermaid else drawing(plan))


def drawing(plan: Stream[object]) -> str:
    """The plan as text: every stage and the actors that it runs in, the items' types on the lines between."""
    names = group_names(plan.node)
    places = {
        id(node): ", ".join(f"{names[id(group)]} × {group.count}" for group in groups) or "driver"
        for node, groups in zip(walk(plan.node), places_of(plan.node), strict=True)
    }
    return draw(plan.node, lambda node: places[id(node)])
