"""What W&B wrote while it was offline: its files are LevelDB logs of protocol buffers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

_BLOCK = 32768
# Of a part of a record: checksum, two bytes of length, and whether it is the whole, or the first, middle or last.
_PART = 7
_WHOLE, _LAST = 1, 4


@dataclass(frozen=True)
class OfflineRun:
    """One file. axes: what the curves of a name stand over. history: the points, without W&B's own columns."""

    run_id: str
    project: str
    name: str
    config: dict[str, object]
    axes: dict[str, str]
    history: list[dict[str, float]]
    exit_code: int


def offline_runs(folder: Path) -> list[OfflineRun]:
    """The runs below a folder, in the order in which they were begun."""
    files = sorted(folder.glob("wandb/offline-run-*/run-*.wandb"), key=lambda file: file.stat().st_ctime_ns)
    return [_read(file) for file in files]


def _read(file: Path) -> OfflineRun:
    history: list[dict[str, float]] = []
    axes: dict[str, str] = {}
    config: dict[str, object] = {}
    run_id = project = name = ""
    exit_code = -1
    for record in _records(file.read_bytes()):
        match record.WhichOneof("record_type"):
            case "run":
                run_id, project, name = record.run.run_id, record.run.project, record.run.display_name
                config |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
            case "metric":
                axes[record.metric.glob_name or record.metric.name] = record.metric.step_metric
            case "history":
                named = {(item.key or "".join(item.nested_key)): item for item in record.history.item}
                points = {name: json.loads(item.value_json) for name, item in named.items()}
                history.append({name: value for name, value in points.items() if name[0] != "_"})
            case "exit":
                exit_code = record.exit.exit_code
            case _:
                pass
    config.pop("_wandb", None)
    return OfflineRun(run_id, project, name, config, axes, history, exit_code)


# `Any`: protobuf makes the classes of messages at run time.
def _records(content: bytes) -> Iterator[Any]:
    messages: Any = import_module("wandb.proto.wandb_internal_pb2")
    position, held = _PART, b""
    while position + _PART <= len(content):
        rest = _BLOCK - position % _BLOCK
        if rest < _PART:  # too short for a part: padding
            position += rest
            continue
        length = int.from_bytes(content[position + 4 : position + 6], "little")
        kind = content[position + 6]
        held += content[position + _PART : position + _PART + length]
        position += _PART + length
        if kind in (_WHOLE, _LAST):
            record = messages.Record()
            record.ParseFromString(held)
            yield record
            held = b""
