"""The multi-agent worker goes on from its state exactly as it would have gone on, and needs all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from pipeflow.rl.action_values import ActionValueSpec
from pipeflow.rl.batches import Weights
from pipeflow.rl.multi_agent.batches import MultiAgentTrajectories, PolicyWeights
from pipeflow.rl.multi_agent.cartpole import MultiAgentCartPole
from pipeflow.rl.multi_agent.environments import MultiAgentEnvSpec
from pipeflow.rl.multi_agent.policy_map import PolicyMap
from pipeflow.rl.multi_agent.rollouts import MultiAgentWorker
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.schedules import Linear
from pipeflow.state.values import StateValue
from tests.rl.saved_states import identical, over_disk


class Blinking(MultiAgentCartPole):
    """Leaves two agents out of the observations every third step: their actions stay open over fragments."""

    def __init__(self, agents: int = 3, *, returning: bool = False) -> None:
        super().__init__(agents, time_limit=30, returning=returning)
        self._steps = 0

    @override
    def step(self, actions: Mapping[str, Any], /) -> Any:
        self._steps += 1
        # Who was left out does not act, and is pushed to the left.
        observations, rewards, terminated, truncated, infos = super().step(
            {agent: actions.get(agent, 0) for agent in self.possible_agents}
        )
        if self._steps % 3 == 0:
            for offset in (0, 1):
                skipped = self.possible_agents[(self._steps // 3 + offset) % len(self.possible_agents)]
                if skipped in rewards and not (terminated[skipped] or truncated[skipped]):
                    del observations[skipped]
        return observations, rewards, terminated, truncated, infos


def kind_of(agent: str) -> str:
    return "even" if int(agent) % 2 == 0 else "odd"


ENV = MultiAgentEnvSpec(Blinking)
SPACES = ENV.spaces()["0"]
EVEN = PolicySpec(SPACES.observations, SPACES.actions, hidden=(8,), memory="gru", memory_size=4)
ODD = ActionValueSpec(SPACES.observations, SPACES.actions, hidden=(8,))
POLICIES = PolicyMap({"even": EVEN, "odd": ODD}, kind_of)


def worker(env: MultiAgentEnvSpec = ENV) -> MultiAgentWorker:
    """One policy has memory, the other explores less and less."""
    return MultiAgentWorker(
        env, POLICIES, num_envs=3, fragment_length=7, seed=1, index=0, epsilon={"odd": Linear(1.0, 0.0, 300)}
    )


def with_weights(one: MultiAgentWorker) -> MultiAgentWorker:
    for version, (name, policy) in enumerate(POLICIES.policies.items(), 3):
        one.set_weights(PolicyWeights(name, Weights(version, policy.build(seed=99).parameters_numpy())))
    return one


def samples(one: MultiAgentWorker, count: int) -> Sequence[MultiAgentTrajectories]:
    return [one.sample() for _ in range(count)]


@pytest.mark.parametrize("returning", [False, True])
@pytest.mark.parametrize("fragments", [0, 1, 2, 3, 4])
def test_a_loaded_worker_samples_what_the_saved_one_samples(
    fragments: int, returning: bool, tmp_path: Path
) -> None:
    env = MultiAgentEnvSpec(Blinking, {"returning": returning})
    one, other = with_weights(worker(env)), worker(env)
    samples(one, fragments)
    state = over_disk(one.state(), tmp_path)
    assert state["environments_saved"] == 1
    other.load_state(state)
    assert identical(dict(other.state()), dict(state))
    assert identical(samples(one, 8), samples(other, 8))


def test_a_state_does_not_change_while_its_worker_goes_on() -> None:
    one = with_weights(worker())
    samples(one, 2)
    state = one.state()
    before = {name: np.array(value) for name, value in state.items()}
    samples(one, 2)
    assert identical(before, {name: np.array(value) for name, value in state.items()})


# By policy "even", where it makes no difference.
PARTS = [
    "lifetime_steps", "environments/", "environments/1/episode", "environments/1/living",
    *(f"policies/odd/{part}" for part in ("generator", "parameters/", "agents/open/present")),
    *(f"policies/even/{part}" for part in ("version", "generator", "parameters/", "agents/episodes/running/")),
    *(f"policies/even/agents/seats/{part}" for part in ("observations", "recurrent_state", "waiting")),
    *(
        f"policies/even/agents/open/{part}"
        for part in ("actions", "log_probs", "values", "rewards", "states", "versions")
    ),
]  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_no_part_of_a_state_can_be_left_out(part: str) -> None:
    one, young = with_weights(worker()), worker()
    young.sample()
    # Until actions are open over the end of a fragment, and someone is gone from an episode after the first.
    for _ in range(100):
        one.sample()
        state = one.state()
        gone = int(state["environments/1/episode"]) > 1 and not np.all(state["environments/1/living"])
        if gone and opened(state, "even") and opened(state, "odd"):
            break
    else:
        raise AssertionError("no action stayed open")
    others = {name: value for name, value in young.state().items() if name.startswith(part)}
    if "/open/" in part or part.endswith("waiting"):
        others = {name: changed(state[name]) for name in others}
    assert others
    expected = samples(one, 8)
    whole, partial = worker(), worker()
    whole.load_state(state)
    assert identical(samples(whole, 8), expected)
    partial.load_state({**state, **others})
    try:
        found = samples(partial, 8)
    except (KeyError, ValueError):
        return  # an agent acted that is not there
    assert not identical(found, expected)


def changed(value: StateValue) -> StateValue:
    array = np.asarray(value)
    return ~array if array.dtype == np.bool_ else (array - 1).astype(array.dtype)


def opened(state: Mapping[str, StateValue], policy: str) -> bool:
    return bool(np.any(state[f"policies/{policy}/agents/open/present"]))


class Holding(Blinking):
    """Has something that nobody can save."""

    def __init__(self) -> None:
        super().__init__()
        self._held = iter(range(3))


def test_where_environments_cannot_be_saved_new_episodes_begin_and_nothing_else_is_lost(
    tmp_path: Path,
) -> None:
    env = MultiAgentEnvSpec(Holding)
    one, other, again = with_weights(worker(env)), worker(env), worker(env)
    samples(one, 5)
    state = over_disk(one.state(), tmp_path)
    assert state["environments_saved"] == 0
    other.load_state(state)
    again.load_state(state)
    found = samples(other, 4)
    assert identical(found, samples(again, 4))
    assert [found[0].by_policy[name].version for name in ("even", "odd")] == [3, 4]
    first = worker(env).sample()
    for name, columns in found[0].by_policy.items():
        # All agents begin, in other episodes than the run's first.
        assert columns.valid[0].all()
        assert not columns.initial_state.any()
        assert not identical(columns.observations[0], first.by_policy[name].observations[0])


def test_a_state_of_other_agents_is_refused() -> None:
    one = worker()
    one.sample()
    with pytest.raises(ValueError, match="is needed; it is of another configuration"):
        worker(MultiAgentEnvSpec(Blinking, {"agents": 4})).load_state(one.state())
