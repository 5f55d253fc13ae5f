"""Sums of n rewards: the numeric cases, and transitions against one step at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pipeflow.rl.batches import Trajectories
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.n_step import n_step, n_step_returns
from pipeflow.rl.running_moments import Moments
from tests.cases import Case, cases
from tests.rl.read_only import read_only
from tests.rl.selected_cases import selected


def flags(values: list[int]) -> NDArray[np.bool_]:
    return np.array(values, np.bool_)


def targets(inputs: Case, order: list[int]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """(targets, steps) of a case's rows taken in `order`, each in its own place."""
    rewards, following = np.array(inputs["rewards"])[order], np.array(inputs["next_q"])[order]
    terminated, truncated = flags(inputs["terminated"])[order], flags(inputs["truncated"])[order]
    sums, steps = n_step_returns(rewards, terminated, truncated, inputs["n"], inputs["gamma"])
    last = np.arange(len(rewards)) + steps - 1
    bootstrap = np.where(terminated[last], 0.0, inputs["gamma"] ** steps * following[last])
    back = np.argsort(order)
    return (sums + bootstrap)[back], steps[back]


@pytest.mark.parametrize("case", cases("nstep", lambda case: "write_pointer" not in case["inputs"]))
def test_n_step_targets_give_the_numbers_of_the_case(case: Case) -> None:
    found, steps = targets(case["inputs"], list(range(len(case["inputs"]["rewards"]))))
    assert found.tolist() == pytest.approx(case["expected"]["targets"], abs=case["tolerance"])
    assert steps.tolist() == case["expected"]["steps_used"]
    for name, value in case.get("wrong_values", {}).items():
        assert found[int(name[-1])] != pytest.approx(value, abs=1e-3), name


@pytest.mark.parametrize("case", selected("nstep", "NST-04"))
def test_nst_04_rows_in_order_of_time_have_no_write_pointer_to_cross(case: Case) -> None:
    inputs = case["inputs"]
    pointer, capacity = inputs["write_pointer"], inputs["capacity"]
    found, steps = targets(inputs, [(pointer + i) % capacity for i in range(capacity)])
    assert found.tolist() == pytest.approx(case["expected"]["targets_by_slot"], abs=case["tolerance"])
    assert steps.tolist() == case["expected"]["steps_used_by_slot"]
    assert found[1] != pytest.approx(case["wrong_values"]["slot_1_crosses_pointer"], abs=1e-3)


def trajectories(ends: list[str], num_envs: int = 1) -> Trajectories:
    """Rows whose observation, action and reward say where they stand.

    ends: for each step of every environment "", "terminated", "truncated" or "reset", the latter no real row.
    """
    steps = len(ends)
    shape = (steps, num_envs)
    column = [[end] * num_envs for end in ends]
    ended = [(t, n) for t, end in enumerate(ends) for n in range(num_envs) if end.endswith("ated")]
    numbers = np.arange(steps * num_envs, dtype=np.float32).reshape(shape)
    return read_only(
        Trajectories(
            observations=numbers[..., None],
            actions=numbers.astype(np.int64),
            log_probs=np.zeros(shape, np.float32),
            values=np.zeros(shape, np.float32),
            next_values=np.zeros(shape, np.float32),
            rewards=numbers + 1.0,
            reward_scale=np.ones(num_envs, np.float32),
            terminated=np.array(column) == "terminated",
            truncated=np.array(column) == "truncated",
            valid=np.array(column) != "reset",
            final_observations=np.array([[1000.0 + t * num_envs + n] for t, n in ended], np.float32).reshape(
                -1, 1
            ),
            final_rows=np.array([t * num_envs + n for t, n in ended], np.int64),
            last_observations=np.arange(500.0, 500.0 + num_envs, dtype=np.float32)[:, None],
            initial_state=np.zeros((num_envs, 0), np.float32),
            version=0,
            episodes=EpisodeStats(np.ones(len(ended)), np.ones(len(ended), np.int64)),
        )
    )


