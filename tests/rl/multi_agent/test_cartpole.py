"""CartPole for several agents: the dynamics are CartPole-v1's, and agents leave one by one."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from pipeflow.rl.multi_agent.cartpole import MultiAgentCartPole


def test_each_agent_is_a_cartpole_of_its_own() -> None:
    environment = MultiAgentCartPole(agents=2)
    observations, _ = environment.reset(seed=5)
    assert not np.array_equal(observations["0"], observations["1"])
    reference = gymnasium.make("CartPole-v1").unwrapped
    reference.reset()
    assert isinstance(reference.observation_space, gymnasium.spaces.Box)
    # Only the state makes the difference between one CartPole and another.
    setattr(reference, "state", tuple(observations["1"].astype(np.float64)))  # noqa: B010  # untyped in gymnasium
    for action in (0, 1, 1, 0):
        stepped, rewards, terminated, truncated, _ = environment.step({"0": 1, "1": action})
        expected, reward, *_ = reference.step(action)
        np.testing.assert_allclose(stepped["1"], expected, rtol=1e-4)
        assert rewards["1"] == reward == 1.0
        assert not terminated["1"]
        assert not truncated["1"]


def test_an_agent_whose_pole_fell_is_gone_and_the_others_go_on_until_their_time_is_up() -> None:
    environment = MultiAgentCartPole(agents=2, time_limit=12)
    environment.reset(seed=0)
    there: list[set[str]] = []
    ends: dict[str, str] = {}
    for t in range(12):
        # Agent 0 only ever pushes to the right and falls; agent 1 pushes to and fro.
        observations, _, terminated, truncated, _ = environment.step({"0": 1, "1": t % 2})
        there.append(set(observations))
        for agent in observations:
            if terminated[agent] or truncated[agent]:
                ends[agent] = "terminated" if terminated[agent] else "truncated"
    assert ends == {"0": "terminated", "1": "truncated"}
    gone = there.index({"1"})
    assert there == [{"0", "1"}] * gone + [{"1"}] * (12 - gone)


def test_a_returning_agent_begins_anew_one_step_after_its_end() -> None:
    environment = MultiAgentCartPole(agents=2, time_limit=5, returning=True)
    environment.reset(seed=0)
    there: list[set[str]] = []
    for t in range(13):
        actions = dict.fromkeys(there[-1] if there else {"0", "1"}, t % 2)
        observations, rewards, terminated, truncated, _ = environment.step(actions)
        there.append({agent for agent in observations if not (terminated.get(agent) or truncated.get(agent))})
        # Nothing is earned in the step in which an agent comes back.
        assert set(rewards) == set(terminated) == set(truncated)
        assert set(rewards) == (set() if t % 6 == 5 else {"0", "1"})
    # Five steps, of which the last one ends the agents; then they come back.
    assert there == [set() if t % 6 == 4 else {"0", "1"} for t in range(13)]


@pytest.mark.parametrize(("agents", "limit"), [(0, 1), (1, 0)])
def test_sizes_below_one_are_refused(agents: int, limit: int) -> None:
    with pytest.raises(ValueError, match=f"got {agents} and {limit}"):
        MultiAgentCartPole(agents, limit)
