"""What a run trains: the learners of its plan, their weights, and their states as one checkpoint holds them.

Apart from the commands, of which training asks running learners, and evaluation makes learners of what was saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pipeflow.dsl import Actors, Stream, groups_with
from pipeflow.lowering.run import Run
from pipeflow.rl.batches import Report, Weights
from pipeflow.rl.learners.learner import Learner
from pipeflow.rl.saved_state import StateValue

# `Any`: learners of whatever network.
AnyLearner = Learner[Any]


class Learners:
    """The learners of a plan. Where a group has several actors, all hold the same, and the first is asked.

    Raises ValueError for a plan without any.
    """

    def __init__(self, plan: Stream[Report]) -> None:
        self._groups: tuple[Actors[AnyLearner], ...] = groups_with(plan, Learner)
        if not self._groups:
            raise ValueError("the plan has no learner, so there is nothing to save or to evaluate")

    def weights(self, run: Run[Report]) -> list[Weights]:
        """The weights of each, now."""
        return [run.ask(group, Learner.weights)[0] for group in self._groups]

    def state(self, run: Run[Report]) -> dict[str, StateValue]:
        """All that the next updates depend on; under the groups' names where there are several."""
        states = [run.ask(group, Learner.state)[0] for group in self._groups]
        return {
            prefix + name: value
            for prefix, state in zip(self._prefixes, states, strict=True)
            for name, value in state.items()
        }

    def loaded(self, state: Mapping[str, StateValue]) -> list[Weights]:
        """The weights of a saved state.

        Raises ValueError if it is of another plan.
        """
        return [
            _loaded(group, {n.removeprefix(prefix): v for n, v in state.items() if n.startswith(prefix)})
            for prefix, group in zip(self._prefixes, self._groups, strict=True)
        ]

    @property
    def _prefixes(self) -> Sequence[str]:
        return [""] if len(self._groups) == 1 else [f"{group.group.name}/" for group in self._groups]


def _loaded(group: Actors[AnyLearner], state: Mapping[str, StateValue]) -> Weights:
    learner = cast("AnyLearner", group.group.factory(*group.group.args, **group.group.kwargs))
    try:
        learner.load_state(state)
        return learner.weights()
    finally:
        close = getattr(learner, "close", None)
        if callable(close):
            close()
