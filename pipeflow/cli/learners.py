"""What a run trains: the learners of its plan, and their weights, of a run or of a checkpoint.

Apart from the commands, of which training asks running learners, and evaluation makes learners of what was saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pipeflow.dsl import Actors, Stream, groups_with
from pipeflow.dsl.trees import group_names, groups_of
from pipeflow.lowering.checkpoint import Checkpoint
from pipeflow.lowering.run import Run
from pipeflow.rl.batches import Report, Weights
from pipeflow.rl.learners.learner import Learner
from pipeflow.state.values import StateValue

# `Any`: learners of whatever network.
AnyLearner = Learner[Any]


class Learners:
    """The learners of a plan. Where a group has several actors, all hold the same, and the first is asked.

    Raises ValueError for a plan without any.
    """

    def __init__(self, plan: Stream[Report]) -> None:
        self._groups: tuple[Actors[AnyLearner], ...] = groups_with(plan, Learner)
        names = group_names(plan.node)
        self._names = {group: names[id(group)] for group in groups_of(plan.node)}
        if not self._groups:
            raise ValueError("the plan has no learner, so there is nothing to save or to evaluate")

    def weights(self, run: Run[Report]) -> list[Weights]:
        """The weights of each, now."""
        return [run.ask(group, Learner.weights)[0] for group in self._groups]

    def loaded(self, checkpoint: Checkpoint) -> list[Weights]:
        """The weights in a checkpoint.

        Raises ValueError if it is of another plan.
        """
        return [
            _loaded(group, _state_of(f"{self._names[group.group]}[0]", checkpoint)) for group in self._groups
        ]


def _state_of(actor: str, checkpoint: Checkpoint) -> Mapping[str, StateValue]:
    try:
        return checkpoint.actor_state(actor)
    except KeyError:
        raise ValueError(
            f"it has no state of {actor}, only of {', '.join(checkpoint.actors) or 'none'}"
        ) from None


def _loaded(group: Actors[AnyLearner], state: Mapping[str, StateValue]) -> Weights:
    learner = cast("AnyLearner", group.group.factory(*group.group.args, **group.group.kwargs))
    try:
        learner.load_state(state)
        return learner.weights()
    # What torch and numpy say of other shapes and dtypes.
    except (LookupError, RuntimeError, TypeError) as error:
        raise ValueError(f"its state of {group.group.name} cannot be loaded: {error}") from error
    finally:
        close = getattr(learner, "close", None)
        if callable(close):
            close()
