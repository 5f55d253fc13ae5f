"""One seed for a run, from it an independent stream for every part that draws, and where such a stream stands.

Apart from its users so that all of them derive seeds in the same way: adding 1 to a seed for each worker
gives worker 1 of seed 0 the stream of worker 0 of seed 1, and Python's `hash` of a string differs from
process to process.
"""

from __future__ import annotations

import hashlib
from operator import index

import numpy as np
from numpy.typing import NDArray

_WORD = 2**64 - 1


def derive_seed(seed: int, *path: int | str) -> int:
    """The seed of the part of a run that `path` names.

    seed: the run's seed, not negative. path: names and indices that lead to the part, such as
    ("worker", 3, "environment", 5). The same arguments give the same seed in every process and on every
    machine; different paths give statistically independent streams.
    Returns a whole number in [0, 2**63), fit for numpy's and torch's generators.
    Raises ValueError if the seed is negative, TypeError if a path element is neither int nor str.
    Source: numpy's SeedSequence, with a digest of the path as its spawn key.

    >>> derive_seed(7, "worker", 0) == derive_seed(7, "worker", 0)
    True
    >>> derive_seed(7, "worker", 0) == derive_seed(7, "worker", 1)
    False
    """
    if seed < 0:
        raise ValueError(f"a seed must not be negative, got {seed}")
    digest = hashlib.sha256(b"".join(_encoded(element) for element in path)).digest()
    key = np.frombuffer(digest, dtype="<u4").tolist()
    state = np.random.SeedSequence(int(seed), spawn_key=key).generate_state(1, np.uint64)
    return int(state[0]) >> 1


def generator_state(generator: np.random.Generator) -> NDArray[np.uint64]:
    """Where a generator of `numpy.random.default_rng` stands: [6] uint64, for `restore_generator`.

    Raises ValueError for a generator of other bits than PCG64.
    """
    bits = _pcg64(generator).state
    words: list[int] = []
    for part in (bits["state"]["state"], bits["state"]["inc"]):
        words += [part >> 64, part & _WORD]
    return np.array([*words, bits["has_uint32"], bits["uinteger"]], np.uint64)


def restore_generator(generator: np.random.Generator, state: NDArray[np.uint64]) -> None:
    """Let a generator of `numpy.random.default_rng` draw on from where another one stood.

    Raises ValueError for a generator of other bits than PCG64.
    """
    high, low, high_increment, low_increment, has_uint32, uinteger = state.tolist()
    _pcg64(generator).state = {
        "bit_generator": "PCG64",
        "state": {"state": high << 64 | low, "inc": high_increment << 64 | low_increment},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }


def _pcg64(generator: np.random.Generator) -> np.random.PCG64:
    bits = generator.bit_generator
    if not isinstance(bits, np.random.PCG64):
        raise ValueError(f"the state of {type(bits).__name__} is not known here; draw from PCG64")
    return bits


def _encoded(element: int | str) -> bytes:
    """Bytes of one path element, with its type and length, so that no two paths encode alike."""
    if isinstance(element, str):
        tag, text = b"s", element.encode()
    else:
        # `index` takes numpy's integers too, and raises TypeError for anything that is not whole.
        tag, text = b"i", str(index(element)).encode()
    return tag + len(text).to_bytes(8, "little") + text
