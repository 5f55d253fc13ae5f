"""`pipeflow train --track`: which services are told, and how a run goes on in them.

Apart from the trackers, which know nothing of the command line's names, and from the training.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from pipeflow.cli.resumption import Resumption
from pipeflow.state.values import Json
from pipeflow.tracking.mlflow import MLflow
from pipeflow.tracking.records import Tracker
from pipeflow.tracking.wandb import WandB

Service: TypeAlias = Literal["wandb", "mlflow"]
"""As `--track` names it."""


def trackers_of(
    services: Sequence[Service],
    project: str | None,
    name: str | None,
    folder: Path,
    config: Mapping[str, Json],
) -> dict[Service, Tracker]:
    """A tracker for each of the services.

    project, name: None for what their own environment variables say; without any, the run is called as its folder.
    config: what the run is made with.
    Raises TrackingError if the package of one is not installed.
    """
    found: dict[Service, Tracker] = {}
    for service in services:
        match service:
            case "wandb":
                found[service] = WandB(project, name or os.environ.get("WANDB_NAME", folder.name), config)
            case "mlflow":
                found[service] = MLflow(project, name or folder.name, config)
    return found


def run_ids_of(resumption: Resumption, folder: Path) -> dict[str, str]:
    """The ids of the run that is gone on with, by service; none for a run that branches off in another folder."""
    tracked = resumption.checkpoint.about.get("tracked")
    if not isinstance(tracked, Mapping) or resumption.folder != folder:
        return {}
    return {service: run_id for service, run_id in tracked.items() if isinstance(run_id, str)}
