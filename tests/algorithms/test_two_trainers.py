"""Two trainers in one environment: each agent's experience reaches its own trainer, and both learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeflow import groups_with, take
from pipeflow.algorithms.two_trainers import (
    TwoTrainersConfig,
    dqn_policy_of,
    play,
    policies_of,
    ppo_policy_of,
    two_trainers,
)
from pipeflow.rl.batches import Report, Weights
from pipeflow.rl.learners.dqn import DQNLearner
from pipeflow.rl.learners.learner import Learner
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.multi_agent.cartpole import MULTI_AGENT_CARTPOLE
from pipeflow.rl.multi_agent.environments import MultiAgentEnvSpec
from pipeflow.rl.replay_batches import TDReport
from pipeflow.testing import check_laws
from tests.conftest import EngineName

SMALL = TwoTrainersConfig(
    env=MultiAgentEnvSpec(MULTI_AGENT_CARTPOLE, {"agents": 2, "returning": True}),
    dqn_agents=("1",),
    num_envs=2,
    fragment_length=8,
    minibatch_size=16,
    epochs=2,
    updates_per_round=3,
    batch_size=8,
    learning_starts=40,
    target_every=50,
    seed=3,
)


def reports(config: TwoTrainersConfig, engine: EngineName, count: int) -> list[Report | TDReport]:
    return list((two_trainers(config) | take(count)).run(engine))


def test_trainers_take_turns_and_dqn_waits_until_enough_is_stored() -> None:
    kinds = "".join("q" if isinstance(report, TDReport) else "p" for report in reports(SMALL, "inline", 12))
    # A round gives each policy about 30 rows, so two rounds warm the replay up.
    assert kinds == "ppqqqpqqqpqq"


def test_every_round_is_ppos_own_and_counted_once() -> None:
    its = reports(SMALL, "inline", 14)
    ppo = [report for report in its if not isinstance(report, TDReport)]
    dqn = [report for report in its if isinstance(report, TDReport)]
    assert [report.metrics["policy_lag"] for report in ppo] == [0.0] * len(ppo)
    assert [report.lifetime_steps for report in ppo] == np.cumsum([report.steps for report in ppo]).tolist()
    # Two workers, two copies, eight steps: at most 32 actions of the policy's one agent.
    assert all(16 < report.steps <= 32 for report in ppo)
    # DQN's agent acted about as often; what it did is counted when it was stored, not when it is trained on.
    counts = [report.lifetime_steps for report in dqn]
    assert counts[0] == counts[1] == counts[2] < counts[3] == counts[4]
    assert abs(counts[3] - ppo[2].lifetime_steps) <= 8


@pytest.mark.ray
@pytest.mark.usefixtures("ray_runtime")
def test_law_23_both_engines_give_identical_reports() -> None:
    for one, other in zip(reports(SMALL, "inline", 10), reports(SMALL, "ray", 10), strict=True):
        assert (type(one), one.version, one.lifetime_steps) == (
            type(other),
            other.version,
            other.lifetime_steps,
        )
        assert dict(one.metrics) == pytest.approx(dict(other.metrics), rel=0, abs=0, nan_ok=True)


def test_the_laws_hold_under_many_schedules() -> None:
    check_laws(two_trainers(SMALL), schedules=5, items=8)


def test_all_agents_may_have_gone_in_a_round() -> None:
    # Without returning agents, one that fell early has no row in some rounds: PPO then reports a round of none.
    waiting = replace(
        SMALL,
        env=MultiAgentEnvSpec(MULTI_AGENT_CARTPOLE, {"agents": 2}),
        workers=1,
        num_envs=1,
        fragment_length=1,
        learning_starts=1000,
    )
    steps = [report.steps for report in reports(waiting, "inline", 200) if not isinstance(report, TDReport)]
    assert set(steps) == {0, 1}


def test_the_players_weights_are_the_plans_learners_in_order() -> None:
    kinds = [learner.group.factory for learner in groups_with(two_trainers(SMALL), Learner)]
    assert kinds == [PPOLearner, DQNLearner]


def test_playing_gives_the_worse_policys_episodes() -> None:
    weights = [
        Weights(0, ppo_policy_of(SMALL).build(seed=1).parameters_numpy()),
        Weights(0, dqn_policy_of(SMALL).build(seed=1).parameters_numpy()),
    ]
    played = play(SMALL, weights, episodes=3, seed=5)
    assert played.count == 3  # of the one agent of whichever policy it is
    assert played.mean_return == pytest.approx(9.5, abs=2.0)  # a policy that was never trained falls at once


def test_agents_are_trained_by_whom_the_configuration_says() -> None:
    policies = policies_of(replace(SMALL, dqn_agents=("0",)))
    assert [policies.policy_of(agent) for agent in ("0", "1")] == ["dqn", "ppo"]


@pytest.mark.parametrize(("agents", "policy"), [((), "dqn"), (("7",), "dqn"), (("0", "1"), "ppo")])
def test_a_trainer_without_agents_is_refused(agents: tuple[str, ...], policy: str) -> None:
    with pytest.raises(ValueError, match=f"no agent is left for {policy}: dqn_agents is "):
        two_trainers(replace(SMALL, dqn_agents=agents))


@pytest.mark.parametrize("field", ["workers", "num_envs", "fragment_length", "updates_per_round", "n_step"])
def test_sizes_below_one_are_refused(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field} must be at least 1, got 0"):
        replace(SMALL, **{field: 0})  # type: ignore[arg-type]  # a field of the configuration, by name
