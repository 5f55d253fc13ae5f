"""The replay buffer: what it holds, what it hands out, and that it can be stopped and resumed."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pipeflow import NotReady
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.prioritised import Prioritisation
from pipeflow.rl.replay import ReplayBuffer
from pipeflow.rl.replay_batches import Priorities, Samples, Stored, Transitions
from tests.cases import Case
from tests.rl.read_only import read_only
from tests.rl.selected_cases import selected

# Alpha 1 and a power of two, so that masses are exact.
EXACT = Prioritisation(alpha=1.0, epsilon=2**-20)


def rows(first: int, count: int, episodes: int = 0) -> Transitions:
    """Rows whose every column tells which one it is."""
    numbers = np.arange(first, first + count)
    return read_only(
        Transitions(
            observations=np.stack([numbers, -numbers], axis=1).astype(np.float32),
            actions=numbers.astype(np.int64),
            rewards=numbers.astype(np.float32),
            next_observations=np.stack([numbers + 1, numbers], axis=1).astype(np.float32),
            terminated=numbers % 3 == 0,
            discounts=np.full(count, 0.9, np.float32),
            env_steps=count,
            episodes=EpisodeStats(np.full(episodes, float(first)), np.full(episodes, first)),
        )
    )


def sampled(buffer: ReplayBuffer) -> Samples:
    samples = buffer.sample()
    assert isinstance(samples, Samples)
    return samples


def contents(buffer: ReplayBuffer) -> list[int]:
    """The actions held, by slot."""
    held: list[int] = np.asarray(buffer.state()["rows/actions"]).tolist()
    return held


def assert_same(one: Samples, other: Samples) -> None:
    for field in fields(one):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(mine, EpisodeStats):
            mine, theirs = mine.returns, theirs.returns
        np.testing.assert_array_equal(mine, theirs, err_msg=field.name)


@pytest.mark.parametrize("case", selected("replay", "REP-02"))
def test_rep_02_the_oldest_rows_are_overwritten(case: Case) -> None:
    buffer = ReplayBuffer(case["inputs"]["capacity"], learning_starts=1)
    for row in case["inputs"]["added"]:
        assert buffer.add(rows(row, 1)) == Stored(1)
    assert contents(buffer) == case["expected"]["slots"]
    assert buffer.size == case["expected"]["size"]
    by_age = np.argsort(np.asarray(buffer.state()["generations"]))
    assert [contents(buffer)[slot] for slot in by_age] == case["expected"]["age_order"]
    buffer.add(rows(9, 1))
    assert contents(buffer).index(9) == case["expected"]["write_pointer"]


def test_b40_capacity_counts_rows() -> None:
    buffer = ReplayBuffer(10, learning_starts=1)
    sizes = []
    for first in (0, 4, 8):
        buffer.add(rows(first, 4))
        sizes.append(buffer.size)
    assert sizes == [4, 8, 10]
    assert buffer.lifetime_steps == 12


def test_of_more_rows_than_the_capacity_the_last_ones_stay() -> None:
    buffer = ReplayBuffer(4, learning_starts=1)
    buffer.add(rows(0, 11))
    assert sorted(contents(buffer)) == [7, 8, 9, 10]
    assert buffer.lifetime_steps == 11


def test_b41_rows_are_copied_and_nothing_that_was_given_is_kept_or_written() -> None:
    given_rows = rows(0, 3)
    buffer = ReplayBuffer(4, learning_starts=1)
    buffer.add(given_rows)
    assert not any(np.shares_memory(given_rows.observations, kept) for kept in _arrays(buffer))
    samples = sampled(buffer)
    assert not any(np.shares_memory(samples.observations, kept) for kept in _arrays(buffer))


def _arrays(buffer: ReplayBuffer) -> list[NDArray[np.generic]]:
    ring = buffer._ring
    assert ring is not None
    return [ring.observations, ring.next_observations]


def test_every_column_of_a_sampled_row_is_of_that_row() -> None:
    buffer = ReplayBuffer(16, batch_size=64, learning_starts=1)
    buffer.add(rows(0, 40))
    samples = sampled(buffer)
    numbers = samples.actions
    assert set(numbers.tolist()) <= set(range(24, 40))
    np.testing.assert_array_equal(samples.observations, np.stack([numbers, -numbers], axis=1))
    np.testing.assert_array_equal(samples.next_observations, np.stack([numbers + 1, numbers], axis=1))
    np.testing.assert_array_equal(samples.rewards, numbers)
    np.testing.assert_array_equal(samples.terminated, numbers % 3 == 0)
    np.testing.assert_array_equal(
        samples.generations, numbers
    )  # rows were added in the order of their numbers
    np.testing.assert_array_equal(samples.indices, numbers % 16)
    assert samples.weights.tolist() == [1.0] * 64
    assert samples.steps == 64
    assert samples.observations.dtype == np.dtype(np.float32)


@pytest.mark.parametrize("prioritisation", [None, Prioritisation()])
def test_minibatches_that_travel_together_are_drawn_as_if_alone(
    prioritisation: Prioritisation | None,
) -> None:
    alone, together = (
        ReplayBuffer(64, batch_size=8, minibatches=count, learning_starts=1, prioritisation=prioritisation)
        for count in (1, 3)
    )
    for buffer in (alone, together):
        buffer.add(rows(0, 40))
        buffer.update_priorities(Priorities(np.arange(40), np.arange(40), np.arange(40.0)))
    parts = [sampled(alone) for _ in range(3)]
    samples = sampled(together)
    for name in ("indices", "generations", "weights", "observations", "rewards"):
        expected = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(getattr(samples, name), expected, err_msg=name)
    resumed = ReplayBuffer(
        64, batch_size=8, minibatches=3, learning_starts=1, prioritisation=prioritisation, seed=0
    )
    resumed.load_state(together.state())
    np.testing.assert_array_equal(sampled(resumed).indices, sampled(together).indices)


def test_images_stay_bytes() -> None:
    plain = rows(0, 2)
    images = np.full((2, 3, 4, 4), 7, np.uint8)
    buffer = ReplayBuffer(4, batch_size=3, learning_starts=1)
    buffer.add(
        Transitions(
            images, plain.actions, plain.rewards, images, plain.terminated, plain.discounts, env_steps=2
        )
    )
    samples = sampled(buffer)
    assert samples.observations.dtype == np.dtype(np.uint8)
    assert samples.observations.shape == (3, 3, 4, 4)


def test_it_is_not_ready_before_learning_starts() -> None:
    buffer = ReplayBuffer(10, learning_starts=5)
    assert isinstance(buffer.sample(), NotReady)
    buffer.add(rows(0, 4))
    assert isinstance(buffer.sample(), NotReady)
    buffer.add(rows(4, 1))
    assert isinstance(buffer.sample(), Samples)


def test_met_04_steps_and_episodes_are_handed_out_once() -> None:
    buffer = ReplayBuffer(10, learning_starts=5)
    buffer.add(rows(1, 3, episodes=1))
    buffer.add(rows(4, 2, episodes=2))
    first, second = sampled(buffer), sampled(buffer)
    assert (first.new_env_steps, first.episodes.returns.tolist()) == (5, [1.0, 4.0, 4.0])
    assert (second.new_env_steps, second.episodes.count) == (0, 0)
    buffer.add(rows(6, 2))
    assert sampled(buffer).new_env_steps == 2


@pytest.mark.parametrize("case", selected("per", "PER-05"))
def test_per_05_the_priority_of_a_row_that_was_overwritten_is_ignored(case: Case) -> None:
    letters = {"a": 0, "b": 1, "c": 2, "d": 3}
    buffer = ReplayBuffer(case["inputs"]["capacity"], learning_starts=1, prioritisation=EXACT)
    for operation, operand in case["inputs"]["ops"]:
        if operation == "add":
            buffer.add(rows(letters[operand], 1))
        elif operation == "update":
            numbers = np.array([letters[letter] for letter in operand])
            errors = np.array(list(operand.values()))
            buffer.update_priorities(Priorities(numbers % 3, numbers, errors))
    masses = np.asarray(buffer.state()["masses"])
    found = {
        letter: masses[contents(buffer).index(number)] - 2**-20
        for letter, number in letters.items()
        if number in contents(buffer)
    }
    assert found == case["expected"]["priorities"]
    assert found != case["wrong_values"]["priorities"]
    assert buffer.ignored_priorities == case["expected"]["ignored_updates"]


def test_a_priority_that_is_no_number_is_ignored() -> None:
    buffer = ReplayBuffer(2, learning_starts=1, prioritisation=EXACT)
    buffer.add(rows(0, 2))
    buffer.update_priorities(Priorities(np.arange(2), np.arange(2), np.array([np.nan, 3.0])))
    assert np.asarray(buffer.state()["masses"]).tolist() == [1.0 + 2**-20, 3.0 + 2**-20]
    assert buffer.ignored_priorities == 1


def test_a_uniform_buffer_takes_priorities_and_ignores_them() -> None:
    buffer = ReplayBuffer(2, learning_starts=1)
    buffer.add(rows(0, 2))
    buffer.update_priorities(Priorities(np.arange(2), np.arange(2), np.ones(2)))
    assert sampled(buffer).weights.tolist() == [1.0] * 64


def test_b37_the_arrays_of_an_answer_are_not_written_to() -> None:
    buffer = ReplayBuffer(4, batch_size=8, learning_starts=1, prioritisation=EXACT)
    buffer.add(rows(0, 4))
    samples = sampled(buffer)
    before = samples.indices.copy()
    answer = Priorities(samples.indices, samples.generations, np.ones(8))
    for array in (answer.indices, answer.generations, answer.priorities):
        array.setflags(write=False)
    buffer.update_priorities(answer)
    np.testing.assert_array_equal(samples.indices, before)


# Random adds, samples and updates against a list of (number, priority), the newest last.
OPERATIONS = st.lists(st.tuples(st.sampled_from(["add", "update", "late"]), st.integers(1, 7)), max_size=30)


@settings(deadline=None)
@given(st.integers(1, 9), OPERATIONS)
def test_b35_to_b52_it_holds_what_a_list_would(capacity: int, operations: list[tuple[str, int]]) -> None:
    buffer = ReplayBuffer(capacity, batch_size=4, learning_starts=1, prioritisation=EXACT)
    model: list[tuple[int, float]] = []
    added, largest = 0, None
    late: Samples | None = None
    for operation, number in operations:
        if operation == "add":
            buffer.add(rows(added, number))
            model += [(added + i, 1.0 if largest is None else largest) for i in range(number)]
            model = model[-capacity:]
            added += number
            continue
        if not model:
            continue
        samples = late if operation == "late" and late is not None else sampled(buffer)
        late = sampled(buffer)
        errors = np.arange(4.0) + number
        # Of a row drawn several times the last error counts.
        reported = dict(zip(samples.generations.tolist(), errors.tolist(), strict=True))
        held = {row for row, _ in model}
        for row, error in zip(samples.generations.tolist(), errors.tolist(), strict=True):
            if row in held:
                largest = max(largest or 0.0, error)
        model = [(row, reported.get(row, priority)) for row, priority in model]
        buffer.update_priorities(Priorities(samples.indices, samples.generations, errors))
    if model:
        assert set(sampled(buffer).actions.tolist()) <= {row for row, _ in model}
        state = buffer.state()
        priorities = np.asarray(state["masses"]) - 2**-20
        assert dict(zip(contents(buffer), priorities.tolist(), strict=True)) == dict(model)


@pytest.mark.parametrize("prioritisation", [None, Prioritisation()])
def test_b98_a_buffer_that_was_stopped_goes_on_bit_for_bit(prioritisation: Prioritisation | None) -> None:
    def fresh() -> ReplayBuffer:
        return ReplayBuffer(16, batch_size=8, learning_starts=3, prioritisation=prioritisation, seed=5)

    def go_on(buffer: ReplayBuffer) -> list[Samples]:
        made = []
        for step in range(5):
            buffer.add(rows(100 + 7 * step, 7, episodes=1))
            samples = sampled(buffer)
            buffer.update_priorities(
                Priorities(samples.indices, samples.generations, np.sqrt(1.0 + samples.actions))
            )
            made.append(samples)
        return made

    unbroken = fresh()
    go_on(unbroken)
    unbroken.add(rows(50, 2, episodes=3))
    resumed = fresh()
    resumed.load_state(pickle.loads(pickle.dumps(unbroken.state())))
    twice = fresh()
    twice.load_state(resumed.state())
    copied = copy.deepcopy(unbroken)
    expected = go_on(unbroken)
    for other in (resumed, twice, copied):
        for one, two in zip(expected, go_on(other), strict=True):
            assert_same(one, two)
        assert other.ignored_priorities == unbroken.ignored_priorities


def test_an_empty_buffer_can_be_stopped_too() -> None:
    resumed = ReplayBuffer(4, learning_starts=1)
    resumed.load_state(ReplayBuffer(4, learning_starts=1).state())
    assert isinstance(resumed.sample(), NotReady)


def test_a_state_of_another_buffer_is_refused() -> None:
    with pytest.raises(ValueError, match="a buffer of 5 rows, this one has 4"):
        ReplayBuffer(4).load_state(ReplayBuffer(5).state())
    with pytest.raises(ValueError, match="has priorities"):
        ReplayBuffer(4).load_state(ReplayBuffer(4, prioritisation=EXACT).state())


def test_buffers_of_a_group_draw_from_streams_of_their_own() -> None:
    buffers = [ReplayBuffer(100, learning_starts=1, seed=1, index=index) for index in (0, 1, 0)]
    for buffer in buffers:
        buffer.add(rows(0, 100))
    first, second, again = (sampled(buffer).indices.tolist() for buffer in buffers)
    assert first == again != second


@pytest.mark.parametrize("name", ["capacity", "batch_size", "learning_starts"])
def test_sizes_below_1_are_refused(name: str) -> None:
    sizes = {"capacity": 1, "batch_size": 1, "learning_starts": 1} | {name: 0}
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        ReplayBuffer(**sizes)  # type: ignore[arg-type]  # a size by name
