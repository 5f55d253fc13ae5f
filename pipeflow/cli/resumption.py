"""`pipeflow train --resume`: what a run wrote down of itself, and what of it a further run begins with.

Apart from the training, which goes on from there like any other: here is which checkpoint is meant, which
options and configuration it was made with, and where the curves stood.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeflow.cli.errors import UsageError
from pipeflow.cli.recording import CHECKPOINTS
from pipeflow.dsl import CheckpointError
from pipeflow.lowering.checkpoint import Checkpoint
from pipeflow.state.folders import checkpoints_in, is_checkpoint
from pipeflow.state.values import Json

FLAG = "--resume"


@dataclass(frozen=True)
class Resumption:
    """What is gone on with.

    path: the checkpoint's folder. folder: the run's, None where it lies in none. algorithm: its name in the
    catalogue. config, run: the configuration and the command's options, as JSON. steps: environment steps so far.
    """

    path: Path
    checkpoint: Checkpoint
    folder: Path | None
    algorithm: str
    config: Mapping[str, Json]
    run: Mapping[str, Json]
    steps: int

    @property
    def restarted_environments(self) -> list[str]:
        """The actors whose environments could not be saved, so that their episodes start anew."""
        state = self.checkpoint.state
        flags = [name for name in state if name.endswith("environments_saved") and not state[name]]
        return sorted({name.split("/")[1] for name in flags})


def resumption_of(words: Sequence[str]) -> Resumption | None:
    """What the words of a command line want to be gone on with, None if nothing.

    Raises UsageError for a flag without a path, CheckpointError if there is no checkpoint that a run can go on
    with.
    """
    path = _path_in(words)
    if path is None:
        return None
    return trained(newest_checkpoint(path))


def trained(found: Path) -> Resumption:
    """The checkpoint of a training.

    Raises CheckpointError if it is damaged, or of a run of another kind.
    """
    checkpoint = Checkpoint.load(found)
    about = checkpoint.about
    algorithm, config, run, steps = (about.get(key) for key in ("algorithm", "config", "run", "steps"))
    if not (
        isinstance(algorithm, str)
        and isinstance(config, Mapping)
        and isinstance(run, Mapping)
        and isinstance(steps, int)
    ):
        raise CheckpointError(f"{found} is of no run of pipeflow train; resume it with plan.run(resume=...)")
    return Resumption(found, checkpoint, _folder_of(found), algorithm, config, run, steps)


def newest_checkpoint(path: Path) -> Path:
    """The checkpoint's folder that a user means: `path` itself, its file, or the newest of the run at `path`.

    Raises CheckpointError if there is none.
    """
    folder = path.parent if path.is_file() else path
    if is_checkpoint(folder):
        return folder
    found = checkpoints_in(path / CHECKPOINTS) or checkpoints_in(path)
    if not found:
        what = "has no checkpoint in it" if path.exists() else "does not exist"
        raise CheckpointError(f"{path} {what}; give the folder of a run, or of one of its checkpoints")
    return found[-1]


def check_newest(resumption: Resumption) -> None:
    """Raises UsageError if the run went on after this checkpoint, so that its curves would be of two runs."""
    newest = checkpoints_in(resumption.path.parent)[-1:]
    if newest != [resumption.path]:
        raise UsageError(
            f"{resumption.path} is not the newest checkpoint of its run; resume the run, "
            "or give a --logdir for another that branches off here"
        )


def _folder_of(path: Path) -> Path | None:
    return path.parent.parent if path.parent.name == CHECKPOINTS else None


def _path_in(words: Sequence[str]) -> Path | None:
    for index, word in enumerate(words):
        if word.startswith(f"{FLAG}="):
            return Path(word.removeprefix(f"{FLAG}="))
        if word == FLAG:
            if index + 1 == len(words) or words[index + 1].startswith("-"):
                raise UsageError(f"{FLAG} needs the folder of a run, as in pipeflow train {FLAG} runs/my-run")
            return Path(words[index + 1])
    return None
