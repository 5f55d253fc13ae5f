"""`WandB`: a run at Weights & Biases, or in files for `wandb sync` where W&B is offline. Extra: `wandb`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeflow.state.values import Json
from pipeflow.tracking.errors import TrackingError, first_line, require
from pipeflow.tracking.records import Record

if TYPE_CHECKING:
    import wandb

_STEPS = "steps"


@dataclass(frozen=True)
class WandB:
    """A run at Weights & Biases; the horizontal axis is environment steps.

    What is None is what W&B's own variables say, such as WANDB_PROJECT and WANDB_NAME; with WANDB_MODE=offline it
    writes files alone. A run that is gone on with goes on under the same id.

    project: its name. name: of the run. config: what the run was made with.
    Raises TrackingError if wandb is not installed.
    """

    project: str | None = None
    name: str | None = None
    config: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def __post_init__(self) -> None:
        require("wandb", "wandb", "WandB")

    def open(self, steps: int = 0, run_id: str | None = None, /) -> WandBRun:
        """Begin the run. Raises TrackingError if W&B refuses or cannot be reached."""
        import wandb

        try:
            run = wandb.init(
                project=self.project,
                name=self.name,
                config=dict(self.config),
                id=run_id,
                resume=None if run_id is None else "allow",
                reinit="create_new",  # leaves a run of the caller's own alone
                settings=wandb.Settings(console="off"),  # which would break up the live display
            )
        except wandb.Error as error:
            message = f"W&B cannot start a run: {first_line(error)}; log in, or set WANDB_MODE=offline"
            raise TrackingError(message) from error
        # A step of W&B's own must grow, and those of a run that went back to a checkpoint do not.
        run.define_metric(_STEPS, hidden=True)
        run.define_metric("*", step_metric=_STEPS)
        return WandBRun(run)


class WandBRun:
    """The open run of a `WandB`."""

    def __init__(self, run: wandb.Run) -> None:
        self._run = run

    @property
    def run_id(self) -> str:
        """W&B's id of the run."""
        return self._run.id

    def record(self, record: Record, /) -> None:
        """Log every number that is one; W&B's own process sends it."""
        self._run.log({**record.curves(), _STEPS: record.report.lifetime_steps})

    def close(self, error: BaseException | None = None, /) -> None:
        """Finish the run, as a failed one where an error ended it; waits until everything is sent."""
        self._run.finish(exit_code=0 if error is None else 1)
