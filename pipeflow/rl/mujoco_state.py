"""The state of a MuJoCo simulation as arrays, exact to the last bit.

Apart from `environment_state`, which walks through environments and knows no physics engine; MuJoCo is imported
only where one of its simulations is, since it need not be installed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_INTEGRATION = "integration"
_DERIVED = "derived/"


# Any: MuJoCo's bindings have no types, and it may not be there at all.
def is_simulation(value: object) -> bool:
    """Whether a value is MuJoCo's `MjData`."""
    mujoco: Any = sys.modules.get("mujoco")
    return mujoco is not None and isinstance(value, mujoco.MjData)


def simulation_state(data: Any) -> dict[str, NDArray[np.generic]]:
    """All that the next steps depend on, and what was computed in the last one and may be read before the next.

    data: an `MjData`. The model is not among it: who changes that while it runs cannot be saved.
    Source: MuJoCo's documentation, "State and control": `mjSTATE_INTEGRATION` is what a step depends on.
    """
    mujoco: Any = sys.modules["mujoco"]
    spec = mujoco.mjtState.mjSTATE_INTEGRATION
    integration = np.empty(mujoco.mj_stateSize(data.model, spec))
    mujoco.mj_getState(data.model, data, integration, spec)
    return {_INTEGRATION: integration, **{f"{_DERIVED}{name}": array.copy() for name, array in _arrays(data)}}


def load_simulation_state(data: Any, state: Mapping[str, NDArray[np.generic]]) -> None:
    """Set a simulation of the same model to a state.

    Raises ValueError if it is of another model.
    """
    mujoco: Any = sys.modules["mujoco"]
    spec = mujoco.mjtState.mjSTATE_INTEGRATION
    if state[_INTEGRATION].shape != (mujoco.mj_stateSize(data.model, spec),):
        raise ValueError("the state is of a simulation of another MuJoCo model")
    mujoco.mj_setState(data.model, data, state[_INTEGRATION], spec)
    # Contacts and constraints take room that only a computation gives them.
    mujoco.mj_forward(data.model, data)
    # A step integrates last, so what it leaves is of the state before, which environments read.
    for name, array in _arrays(data):
        saved = state.get(f"{_DERIVED}{name}")
        if saved is not None and saved.shape == array.shape:
            array[...] = saved
    # Setting and computing both leave a warm start of their own behind.
    mujoco.mj_setState(data.model, data, state[_INTEGRATION], spec)


def _arrays(data: Any) -> list[tuple[str, NDArray[np.floating]]]:
    """The quantities of a simulation, which are views of its memory.

    No whole numbers: they are indices into that memory, and a damaged state must not lead out of it.
    """
    named = [(name, getattr(data, name)) for name in dir(data) if not name.startswith("_")]
    return [
        (name, array)
        for name, array in named
        if isinstance(array, np.ndarray) and np.issubdtype(array.dtype, np.floating) and array.size
    ]
