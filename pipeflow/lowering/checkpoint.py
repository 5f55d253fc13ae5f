"""Checkpoints: the whole state of a run, in memory or in a folder, to go on from as often as one likes (law 22).

Apart from `saving` and `resuming`, which know what a run consists of: here is what people hold in their hands.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pipeflow.dsl.errors import CheckpointError
from pipeflow.state.folders import load_checkpoint, save_checkpoint
from pipeflow.state.values import Json, StateValue, under

if TYPE_CHECKING:
    from pipeflow.lowering.recording import Recorder

Place: TypeAlias = str | os.PathLike[str]

ACTORS = "actors/"
DRIVER = "driver/"
ENGINE = "engine/"
UNSTARTED = "unstarted/"
OUTLINE = "outline"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a run between two of its items. Made by `Run.checkpoint`, used by ``plan.run(resume=...)``.

    Attributes:
        about: what is to be known about it: the plan's stages under "outline", and whatever was told to
            `Run.checkpoint`; JSON.
        state: arrays and numbers under flat names: of every actor, and of what runs on the driver.
        recorder: of a run that records its trace, for the trace to go on; not written to the folder.
    """

    about: Mapping[str, Json]
    state: Mapping[str, StateValue]
    recorder: Recorder | None = field(default=None, repr=False)

    @classmethod
    def load(cls, path: Place) -> Checkpoint:
        """Read a checkpoint's folder. No code runs that it names, whoever it comes from.

        Raises:
            CheckpointError: there is none, or it is damaged, foreign, or of another format.
        """
        about, state = load_checkpoint(Path(path))
        outline = about.get(OUTLINE)
        if not isinstance(outline, list) or not all(isinstance(line, str) for line in outline):
            message = f"{path} says of no plan that it is a checkpoint of; use another checkpoint"
            raise CheckpointError(message)
        return cls(about, state)

    def save(self, path: Place) -> None:
        """Write it as the new folder `path`, which appears with all of its contents or not at all.

        Raises:
            FileExistsError: there is something at `path`.
            OSError: it cannot be written.
        """
        save_checkpoint(Path(path), self.about, self.state)

    @property
    def actors(self) -> list[str]:
        """The names of the actors that it has the state of, such as ``PPOLearner[0]``."""
        names = (
            name.removeprefix(ACTORS).partition("/")[0] for name in self.state if name.startswith(ACTORS)
        )
        return list(dict.fromkeys(names))

    def actor_state(self, name: str) -> Mapping[str, StateValue]:
        """What the ``state()`` of an actor gave, for ``load_state`` of another one of its class.

        Raises:
            KeyError: it has no such actor, or one without a ``state()`` of its own.
        """
        from pipeflow.lowering.host_state import ACTOR
        from pipeflow.state.objects import OWN

        found = under(f"{ACTORS}{name}/{ACTOR}{OWN}", self.state)
        if not found:
            raise KeyError(name)
        return found