def test_a_window_ends_with_the_episode_and_with_the_fragment() -> None:
    made = n_step(3, 0.5)(trajectories(["", "", "truncated", "", "terminated", "", "", "", ""]))
    assert made.rewards.tolist() == [2.75, 3.5, 3.0, 6.5, 5.0, 11.5, 13.25, 12.5, 9.0]
    assert made.next_observations[:, 0].tolist() == [1002, 1002, 1002, 1004, 1004, 8, 500, 500, 500]
    assert made.terminated.tolist() == [False] * 3 + [True] * 2 + [False] * 4
    assert made.discounts.tolist() == [0.125, 0.25, 0.5, 0.25, 0.5, 0.125, 0.125, 0.25, 0.5]
    assert (made.steps, made.env_steps, made.episodes.count) == (9, 9, 2)


@pytest.mark.parametrize("case", selected("replay", "REP-01"))
def test_rep_01_the_next_observation_of_a_truncated_row_is_its_own_episodes(case: Case) -> None:
    plain = trajectories(["", "truncated", ""])
    made = n_step(1)(
        replace(
            plain,
            observations=np.array([[[0.0]], [[1.0]], [[50.0]]], np.float32),
            final_observations=np.array([[case["expected"]["truncated_next_obs"]]], np.float32),
            last_observations=np.array([[51.0]], np.float32),
        )
    )
    rows = zip(
        made.observations[:, 0].tolist(),
        made.next_observations[:, 0].tolist(),
        made.terminated.tolist(),
        strict=True,
    )
    assert [list(row) for row in rows] == case["expected"]["transitions"]
    assert made.next_observations[1, 0] != case["wrong_values"]["next_obs_of_row_1"]


def test_reset_rows_are_neither_stored_nor_reached() -> None:
    made = n_step(3, 1.0)(trajectories(["", "terminated", "reset", "", ""]))
    assert made.actions.tolist() == [0, 1, 3, 4]
    assert made.rewards.tolist() == [3.0, 2.0, 9.0, 5.0]
    assert (made.steps, made.env_steps) == (4, 4)


ENDS = st.lists(st.sampled_from(["", "", "", "terminated", "truncated"]), min_size=1, max_size=12)


@settings(deadline=None)
@given(ENDS, st.integers(1, 3), st.integers(1, 6))
def test_many_environments_are_each_as_one_alone(ends: list[str], num_envs: int, n: int) -> None:
    plain = trajectories(ends, num_envs)
    together = n_step(n, 0.5)(plain)
    following = plain.next_observations()
    row = 0
    for t in range(len(ends)):
        for column in range(num_envs):
            # One step at a time, as the definition says.
            total, k = 0.0, 0
            while True:
                total += 0.5**k * float(plain.rewards[t + k, column])
                k += 1
                if k == n or ends[t + k - 1] or t + k == len(ends):
                    break
            assert together.rewards[row] == pytest.approx(total)
            assert together.discounts[row] == 0.5**k
            assert together.terminated[row] == (ends[t + k - 1] == "terminated")
            assert together.next_observations[row, 0] == following[t + k - 1, column, 0]
            row += 1


def test_rewards_are_scaled() -> None:
    made = n_step(2, 0.5)(replace(trajectories(["", ""]), reward_scale=np.array([10.0], np.float32)))
    assert made.rewards.tolist() == [20.0, 20.0]


def test_normalised_observations_are_refused() -> None:
    moments = Moments.of(np.zeros((2, 1), np.float32))
    with pytest.raises(ValueError, match="turn normalise_observations off"):
        n_step(1)(replace(trajectories([""]), observation_moments=moments))


@pytest.mark.parametrize(("n", "gamma", "words"), [(0, 0.9, "n of at least 1"), (1, 1.1, "gamma in")])
def test_numbers_out_of_range_are_refused(n: int, gamma: float, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        n_step(n, gamma)
