"""Checkpoints on disk: a state and what is to be known about it, in formats that run no code when they are read.

Apart from what is saved, which knows nothing of files. A checkpoint is a folder of two files:
`state.safetensors` has the arrays (weights, optimiser, normalisation statistics), `checkpoint.json` the numbers,
what is to be known about them, the digest of the other file, and that of all this. The folder is written under a
temporary name and renamed when all of it is on the disk, so one that has its name is complete, whatever kills
the process. A series of them in one folder keeps the newest few.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from pipeflow.dsl.errors import CheckpointError
from pipeflow.state.values import Json, StateValue

_FORMAT = "pipeflow checkpoint"
_FORMAT_VERSION = 3
_DESCRIPTION = "checkpoint.json"
_ARRAYS = "state.safetensors"
_DIGEST = "sha256"
_TEMPORARY = ".writing-"


class Saved(NamedTuple):
    """What a checkpoint holds: `about` is for whoever reads it, `state` the arrays and numbers."""

    about: Mapping[str, Json]
    state: Mapping[str, StateValue]


def save_checkpoint(path: Path, about: Mapping[str, Json], state: Mapping[str, StateValue]) -> None:
    """Write a checkpoint as the new folder `path`, which appears with all of its contents or not at all.

    The folder's own folder is made where it does not exist.
    Raises FileExistsError if there is something at `path`, OSError if it cannot be written, TypeError for a state
    of anything but arrays, int and float.
    """
    if path.exists():
        raise FileExistsError(f"{path} exists, and a checkpoint is never overwritten; give another name")
    for name, value in state.items():
        # A bool would come back as one.
        if isinstance(value, bool) or not isinstance(value, int | float | np.ndarray):
            raise TypeError(f"state {name!r} is a {type(value).__name__}; give arrays, int or float")
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = safetensors.numpy.save(
        {name: _contiguous(value) for name, value in state.items() if isinstance(value, np.ndarray)}
    )
    description: dict[str, Json] = {
        "format": _FORMAT,
        "format_version": _FORMAT_VERSION,
        "about": dict(about),
        "state": {name: value for name, value in state.items() if not isinstance(value, np.ndarray)},
        "arrays": {"bytes": len(arrays), "sha256": hashlib.sha256(arrays).hexdigest()},
    }
    description[_DIGEST] = digest_of(description)
    temporary = path.parent / f"{_TEMPORARY}{path.name}"
    shutil.rmtree(temporary, ignore_errors=True)  # what a killed process left
    try:
        temporary.mkdir()
        _write(temporary / _ARRAYS, arrays)
        _write(temporary / _DESCRIPTION, (json.dumps(description, indent=2) + "\n").encode())
        _synchronise(temporary)
        temporary.rename(path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _synchronise(path.parent)


def load_checkpoint(path: Path) -> Saved:
    """Read the checkpoint folder `path`; its arrays are the caller's own.

    Raises CheckpointError if there is none, or if it is damaged, foreign, or of another format.
    """
    file = path / _DESCRIPTION
    description = _read_description(file)
    state: dict[str, StateValue] = {}
    for name, value in _mapping(description, "state", file).items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise CheckpointError(
                f"{file} is damaged: its state {name!r} is no number; use another checkpoint"
            )
        state[name] = value
    state.update(_read_arrays(path / _ARRAYS, _mapping(description, "arrays", file)))
    return Saved(_mapping(description, "about", file), state)


def digest_of(description: Mapping[str, Json]) -> str:
    """The SHA-256 of what a `checkpoint.json` says, however it is laid out, the digest itself apart."""
    said = {name: value for name, value in description.items() if name != _DIGEST}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def is_checkpoint(path: Path) -> bool:
    """Whether `path` is a checkpoint's folder; says nothing of its contents."""
    return (path / _DESCRIPTION).is_file()


def checkpoints_in(folder: Path) -> list[Path]:
    """The complete checkpoints of a series, oldest first; none where the folder does not exist.

    Only those that `extend_series` named: one that somebody renamed is theirs.
    """
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.name.isdecimal() and is_checkpoint(path))


def extend_series(
    folder: Path, steps: int, about: Mapping[str, Json], state: Mapping[str, StateValue], keep: int = 3
) -> Path:
    """Save the checkpoint that a run made after `steps` environment steps, and delete all but the newest few.

    An older one is deleted only when the new one is on the disk. A checkpoint of the same number of steps is
    the same checkpoint, and stays as it is. keep: how many remain, at least 1.
    Returns the checkpoint's folder, whose name is the number of steps.
    Raises OSError if it cannot be written.
    """
    if keep < 1:
        raise ValueError(f"keep must be at least 1, got {keep}")
    path = folder / f"{steps:012d}"
    if not is_checkpoint(path):
        save_checkpoint(path, about, state)
    for old in checkpoints_in(folder)[:-keep]:
        shutil.rmtree(old)
    return path


def _read_description(file: Path) -> Mapping[str, Json]:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise CheckpointError(f"there is no checkpoint at {file.parent}: it has no {file.name}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{file} cannot be read: {error}; use another checkpoint") from error
    try:
        description: Json = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{file} is damaged, it is no JSON: {error}; use another checkpoint") from error
    if not isinstance(description, dict) or description.get("format") != _FORMAT:
        raise CheckpointError(
            f"{file} does not describe a pipeflow checkpoint; give a run's folder, or one of its"
        )
    if description.get("format_version") != _FORMAT_VERSION:
        raise CheckpointError(
            f"{file} has format version {description.get('format_version')!r}, and this pipeflow reads "
            f"{_FORMAT_VERSION}; use the pipeflow that wrote it"
        )
    if description.get(_DIGEST) != digest_of(description):
        raise CheckpointError(f"{file} is damaged: it does not say what was written; use another checkpoint")
    return description


def _read_arrays(file: Path, expected: Mapping[str, Json]) -> dict[str, NDArray[np.generic]]:
    try:
        found = file.stat()
        # Looked at before it is read: what is no file may never end.
        if not stat.S_ISREG(found.st_mode) or found.st_size != expected.get("bytes"):
            raise CheckpointError(
                f"{file} is damaged: it has {found.st_size} bytes where {expected.get('bytes')} were written; "
                "use another checkpoint"
            )
        content = file.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error.strerror}; use another checkpoint") from error
    if hashlib.sha256(content).hexdigest() != expected.get("sha256"):
        raise CheckpointError(
            f"{file} is damaged: its contents are not what was written; use another checkpoint"
        )
    try:
        return safetensors.numpy.load(content)
    except SafetensorError as error:
        raise CheckpointError(f"{file} is no safetensors file: {error}; use another checkpoint") from error


def _mapping(description: Mapping[str, Json], key: str, file: Path) -> Mapping[str, Json]:
    value = description.get(key)
    if not isinstance(value, dict):
        raise CheckpointError(f"{file} is damaged: its {key!r} is missing; use another checkpoint")
    return value


def _contiguous(array: NDArray[np.generic]) -> NDArray[np.generic]:
    # safetensors writes the memory as it lies. (np.ascontiguousarray would give a scalar's array an axis.)
    return np.asarray(array, order="C")


def _write(file: Path, content: bytes) -> None:
    with file.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _synchronise(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
