"""Trajectories of several policies: put side by side policy by policy, their environment steps counted once."""

from __future__ import annotations

import numpy as np
import pytest

from pipeflow.rl.multi_agent.batches import MultiAgentTrajectories
from pipeflow.rl.multi_agent.rollouts import MultiAgentWorker
from tests.rl.multi_agent.scripted_environments import Frame, all_shared, by_name, spec, tenfold

FRAMES = [Frame({"a": 1, "b": 101}), Frame({"a": 2}, {"a": 1.0}, terminated=["a", "b"])]


def sampled(num_envs: int) -> MultiAgentTrajectories:
    policies = tenfold(by_name, "a", "b")
    return MultiAgentWorker(spec(FRAMES), policies, num_envs=num_envs, fragment_length=2).sample()


def test_policies_are_joined_apart_from_each_other() -> None:
    joined = MultiAgentTrajectories.concatenate([sampled(1), sampled(2)])
    assert list(joined.by_policy) == ["a", "b"]
    assert joined.by_policy["b"].observations[:, :, 0].tolist() == [[101.0] * 3] * 2
    assert joined.by_policy["a"].final_rows.tolist() == [0, 1, 2, 3, 4, 5]
    assert joined.steps == joined.counts.env_steps == 6
    assert joined.counts.agent_steps == 12
    np.testing.assert_array_equal(joined.by_policy["a"].episodes.returns, np.ones(6))


def test_nothing_cannot_be_joined() -> None:
    with pytest.raises(ValueError, match="given no item"):
        MultiAgentTrajectories.concatenate([])


def test_other_policies_cannot_be_joined() -> None:
    other = MultiAgentWorker(
        spec(FRAMES), tenfold(all_shared, "shared"), num_envs=1, fragment_length=2
    ).sample()
    with pytest.raises(ValueError, match=r"policies \['a', 'b'\] and \['shared'\] cannot stand side by side"):
        MultiAgentTrajectories.concatenate([sampled(1), other])
