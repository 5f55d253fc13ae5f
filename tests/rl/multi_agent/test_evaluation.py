"""Evaluation of several policies: whole episodes, played greedily, with an account for each agent."""

from __future__ import annotations

import pytest

from pipeflow.rl.batches import Weights
from pipeflow.rl.multi_agent.cartpole import MultiAgentCartPole
from pipeflow.rl.multi_agent.environments import MultiAgentEnvSpec
from pipeflow.rl.multi_agent.evaluation import evaluate_multi_agent
from pipeflow.rl.multi_agent.policy_map import PolicyMap
from pipeflow.rl.policies import PolicySpec
from tests.rl.multi_agent.scripted_environments import Frame, all_shared, by_name, spec, tenfold

NO_WEIGHTS = Weights(0, {})
FRAMES = [
    Frame({"a": 1}),
    Frame({"a": 2, "b": 102}, {"a": 1.0, "b": 100.0}),
    Frame({"a": 3}, {"a": 2.0, "b": 4.0}, terminated=["a"]),
    Frame({"b": 104}, {"b": 8.0}, truncated=["b"]),
]


def test_every_agent_is_paid_what_its_actions_earned() -> None:
    policies = tenfold(by_name, "a", "b")
    weights = {"a": NO_WEIGHTS, "b": NO_WEIGHTS}
    played = evaluate_multi_agent(spec(FRAMES), policies, weights, episodes=2, seed=0)
    assert played.by_agent["a"].returns.tolist() == [3.0, 3.0]
    assert played.by_agent["a"].lengths.tolist() == [2, 2]
    # Acted once, was skipped once; what came before its first action is nobody's.
    assert played.by_agent["b"].returns.tolist() == [12.0, 12.0]
    assert played.by_agent["b"].lengths.tolist() == [1, 1]


def test_a_policy_has_the_episodes_of_all_its_agents() -> None:
    policies = tenfold(all_shared, "shared")
    played = evaluate_multi_agent(spec(FRAMES), policies, {"shared": NO_WEIGHTS}, episodes=1, seed=0)
    assert played.by_policy["shared"].returns.tolist() == [3.0, 12.0]


def test_the_same_seed_plays_the_same_episodes() -> None:
    env = MultiAgentEnvSpec(MultiAgentCartPole, {"agents": 2})
    spaces = env.spaces()["0"]
    policy = PolicySpec(spaces.observations, spaces.actions)
    policies = PolicyMap({"0": policy, "1": policy}, by_name)
    weights = {agent: Weights(0, policy.build(seed=4).parameters_numpy()) for agent in "01"}
    first, again, other = (
        evaluate_multi_agent(env, policies, weights, episodes=5, seed=seed).by_agent["1"].returns.tolist()
        for seed in (1, 1, 2)
    )
    assert first == again != other
    assert len(first) == 5


def test_agents_that_come_back_play_exactly_so_many_episodes_each() -> None:
    env = MultiAgentEnvSpec(MultiAgentCartPole, {"agents": 3, "returning": True})
    spaces = env.spaces()["0"]
    policy = PolicySpec(spaces.observations, spaces.actions)
    weights = {"shared": Weights(0, policy.build(seed=4).parameters_numpy())}
    played = evaluate_multi_agent(env, PolicyMap({"shared": policy}, all_shared), weights, episodes=4, seed=1)
    assert [stats.count for stats in played.by_agent.values()] == [4, 4, 4]
    assert played.by_policy["shared"].count == 12


@pytest.mark.parametrize(
    ("weights", "episodes", "words"),
    [
        ({"a": NO_WEIGHTS, "b": NO_WEIGHTS}, 0, "at least 1 episode, got 0"),
        ({"a": NO_WEIGHTS}, 1, "policy 'b'"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(weights: dict[str, Weights], episodes: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        evaluate_multi_agent(spec(FRAMES), tenfold(by_name, "a", "b"), weights, episodes, seed=0)
