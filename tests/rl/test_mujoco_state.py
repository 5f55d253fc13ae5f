"""MuJoCo's simulations: a state sets every quantity that may be read before the next step, and the step itself."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from pipeflow.rl.mujoco_state import is_simulation, load_simulation_state, simulation_state


# Any: MuJoCo's bindings have no types.
def simulation(name: str = "Hopper-v5", steps: int = 0) -> Any:
    env: Any = gymnasium.make(name).unwrapped
    env.reset(seed=0)
    generator = np.random.default_rng(0)
    for _ in range(steps):
        env.step(generator.uniform(-1, 1, env.action_space.shape))
    return env.data


def test_a_loaded_simulation_shows_what_the_saved_one_shows() -> None:
    saved, loaded = simulation(steps=15), simulation()
    assert saved.ncon > 0  # the foot on the ground, so that constraints are among what is kept
    load_simulation_state(loaded, simulation_state(saved))
    for name, array in simulation_state(saved).items():
        np.testing.assert_array_equal(simulation_state(loaded)[name], array, err_msg=name)
    assert loaded.time == saved.time


def test_only_a_simulation_is_one() -> None:
    assert is_simulation(simulation())
    assert not is_simulation(simulation().model)
    assert not is_simulation(None)


def test_a_state_of_another_model_is_refused() -> None:
    with pytest.raises(ValueError, match="another MuJoCo model"):
        load_simulation_state(simulation("Ant-v5"), simulation_state(simulation()))
