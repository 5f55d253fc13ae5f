"""The multi-agent worker: rows of agents that come, go, are skipped and end, wherever fragments are cut."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from pipeflow.rl.action_values import ActionValueSpec
from pipeflow.rl.batches import Trajectories, Weights
from pipeflow.rl.multi_agent.batches import PolicyWeights
from pipeflow.rl.multi_agent.cartpole import MultiAgentCartPole
from pipeflow.rl.multi_agent.environments import MultiAgentEnvSpec
from pipeflow.rl.multi_agent.policy_map import PolicyMap
from pipeflow.rl.multi_agent.rollouts import MultiAgentWorker
from pipeflow.rl.n_step import n_step
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.returns import gae
from pipeflow.rl.schedules import Linear
from pipeflow.rl.seeding import derive_seed
from tests.cases import Case
from tests.rl.multi_agent.scripted_environments import (
    Frame,
    all_shared,
    by_name,
    rows,
    shared,
    spec,
    tenfold,
    worker,
)
from tests.rl.selected_cases import selected

BOTH_STAY = [
    Frame({"a": 1, "b": 101}),
    Frame({"a": 2, "b": 102}, {"a": 1.0, "b": -1.0}),
    Frame({"a": 3, "b": 103}, {"a": 2.0, "b": -2.0}, terminated=["a"], truncated=["b"]),
]
# b is skipped once, comes back, and a leaves before it; c comes when a has gone.
COME_AND_GO = [
    Frame({"a": 1, "b": 101}),
    Frame({"a": 2}, {"a": 1.0, "b": 0.5}),
    Frame({"a": 3, "b": 103}, {"a": 2.0, "b": 0.25}, terminated=["a"]),
    Frame({"b": 104, "c": 204}, {"b": 4.0, "c": 9.0}),
    Frame({"b": 105, "c": 205}, {"b": 8.0, "c": 16.0}, terminated=["b"], truncated=["c"]),
]


def test_columns_are_agents_and_rows_are_their_actions() -> None:
    fragment = shared(worker(BOTH_STAY, 4).sample())
    assert rows(fragment, 0) == [(1, 1, 2, ""), (2, 2, 3, "t"), (1, 1, 2, ""), (2, 2, 3, "t")]
    assert rows(fragment, 1) == [
        (101, -1, 102, ""),
        (102, -2, 103, "c"),
        (101, -1, 102, ""),
        (102, -2, 103, "c"),
    ]
    assert fragment.valid.all()
    assert fragment.actions.dtype == np.int64
    np.testing.assert_array_equal(fragment.log_probs, np.full((4, 2), -0.5, np.float32))


def test_next_values_are_of_the_true_next_observations() -> None:
    fragment = shared(worker(BOTH_STAY, 3).sample())
    # The second row of b is truncated: its final observation, in the state behind its second action. The third is
    # cut by the fragment's end.
    np.testing.assert_allclose(fragment.values[:, 1], [1010.0, 1020.1, 1010.0])
    np.testing.assert_allclose(fragment.next_values[:, 1], [1020.1, 1030.2, 1020.1])
    np.testing.assert_allclose(fragment.values[:, 0], [10.0, 20.1, 10.0])
    np.testing.assert_allclose(fragment.next_values[[0, 2], 0], [20.1, 20.1])


def test_final_rows_are_where_episodes_ended() -> None:
    fragment = shared(worker(BOTH_STAY, 4, num_envs=2).sample())
    # Columns: a and b of copy 0, a and b of copy 1. Rows 1 and 3 end all of them.
    assert fragment.final_rows.tolist() == [4, 5, 6, 7, 12, 13, 14, 15]
    assert fragment.final_observations[:, 0].tolist() == [3, 103] * 4


def test_a_skipped_agent_does_not_act_and_its_reward_is_its_last_actions() -> None:
    agents = ("a", "b", "c")
    sampler = MultiAgentWorker(
        spec(COME_AND_GO, agents), tenfold(all_shared, "shared"), num_envs=1, fragment_length=4
    )
    fragment = sampler.sample()
    its = shared(fragment)
    assert rows(its, 0) == [(1, 1, 2, ""), (2, 2, 3, "t")]
    assert rows(its, 1) == [(101, 0.75, 103, ""), (103, 4, 104, ""), (104, 8, 105, "t")]
    # What c got in the step that brought it was earned by no action.
    assert rows(its, 2) == [(204, 16, 205, "c")]
    assert fragment.counts.env_steps == 4
    assert fragment.counts.agent_steps == its.steps == 6
    assert sorted(zip(its.episodes.returns.tolist(), its.episodes.lengths.tolist(), strict=True)) == [
        (3.0, 2), (12.75, 3), (16.0, 1)
    ]  # fmt: skip


def test_a_skip_does_not_cut_the_chain_of_advantages() -> None:
    sampler = MultiAgentWorker(
        spec(COME_AND_GO, ("a", "b", "c")), tenfold(by_name, "a", "b", "c"), num_envs=1, fragment_length=4
    )
    advantages = gae(gamma=1.0, lam=1.0)(sampler.sample().by_policy["b"])
    # With gamma and lambda 1 the targets are the rewards to go.
    np.testing.assert_allclose(advantages.value_targets, [12.75, 12.0, 8.0], rtol=1e-5)


@pytest.mark.parametrize("length", [2, 3, 4, 5, 6])
def test_where_fragments_are_cut_changes_no_row(length: int) -> None:
    def everything(length: int, count: int) -> list[list[tuple[float, float, float, str]]]:
        sampler = MultiAgentWorker(
            spec(COME_AND_GO, ("a", "b", "c")),
            tenfold(all_shared, "shared"),
            num_envs=1,
            fragment_length=length,
        )
        fragments = [shared(sampler.sample()) for _ in range(count)]
        return [[row for fragment in fragments for row in rows(fragment, column)] for column in range(3)]

    assert everything(length, 60 // length) == everything(1, 60)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_where_fragments_are_cut_changes_no_value(length: int) -> None:
    def values(length: int, count: int) -> list[float]:
        sampler = worker(BOTH_STAY, length)
        fragments = [shared(sampler.sample()) for _ in range(count)]
        return [value for fragment in fragments for value in fragment.next_values[fragment.valid[:, 1], 1]]

    np.testing.assert_allclose(values(length, 6 // length), values(6, 1))


def test_an_action_that_is_open_at_the_fragments_end_comes_with_the_next_one() -> None:
    sampler = worker(
        [
            Frame({"a": 1, "b": 101}),
            Frame({"a": 2}, {"b": 0.5}),
            Frame({"a": 3}, {"b": 0.25}),
            Frame({"a": 4, "b": 104}, {"b": 0.125}, terminated=["a", "b"]),
        ],
        fragment_length=1,
    )
    first = shared(sampler.sample())
    assert rows(first, 1) == []
    # What it acted on is what its column will go on with.
    assert first.last_observations[1, 0] == 101
    sampler.set_weights(PolicyWeights("shared", Weights(7, {})))
    second = shared(sampler.sample())
    assert rows(second, 1) == []
    assert second.version == 7
    third = shared(sampler.sample())
    assert rows(third, 1) == [(101, 0.875, 104, "t")]
    # It was chosen by the weights before.
    assert third.version == 0
    assert third.initial_state[:, 0].tolist() == [2.0, 0.0]


def test_an_agent_that_ends_exactly_at_the_fragments_end() -> None:
    sampler = worker(BOTH_STAY, 2)
    first, second = shared(sampler.sample()), shared(sampler.sample())
    assert rows(first, 0) == rows(second, 0) == [(1, 1, 2, ""), (2, 2, 3, "t")]
    assert second.initial_state.tolist() == [[0.0], [0.0]]


def test_an_agent_that_ends_in_the_step_that_first_shows_it_never_acts() -> None:
    frames = [
        Frame({"a": 1}),
        Frame({"a": 2, "b": 102}, {"a": 1.0, "b": 5.0}, terminated=["b"]),
        Frame({"a": 3}, {"a": 1.0}, terminated=["a"]),
    ]
    fragment = worker(frames, 2).sample()
    assert rows(shared(fragment), 1) == []
    assert shared(fragment).episodes.count == 1
    assert fragment.counts.agent_steps == 2


def test_agents_may_take_turns() -> None:
    frames = [
        Frame({"a": 1}),
        Frame({"b": 102}, {"a": 1.0}),
        Frame({"a": 3}, {"b": 10.0}),
        Frame({"b": 104}, {"a": 2.0}),
        Frame({"a": 5, "b": 105}, {"a": 4.0, "b": 20.0}, terminated=["a", "b"]),
    ]
    fragment = shared(worker(frames, 4).sample())
    assert rows(fragment, 0) == [(1, 1, 3, ""), (3, 6, 5, "t")]
    assert rows(fragment, 1) == [(102, 10, 104, ""), (104, 20, 105, "t")]


def test_an_agent_may_come_back_in_the_same_episode() -> None:
    frames = [
        Frame({"a": 1, "b": 101}),
        Frame({"a": 2, "b": 102}, {"b": 1.0}, terminated=["b"]),
        Frame({"a": 3, "b": 103}),
        Frame({"a": 4, "b": 104}, {"b": 2.0}, terminated=["a", "b"]),
    ]
    fragment = shared(worker(frames, 3).sample())
    assert rows(fragment, 1) == [(101, 1, 102, "t"), (103, 2, 104, "t")]
    np.testing.assert_allclose(fragment.values[:2, 1], [1010.0, 1030.0])  # the state began anew


def test_an_agent_may_be_terminated_without_being_observed() -> None:
    frames = [Frame({"a": 1, "b": 101}), Frame({"a": 2}, {"b": 3.0}, terminated=["a", "b"])]
    assert rows(shared(worker(frames, 1).sample()), 1) == [(101, 3, 101, "t")]


def test_nobody_may_be_observed_in_a_step() -> None:
    frames = [
        Frame({"a": 1}),
        Frame({}, {"a": 1.0}),
        Frame({"a": 3}, {"a": 2.0}),
        Frame({"a": 4}, {"a": 4.0}, terminated=["a"]),
    ]
    fragment = worker(frames, 3).sample()
    assert rows(shared(fragment), 0) == [(1, 3, 3, ""), (3, 4, 4, "t")]
    assert (fragment.counts.env_steps, fragment.counts.agent_steps) == (3, 2)


def test_a_policy_without_an_agent_in_the_fragment_has_no_row() -> None:
    frames = [Frame({"a": 1}), Frame({"a": 2}), Frame({"a": 3, "b": 103}), Frame({"a": 4, "b": 104})]
    sampler = MultiAgentWorker(spec(frames), tenfold(by_name, "a", "b"), num_envs=1, fragment_length=2)
    absent = sampler.sample().by_policy["b"]
    assert absent.steps == 0
    assert absent.observations.shape == (2, 1, 1)
    assert gae()(absent).steps == n_step(3)(absent).steps == 0


@pytest.mark.parametrize("case", selected("metrics", "MET-05"))
def test_an_environment_step_counts_once_however_many_agents_and_policies(case: Case) -> None:
    present = case["inputs"]["agents_present_per_step"]
    names = ["a", "b", "c"]
    frames = [Frame(dict.fromkeys(names[: present[0]], 1.0))]
    for now, following in zip(present, [*present[1:], 0], strict=True):
        frames.append(Frame(dict.fromkeys(names[:now], 1.0), terminated=names[following:now]))
    sampler = MultiAgentWorker(
        spec(frames, names), tenfold(by_name, *names), num_envs=1, fragment_length=len(present)
    )
    fragment = sampler.sample()
    assert fragment.steps == fragment.counts.env_steps == case["expected"]["env_steps"]
    assert fragment.steps != case["wrong_values"]["env_steps"]
    assert fragment.counts.agent_steps == case["expected"]["agent_steps"]
    assert sum(its.steps for its in fragment.by_policy.values()) == case["expected"]["agent_steps"]


def test_n_step_windows_end_with_a_column_that_ends_before_the_fragment() -> None:
    frames = [Frame({"a": 1, "b": 101}), *(Frame({"a": t}, {"a": 1.0, "b": 1.0}) for t in (2, 3)),
              Frame({"a": 4, "b": 104}, {"a": 1.0, "b": 1.0}), Frame({"a": 5, "b": 105})]  # fmt: skip
    transitions = n_step(3, 0.5)(shared(worker(frames, 3).sample()))
    # Rows in the order of the fragment: a, b, a, a; b's only row has three steps' rewards and is one action.
    assert transitions.rewards.tolist() == [1.75, 3.0, 1.5, 1.0]
    assert transitions.next_observations[:, 0].tolist() == [4, 104, 4, 4]
    assert transitions.discounts.tolist() == [0.125, 0.5, 0.25, 0.5]


CARTPOLES = MultiAgentEnvSpec(MultiAgentCartPole, {"agents": 2})
SPACES = CARTPOLES.spaces()["0"]
SPEC = PolicySpec(SPACES.observations, SPACES.actions)


def cartpole_worker(seed: int, index: int = 0) -> MultiAgentWorker:
    return MultiAgentWorker(
        CARTPOLES,
        PolicyMap({"0": SPEC, "1": SPEC}, by_name),
        num_envs=2,
        fragment_length=30,
        seed=seed,
        index=index,
    )


def assert_same(one: Trajectories, other: Trajectories) -> None:
    for name in ("observations", "actions", "log_probs", "values", "next_values", "final_observations"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_seed_and_index_determine_everything() -> None:
    one, again, other, elsewhere = (
        cartpole_worker(seed, index).sample().by_policy["0"]
        for seed, index in ((3, 0), (3, 0), (4, 0), (3, 1))
    )
    assert_same(one, again)
    assert not np.array_equal(one.observations, other.observations)
    assert not np.array_equal(one.observations, elsewhere.observations)


def test_weights_go_to_the_policy_that_they_name() -> None:
    sampler = cartpole_worker(seed=0)
    weights = Weights(5, SPEC.build(seed=99).parameters_numpy())
    sampler.set_weights(PolicyWeights("1", weights))
    fragment = sampler.sample()
    assert {policy: its.version for policy, its in fragment.by_policy.items()} == {"0": 0, "1": 5}
    first = fragment.by_policy["1"].observations[0]
    expected = SPEC.build(seed=99).value(first, np.zeros((2, 0), np.float32))
    np.testing.assert_array_equal(fragment.by_policy["1"].values[0], expected)


def test_a_policy_begins_as_a_learner_of_the_derived_seed_does() -> None:
    fragment = cartpole_worker(seed=6).sample().by_policy["1"]
    built = SPEC.build(derive_seed(derive_seed(6, "1"), "policy"))
    expected = built.value(fragment.observations[0], np.zeros((2, 0), np.float32))
    np.testing.assert_array_equal(fragment.values[0], expected)


def test_weights_of_an_unknown_policy_are_refused() -> None:
    with pytest.raises(ValueError, match=r"weights came for 'dqn', the policies are \['0', '1'\]"):
        cartpole_worker(seed=0).set_weights(PolicyWeights("dqn", Weights(1, {})))


def test_action_values_explore_by_their_schedule() -> None:
    spec = ActionValueSpec(SPACES.observations, SPACES.actions)
    policies = PolicyMap({"q": spec}, partial(_constant, "q"))
    make = partial(MultiAgentWorker, CARTPOLES, policies, num_envs=8, fragment_length=50)
    greedy = make().sample().by_policy["q"]
    network = spec.build(derive_seed(derive_seed(0, "q"), "policy"))

    def share_best(its: Trajectories) -> float:
        seen = its.observations[its.valid]
        best = network.greedy(seen, np.zeros((len(seen), 0), np.float32))[0]
        return float(np.mean(best == its.actions[its.valid]))

    assert share_best(greedy) == 1.0
    # Half of the random actions are the best one; then the schedule has reached its end.
    exploring = make(epsilon={"q": Linear(1.0, 0.0, 400)})
    first, second = (exploring.sample().by_policy["q"] for _ in range(2))
    assert 0.4 < share_best(first) < 0.6
    np.testing.assert_allclose(first.log_probs[first.valid], np.log(0.5), rtol=1e-6)
    assert share_best(second) == 1.0


def _constant(policy: str, agent: str) -> str:
    return policy


def test_epsilon_for_a_policy_that_draws_its_actions_is_refused() -> None:
    with pytest.raises(ValueError, match="epsilon is given for 'a', which is no policy of action values"):
        MultiAgentWorker(spec(BOTH_STAY), tenfold(all_shared, "shared"), epsilon={"a": 0.1})


@pytest.mark.parametrize(("num_envs", "length"), [(0, 1), (1, 0)])
def test_sizes_below_one_are_refused(num_envs: int, length: int) -> None:
    with pytest.raises(ValueError, match=f"got {num_envs} and {length}"):
        worker(BOTH_STAY, length, num_envs)
