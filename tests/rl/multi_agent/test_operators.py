"""What plans with several policies are written with, and that such plans mean the same on every engine."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np
import pytest

from pipeflow import Stream, actors, gather_rounds, group_of, groups_with, take
from pipeflow.rl.batches import Report, Weights
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.multi_agent.batches import MultiAgentTrajectories
from pipeflow.rl.multi_agent.cartpole import MULTI_AGENT_CARTPOLE
from pipeflow.rl.multi_agent.environments import MultiAgentEnvSpec
from pipeflow.rl.multi_agent.operators import select, sync_policy_weights
from pipeflow.rl.multi_agent.policy_map import PolicyMap
from pipeflow.rl.multi_agent.rollouts import MultiAgentWorker
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.returns import gae
from pipeflow.rl.seeding import derive_seed
from pipeflow.testing import check_laws, policy_lag_at_most
from tests.conftest import EngineName
from tests.rl.multi_agent.scripted_environments import Frame, all_shared, by_name, spec, tenfold

CARTPOLES = MultiAgentEnvSpec(MULTI_AGENT_CARTPOLE, {"agents": 2, "returning": True})
SPREAD = MultiAgentEnvSpec("mpe2.simple_spread_v3", {"N": 2, "max_cycles": 25})


def ppo_plan(
    env: MultiAgentEnvSpec, shared: bool, *, workers: int = 2, num_envs: int = 2, fragment_length: int = 16
) -> Stream[Report]:
    """PPO with one policy for all agents, or with one for each of two."""
    spaces = env.spaces()
    policies = PolicyMap(
        {
            ("shared" if shared else agent): PolicySpec(its.observations, its.actions)
            for agent, its in spaces.items()
        },
        all_shared if shared else by_name,
    )
    sampling = actors(
        MultiAgentWorker, workers, env, policies, num_envs=num_envs, fragment_length=fragment_length
    )

    def trained(experience: Stream[MultiAgentTrajectories], policy: str) -> Stream[Report]:
        learner = actors(
            PPOLearner, 1, PolicySpec(spaces[agent_of[policy]].observations, spaces[agent_of[policy]].actions),
            lr=1e-3, epochs=8, minibatch_size=128, seed=derive_seed(0, policy),
        )  # fmt: skip
        return (
            experience
            | select(policy)
            | gae()
            | learner.stage(PPOLearner.update)
            | sync_policy_weights(policy, learner, sampling)
        )

    agent_of = {policies.policy_of(agent): agent for agent in spaces}
    rounds = sampling.produce(MultiAgentWorker.sample) | gather_rounds() | MultiAgentTrajectories.concatenate
    if shared:
        return trained(rounds, "shared")
    left, right = rounds.fork(2, buffer=1)
    first, second = agent_of
    return (trained(left, first) & trained(right, second)).round_robin()


def test_one_policys_experience_is_taken_out() -> None:
    frames = [Frame({"a": 1, "b": 101}), Frame({}, terminated=["a", "b"])]
    worker = MultiAgentWorker(spec(frames), tenfold(by_name, "a", "b"), num_envs=1, fragment_length=1)
    fragment = worker.sample()
    assert select("b")(fragment) is fragment.by_policy["b"]
    assert select("b").name == "select('b')"
    with pytest.raises(ValueError, match=r"there is no policy 'c'; the policies are \['a', 'b'\]"):
        select("c")(fragment)


def test_every_policy_gets_the_weights_of_its_own_learner() -> None:
    plan = ppo_plan(CARTPOLES, shared=False) | take(4)
    sampling, learners = group_of(plan, MultiAgentWorker), groups_with(plan, PPOLearner)
    with plan.run() as run:
        assert [report.version for report in run] == [1, 1, 2, 2]
        weights = [run.ask(learner, PPOLearner.weights)[0] for learner in learners]
        for worker in run.ask(sampling, _parameters):
            for own, learnt in zip(worker, weights, strict=True):
                assert own.keys() == learnt.parameters.keys()
                assert all(np.array_equal(own[name], array) for name, array in learnt.parameters.items())
    first, second = (its.parameters["value_head.weight"] for its in weights)
    assert not np.array_equal(first, second)


def _parameters(
    worker: MultiAgentWorker,
) -> list[dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]]:
    return [policy.parameters_numpy() for policy in worker._policies.values()]


@pytest.mark.parametrize("shared", [True, False])
def test_every_round_is_sampled_with_the_newest_weights(shared: bool) -> None:
    reports = list((ppo_plan(CARTPOLES, shared) | take(4)).run())
    assert [report.metrics["policy_lag"] for report in reports] == [0.0] * 4


@pytest.mark.ray
@pytest.mark.usefixtures("ray_runtime")
def test_law_23_both_engines_give_identical_reports() -> None:
    inline, ray = (list((ppo_plan(CARTPOLES, shared=False) | take(4)).run(name)) for name in _ENGINES)
    assert [dict(report.metrics) for report in inline] == [
        pytest.approx(dict(report.metrics), rel=0, abs=0, nan_ok=True) for report in ray
    ]


_ENGINES: tuple[EngineName, ...] = ("inline", "ray")


@pytest.mark.parametrize("shared", [True, False])
def test_the_laws_hold_under_many_schedules(shared: bool) -> None:
    # The other policy's weights may be newer than a round by one update, where there is another.
    plan = ppo_plan(CARTPOLES, shared, num_envs=1, fragment_length=4)
    check_laws(plan, schedules=5, items=4, invariants=[policy_lag_at_most(0 if shared else 1)])


@pytest.mark.parametrize("shared", [True, False])
def test_a_pettingzoo_environment_is_trained_on(shared: bool) -> None:
    pytest.importorskip("mpe2")
    reports = list((ppo_plan(SPREAD, shared) | take(4)).run())
    # Two workers, two copies of each, sixteen steps; of two agents or of one.
    assert [report.steps for report in reports] == [128 if shared else 64] * 4
    assert all(np.isfinite(report.metrics["policy_loss"]) for report in reports)


@pytest.mark.parametrize("shared", [True, False])
def test_multi_agent_ppo_learns(shared: bool) -> None:
    plan = ppo_plan(CARTPOLES, shared, workers=1, num_envs=4, fragment_length=64)
    reports = list((plan | take(16 if shared else 32)).run())
    # With separate policies every other report is of the first.
    for first in range(1 if shared else 2):
        own = reports[first :: 1 if shared else 2]
        early, late = (
            reduce(EpisodeStats.merged, [its.episodes for its in part]) for part in (own[:2], own[-6:])
        )
        assert late.mean_return > 3 * early.mean_return


def test_weights_of_one_learner_are_named() -> None:
    spaces = CARTPOLES.spaces()["0"]
    policy = PolicySpec(spaces.observations, spaces.actions)
    learner = actors(PPOLearner, 1, policy)
    policies = PolicyMap({"shared": policy}, partial(_always, "shared"))
    workers = actors(MultiAgentWorker, 1, CARTPOLES, policies)
    sync = sync_policy_weights("shared", learner, workers, every=3)
    assert sync.name == "sync_policy_weights('shared', PPOLearner, MultiAgentWorker, every=3)"
    sent = sync.get(PPOLearner(policy))
    assert getattr(sent, "policy", None) == "shared"
    assert isinstance(getattr(sent, "weights", None), Weights)


def _always(policy: str, agent: str) -> str:
    return policy
