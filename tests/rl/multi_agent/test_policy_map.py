"""Which policy acts for whom: shared and separate policies, and mappings that cannot work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from gymnasium import spaces
from typing_extensions import override

from pipeflow.rl.multi_agent.environments import MultiAgentEnvSpec
from pipeflow.rl.multi_agent.policy_map import PolicyMap
from tests.rl.multi_agent.scripted_environments import (
    Frame,
    Scripted,
    TenfoldSpec,
    all_shared,
    by_name,
    spec,
    tenfold,
)

ENV = spec([Frame({"a": 1})], ("a", "b", "c"))


def vowels(agent: str) -> str:
    return "vowels" if agent in "aeiou" else "others"


@pytest.mark.parametrize(
    ("policy_of", "policies", "agents"),
    [
        (all_shared, ["shared"], [("a", "b", "c")]),
        (by_name, ["a", "b", "c"], [("a",), ("b",), ("c",)]),
        (vowels, ["others", "vowels"], [("b", "c"), ("a",)]),
    ],
)
def test_agents_are_seated_at_their_policies(
    policy_of: Callable[[str], str], policies: Sequence[str], agents: Sequence[tuple[str, ...]]
) -> None:
    seats = tenfold(policy_of, *policies).seats(ENV)
    assert [seats[policy].agents for policy in policies] == agents
    assert seats[policies[0]].actions.sizes == (2,)


@pytest.mark.parametrize(
    ("policies", "words"),
    [
        (["a", "b"], r"policy_of\('c'\) is 'c', which is none of the policies \['a', 'b'\]"),
        (["a", "b", "c", "d"], r"policy_of gives policy 'd' to none of the agents \['a', 'b', 'c'\]"),
    ],
)
def test_a_mapping_that_leaves_somebody_out_is_refused(policies: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        tenfold(by_name, *policies).seats(ENV)


class Different(Scripted):
    """Agent b observes more, and agent c has more to choose from."""

    @override
    def observation_space(self, agent: str, /) -> spaces.Space[Any]:
        return spaces.Box(0.0, 1.0, (2,)) if agent == "b" else super().observation_space(agent)

    @override
    def action_space(self, agent: str, /) -> spaces.Space[Any]:
        return spaces.Discrete(3 if agent == "c" else 2)


@pytest.mark.parametrize("agents", [["a", "b"], ["a", "c"]])
def test_agents_of_other_spaces_cannot_share_a_policy(agents: list[str]) -> None:
    env = MultiAgentEnvSpec(Different, {"frames": [Frame({"a": 1})], "agents": agents})
    with pytest.raises(ValueError, match=f"policy 'shared' cannot act for agent '{agents[1]}'"):
        PolicyMap({"shared": TenfoldSpec()}, all_shared).seats(env)
