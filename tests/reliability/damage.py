"""Ways to damage a checkpoint's folder: files, and contents whose digest is right all the same.

Apart from the tests that read what is left.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from pipeflow.state.folders import digest_of
from pipeflow.state.writing import TEXT

DESCRIPTION = "checkpoint.json"
ARRAYS = "state.safetensors"

# `Any`: JSON of whatever shape.
STRANGE: list[Any] = [
    None, True, False, 0, -1, 1 << 40, 10**30, 0.5, -1e308, float("nan"), float("inf"), "", "é\x00", "a" * 1000,
    [], {}, [[]], [None] * 50, {"": None}, {"a": {"b": [1]}}, ["shared", 0], ["shared", -1], ["named", "x"],
    ["constant"], ["tuple", []], ["instance", "os:system", {}], ["enum", "builtins:eval", "x"],
    ["derived", "os:system", []], ["array", "x", "O", [1], "C", True],
]  # fmt: skip


def flip_bit(folder: Path, chance: random.Random) -> None:
    """One bit of one file."""
    file = folder / chance.choice([DESCRIPTION, ARRAYS])
    content = bytearray(file.read_bytes())
    place = chance.randrange(len(content))
    content[place] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


def truncate(folder: Path, chance: random.Random) -> None:
    """The end of one file is missing."""
    file = folder / chance.choice([DESCRIPTION, ARRAYS])
    content = file.read_bytes()
    file.write_bytes(content[: chance.randrange(len(content))])


def extend(folder: Path, chance: random.Random) -> None:
    """Something stands behind the end of one file."""
    file = folder / chance.choice([DESCRIPTION, ARRAYS])
    file.write_bytes(file.read_bytes() + chance.randbytes(chance.randrange(1, 40)))


def replace_value(folder: Path, chance: random.Random) -> None:
    """A value somewhere in the description is another."""
    description = json.loads((folder / DESCRIPTION).read_text())
    _mutate(description, chance)
    write_description(folder, description)


def replace_array(folder: Path, chance: random.Random) -> None:
    """An array is missing, has another name, or is of other numbers, or another shape or dtype."""
    arrays = _arrays(folder)
    name = chance.choice(sorted(arrays))
    array = arrays.pop(name)
    changes: list[Callable[[], NDArray[Any]]] = [
        lambda: array.reshape(-1)[: array.size // 2],
        lambda: np.zeros((3, *array.shape), array.dtype),
        lambda: np.zeros(array.shape, np.bool_),
        lambda: np.full(array.shape, np.nan, np.float64),
        lambda: np.frombuffer(chance.randbytes(array.nbytes), array.dtype).reshape(array.shape),
        lambda: np.zeros(0, array.dtype),
    ]
    match chance.randrange(8):
        case 0:
            pass
        case 1:
            arrays[name + "x"] = array
        case choice:
            arrays[name] = changes[choice - 2]()
    _sign(folder, arrays)


def replace_node(folder: Path, chance: random.Random) -> None:
    """A value somewhere in the texts that say what objects were saved is another."""
    arrays = _arrays(folder)
    texts = [name for name in sorted(arrays) if name.endswith(TEXT)]
    name = chance.choice(texts)
    text = json.loads(arrays[name].tobytes())
    for _ in range(chance.randrange(1, 4)):
        _mutate(text, chance)
    arrays[name] = np.frombuffer(json.dumps(text).encode(), np.uint8)
    _sign(folder, arrays)


def swap_arrays(folder: Path, chance: random.Random) -> None:
    """Two arrays have each other's names."""
    arrays = _arrays(folder)
    first, second = chance.sample(sorted(arrays), 2)
    arrays[first], arrays[second] = arrays[second], arrays[first]
    _sign(folder, arrays)


# `Any`: JSON of whatever shape.
def write_description(folder: Path, description: dict[str, Any]) -> None:
    """Write what a checkpoint says of itself, with the digest that is its own."""
    signed = description | {"sha256": digest_of(description)}
    (folder / DESCRIPTION).write_text(json.dumps(signed))


DAMAGES = (flip_bit, truncate, extend, replace_value, replace_array, replace_node, swap_arrays)


def _arrays(folder: Path) -> dict[str, NDArray[Any]]:
    return safetensors.numpy.load((folder / ARRAYS).read_bytes())


def _sign(folder: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write the arrays with a digest that is theirs, as somebody would who means harm."""
    # (np.ascontiguousarray would give a scalar's array an axis.)
    content = safetensors.numpy.save({name: np.asarray(array, order="C") for name, array in arrays.items()})
    description = json.loads((folder / DESCRIPTION).read_text())
    description["arrays"] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / ARRAYS).write_bytes(content)
    write_description(folder, description)


# `Any`: JSON of whatever shape.
def _mutate(value: Any, chance: random.Random) -> None:
    """Change something below a list or a mapping."""
    strange = copy.deepcopy(chance.choice(STRANGE))
    while True:
        keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = chance.choice(keys)
        below = value[key]
        if isinstance(below, dict | list) and below and chance.random() < 0.8:
            value = below
            continue
        match chance.randrange(4):
            case 0:
                del value[key]
            case 1 if isinstance(value, list):
                value.insert(key, strange)
            case _:
                value[key] = strange
        return
