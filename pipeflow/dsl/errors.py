"""Every exception that pipeflow raises on purpose, in one tree, so that a user can catch by cause.

PipeflowError
├── PlanError(TypeError)        the plan does not fit together; raised while it is built
├── CheckpointError(ValueError) no checkpoint, or one that is damaged, or of something else
└── RunError(RuntimeError)      a run could not go on
    ├── StageError              code of the user's raised; says which stage, where, which shard and item
    ├── ActorDiedError          an actor's process is gone
    ├── DeadlockError           no node of the plan can ever go on
    └── EngineError             the engine could not be started or reached
"""

from __future__ import annotations

from typing_extensions import override


class PipeflowError(Exception):
    """The root of pipeflow's own exceptions."""


class PlanError(PipeflowError, TypeError):
    """A plan whose parts do not fit: what mypy refuses before the run, found when the plan is built."""


class CheckpointError(PipeflowError, ValueError):
    """No checkpoint, one that is damaged, of something else or of another pipeflow; or a run that gives none."""


class RunError(PipeflowError, RuntimeError):
    """A run that could not go on."""


class StageError(RunError):
    """An exception in user code ended the run (law 20); the exception itself is the ``__cause__``.

    Attributes:
        stage: the stage's name.
        site: ``file:line`` where the stage was written.
        actor: the actor it ran in, such as ``RolloutWorker[2]``, or ``driver``.
        item: how many items the stage had been given before this one; -1 where it was not about an item.
    """

    def __init__(
        self, stage: str, site: str, actor: str, item: int, cause: BaseException, trace: str
    ) -> None:
        super().__init__(stage, site, actor, item, cause, trace)  # so that it can be pickled
        self.stage, self.site, self.actor, self.item, self.trace = stage, site, actor, item, trace
        self.__cause__ = cause

    @override
    def __str__(self) -> str:
        which = f" on item {self.item}" if self.item >= 0 else ""
        cause = f"{type(self.__cause__).__name__}: {self.__cause__}"
        message = f"{self.site}: stage {self.stage} failed{which} in {self.actor}: {cause}"
        return f"{message}\n\nThe traceback in {self.actor}:\n{self.trace}" if self.trace else message


class ActorDiedError(RunError):
    """The process of an actor ended while the run needed it."""


class DeadlockError(RunError):
    """Nothing is outstanding and no node can go on; the message names the nodes that wait."""


class EngineError(RunError):
    """The engine could not be started or reached."""
