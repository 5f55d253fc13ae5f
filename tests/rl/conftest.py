"""What holds for all tests of the domain."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def _one_torch_thread() -> None:
    # As in an actor: with several processes on few cores the default oversubscribes them.
    torch.set_num_threads(1)
