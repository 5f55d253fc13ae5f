"""The folder that a training run leaves behind.

Apart from what fills it: the loop that trains writes its checkpoints, and trackers its curves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from pipeflow.cli.errors import UsageError
from pipeflow.state.values import Json

CONFIG = "config.json"
CHECKPOINTS = "checkpoints"
PICTURE = "plan.mmd"
TEXT = "plan.txt"
PROFILE = "profile.txt"
VIDEOS = "videos"


def run_folder(wanted: Path | None, algorithm: str, environment: str) -> Path:
    """Where a run will be kept; makes nothing yet. wanted: None for a new name in `runs`.

    Raises UsageError if there is something in `wanted`.
    """
    if wanted is not None:
        if wanted.exists() and not (wanted.is_dir() and not any(wanted.iterdir())):
            raise UsageError(
                f"{wanted} is taken, and a run is never overwritten; give another --logdir, or leave it out"
            )
        return wanted
    name = "".join(letter if letter.isalnum() or letter in "-._" else "-" for letter in environment)
    path = first = Path("runs") / f"{algorithm}-{name}-{datetime.now():%Y%m%d-%H%M%S}"
    number = 1
    while path.exists():  # another run was started in the same second
        number += 1
        path = first.with_name(f"{first.name}-{number}")
    return path


def make_run_folder(path: Path) -> None:
    """Make the folder. Raises UsageError if it cannot be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot make the run's folder {path}: {error.strerror}; give another --logdir"
        raise UsageError(message) from error


def write_json(file: Path, content: Mapping[str, Json]) -> None:
    """Write a file that people read too."""
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
