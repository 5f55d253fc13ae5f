"""The state of an environment, whatever its class, without pickle: its attributes, and those of what it wraps.

Apart from the environments, which need not know that they are saved, and from `pipeflow.state`, which writes plain
values. Loading runs no code that a state names: it sets attributes of an environment that was made anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec as Registration
from gymnasium.vector import VectorEnv

from pipeflow.rl.mujoco_state import is_simulation, load_simulation_state, simulation_state
from pipeflow.state.reading import UNREADABLE, Reader
from pipeflow.state.values import StateValue
from pipeflow.state.writing import UnsavableValue, Writer

# Gymnasium's names for how an environment was made.
_CONSTANT_NAMES = frozenset(
    {
        "_cached_spec", "_ezpickle_args", "_ezpickle_kwargs", "_metadata", "_saved_kwargs", "autoreset_mode",
        "env_fns", "metadata", "spec",
    }
)  # fmt: skip
_CONSTANT_TYPES = (Registration, gymnasium.Space)
# Where the classes are of what draws, and of MuJoCo's models; its simulations are dealt with before.
_CONSTANT_MODULES = ("gymnasium.envs.mujoco.mujoco_rendering", "mujoco", "pygame")


class UnsavableEnvironment(ValueError):
    """An environment with a part that cannot be saved, which the message names."""


def environment_state(env: object) -> dict[str, StateValue]:
    """All that an environment's next steps and resets depend on, under flat names.

    Attributes are saved whose values are plain: numbers, texts, None, numpy's arrays and random generators, and
    containers of these; and, within them, of further environments: wrapped ones, sub-environments. What says how
    an environment was made is left alone: spaces (with their own random generators), functions, classes, what
    draws. Of a MuJoCo simulation the state is saved, and the model left alone. A part with methods `state()` and
    `load_state(state)`, which give and take values such as these under names, says itself what is saved of it.

    env: an environment of gymnasium's, single or vectorised, or of any other class with plain attributes.
    Raises UnsavableEnvironment if an attribute is anything else, such as the bodies of a Box2D world.
    """
    writer = Writer(lambda value: _attributes(value, env), constants=_CONSTANT_TYPES)
    try:
        return writer.finish(writer.write(env, "env"))
    except UnsavableValue as error:
        raise UnsavableEnvironment(f"{type(env).__name__} cannot be saved: {error}") from error


def load_environment_state(env: object, state: Mapping[str, StateValue]) -> None:
    """Go on where the environment that gave this state stood; its steps and resets are the same from there on.

    env: made as the other one was, and not used yet.
    Raises ValueError if the state is of another environment, or damaged; the environment is then of no use.
    """
    try:
        Reader(state, _fill, constants=_CONSTANT_TYPES).read(env, "env")
    except UNREADABLE as error:
        raise ValueError(
            f"the saved state does not fit {type(env).__name__}: {error}; make the environment as it was made then"
        ) from error


def _attributes(value: object, root: object) -> Mapping[str, object] | None:
    """What is saved of an object, by name; None if it cannot be."""
    if is_simulation(value):
        return simulation_state(value)
    if _saves_itself(value):
        saver: Any = value
        return {**saver.state()}
    if not (value is root or isinstance(value, gymnasium.Env | VectorEnv)) or _has_slots(type(value)):
        return None
    return {
        name: item
        for name, item in vars(value).items()
        if name not in _CONSTANT_NAMES and not _is_constant(item)
    }


def _fill(value: object, attributes: Mapping[str, object]) -> None:
    if is_simulation(value):
        load_simulation_state(
            value, {name: array for name, array in attributes.items() if isinstance(array, np.ndarray)}
        )
    elif _saves_itself(value):
        saver: Any = value
        saver.load_state(attributes)
    else:
        vars(value).update(attributes)


def _is_constant(value: object) -> bool:
    module = type(value).__module__
    return not is_simulation(value) and any(
        module == name or module.startswith(f"{name}.") for name in _CONSTANT_MODULES
    )


def _saves_itself(value: object) -> bool:
    # Of the class: `state` is what many environments call an array, and wrappers forward names.
    return all(callable(getattr(type(value), name, None)) for name in ("state", "load_state"))


def _has_slots(kind: type) -> bool:
    return any(getattr(base, "__slots__", ()) for base in kind.__mro__)
