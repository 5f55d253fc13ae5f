"""Checkpoints in memory: the whole state of a run in this process, to go on from as often as one likes (law 22).

Actors, programs, cursors, counters and what is in flight are Python objects here, so the state of a run is a
copy of them. The plan itself is shared: it is immutable.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from pipeflow.dsl.errors import EngineError
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.trees import groups_of
from pipeflow.lowering.engines.inline import InlineEngine
from pipeflow.lowering.recording import Recorder
from pipeflow.semantics.events import Trace

if TYPE_CHECKING:
    from pipeflow.lowering.executor import Executor


class Checkpoint:
    """The state of a run between two of its items. Made by `Run.checkpoint`, used by ``plan.run(resume=...)``."""

    def __init__(self, executor: Executor) -> None:
        self._executor = _copied(executor)

    def executor_of(self, plan: Node, record: bool) -> Executor:
        """A running executor that stands where the checkpoint was taken.

        Args:
            plan: the plan that it is to run.
            record: whether to record a trace; it goes on from the one up to the checkpoint, if there is one.

        Raises:
            EngineError: the checkpoint was taken of another plan.
        """
        if self._executor.nodes[-1] is not plan:
            taken = self._executor.nodes[-1]
            message = f"the checkpoint is of another plan, which ends in {taken.name} ({taken.site})"
            raise EngineError(message)
        executor = _copied(self._executor)
        if not record:
            executor.recorder = None
        elif executor.recorder is None:
            executor.recorder = Recorder(Trace(plan))
        return executor


def _copied(executor: Executor) -> Executor:
    """A copy of a running executor that shares the plan with it.

    Raises:
        EngineError: its state is not in this process, or something of it cannot be copied, such as a generator.
    """
    if not isinstance(executor.engine, InlineEngine):
        message = (
            f"a run on {executor.engine.name} keeps its state in other processes; run it inline or in Sim"
        )
        raise EngineError(message)
    shared = [*executor.nodes, *groups_of(executor.nodes[-1])]
    memo: dict[int, object] = {id(part): part for part in shared}
    try:
        return copy.deepcopy(executor, memo)
    except TypeError as error:
        message = f"the run cannot be checkpointed: {error}; read lists rather than generators"
        raise EngineError(message) from error
