"""How many threads torch computes with, for as long as an actor computes.

One by default: several actors share a machine's cores, and sums whose order depends on the number of threads would
make a run depend on the machine, or on the engine (law 23). Apart from the actors, because inline the setting is
that of the user's own process, which has to be given back.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch


@contextmanager
def torch_threads(count: int) -> Generator[None]:
    """Compute with so many threads, then with as many as before.

    Raises ValueError if `count` is below 1.
    """
    if count < 1:
        raise ValueError(f"threads must be at least 1, got {count}")
    before = torch.get_num_threads()
    if before == count:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
