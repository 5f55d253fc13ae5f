"""docs/reports.md: what users reported of other libraries and would show here, each under its number there.

Reports whose fault another test shows already are only named in the table.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from typing_extensions import override

from pipeflow import (
    StageError,
    actors,
    every,
    gather_async,
    gather_sync,
    group_of,
    groups_with,
    sync_weights,
)
from pipeflow.algorithms.apex import ApexConfig, apex
from pipeflow.algorithms.ppo import PPOConfig, ppo
from pipeflow.lowering.engine import Call
from pipeflow.lowering.engines.ray import Ray
from pipeflow.lowering.engines.sim import Sim
from pipeflow.rl.batches import Report, Trajectories
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.evaluation import evaluate
from pipeflow.rl.exploration import EpsilonLadder
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.multi_agent.cartpole import MultiAgentCartPole
from pipeflow.rl.multi_agent.environments import MultiAgentEnvSpec
from pipeflow.rl.multi_agent.policy_map import PolicyMap
from pipeflow.rl.multi_agent.rollouts import MultiAgentWorker
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.returns import gae
from pipeflow.rl.rollouts import RolloutWorker
from tests.algorithms.compared import assert_identical
from tests.conftest import EngineName
from tests.faults.actors import SlowLearner
from tests.faults.environments import BrokenSimulator, BrokenSimulatorError
from tests.lowering.actors import Counter, Failing, Rows, RowStore
from tests.reliability.gauges import Gauge

ROOT = Path(__file__).resolve().parents[2]
SMALL = PPOConfig(
    workers=2, num_envs=2, fragment_length=16, minibatch_size=32, epochs=2, hidden=(8,), seed=3,
    normalise_observations=True, anneal_steps=640,
)  # fmt: skip


def parameters_of(worker: RolloutWorker) -> dict[str, object]:
    """What a worker acts with, statistics included; for `Run.ask`."""
    names = ("parameters/", "observation_moments/", "version")
    return {name: value for name, value in worker.state().items() if name.startswith(names)}


def assert_equal_states(one: dict[str, object], other: dict[str, object]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(other[name]), err_msg=name)


def test_b31_after_an_update_every_worker_has_every_tensor_and_every_statistic_of_the_learner() -> None:
    plan = ppo(SMALL)
    workers, learner = groups_with(plan, RolloutWorker)[0], group_of(plan, PPOLearner)
    with plan.run() as run:
        for version in (1, 2):
            next(run)
            weights = run.ask(learner, PPOLearner.weights)[0]
            assert weights.version == version
            for state in run.ask(workers, parameters_of):
                names = {name.removeprefix("parameters/") for name in state if name.startswith("parameters/")}
                assert names == weights.parameters.keys()
                for name, array in weights.parameters.items():
                    np.testing.assert_array_equal(np.asarray(state[f"parameters/{name}"]), array)
                assert state["version"] == version
                assert weights.observation_moments is not None
                np.testing.assert_array_equal(
                    np.asarray(state["observation_moments/mean"]), weights.observation_moments.mean
                )


def test_b34_after_a_resume_workers_act_with_the_restored_weights_from_their_first_item_on() -> None:
    plan = ppo(SMALL)
    workers = groups_with(plan, RolloutWorker)[0]
    with plan.run() as run:
        list(islice(run, 2))
        before, checkpoint = run.ask(workers, parameters_of), run.checkpoint()
        unbroken = next(run)
    with plan.run(resume=checkpoint) as resumed:
        for one, other in zip(resumed.ask(workers, parameters_of), before, strict=True):
            assert_equal_states(one, other)
        assert_identical([next(resumed)], [unbroken])


def test_b95_evaluations_between_two_updates_change_nothing_of_the_training() -> None:
    plan = ppo(SMALL)
    learner = group_of(plan, PPOLearner)
    policy = PolicySpec.for_env(SMALL.env, hidden=SMALL.hidden)
    alone = list(islice(ppo(SMALL).run(), 3))
    watched = list[Report]()
    with plan.run() as run:
        for report in islice(run, 3):
            watched.append(report)
            found = evaluate(SMALL.env, policy, run.ask(learner, PPOLearner.weights)[0], 10, seed=0)
            assert found.count == 10
    assert_identical(watched, alone)


def test_b100_many_short_runs_anneal_as_one_long_run_does() -> None:
    plan = ppo(SMALL)
    unbroken = list(islice(plan.run(), 8))
    checkpoint = None
    reports = list[Report]()
    for _ in range(4):
        with plan.run(resume=checkpoint) as run:
            reports += islice(run, 2)
            checkpoint = run.checkpoint()
    assert_identical(reports, unbroken)
    # The rate of an update is that of the steps before it, whichever run they were in.
    before = [report.lifetime_steps - report.steps for report in reports]
    rates = [report.metrics["learning_rate"] for report in reports]
    assert rates == pytest.approx([SMALL.lr * (1 - steps / 640) for steps in before])
    assert before[0] == 0
    assert before == sorted(before)


def test_b101_the_workers_of_a_plan_explore_at_rates_of_their_own() -> None:
    workers = groups_with(apex(ApexConfig(workers=8, num_envs=1)), RolloutWorker)[0]
    ladder = workers.group.kwargs["epsilon"]
    assert isinstance(ladder, EpsilonLadder)
    rates = [rate for index in range(8) for rate in ladder.rates(index, 1)]
    assert rates == pytest.approx([0.4 ** (1 + index) for index in range(8)])


TELLING = EnvSpec("tests.faults.environments:Telling-v0")


def told(engine: EngineName) -> list[Trajectories]:
    """What two workers of two environments each saw in three rounds."""
    policy = PolicySpec.for_env(TELLING, hidden=(4,))
    workers = actors(RolloutWorker, 2, TELLING, policy, num_envs=2, fragment_length=4, seed=5)
    with (workers.produce(RolloutWorker.sample) | gather_sync()).run(engine) as run:
        return list(islice(run, 6))


@pytest.fixture(scope="module")
def told_inline() -> list[Trajectories]:
    return told("inline")


@pytest.fixture(scope="module")
def told_on_ray(ray_runtime: None) -> list[Trajectories]:
    return told("ray")


def drawn(fragments: Sequence[Trajectories]) -> list[list[float]]:
    """The random numbers of each of the four environments."""
    by_worker = [np.concatenate([one.observations[..., 1] for one in fragments[k::2]]) for k in (0, 1)]
    return [column.tolist() for numbers in by_worker for column in numbers.T]


def test_b103_every_environment_of_every_worker_is_seeded_and_the_same_seed_repeats_all(
    told_inline: list[Trajectories],
) -> None:
    numbers = drawn(told_inline)
    assert numbers == drawn(told("inline"))
    assert all(one != other for one, other in itertools.combinations(numbers, 2))
    assert all(len(set(one)) == len(one) for one in numbers)


@pytest.mark.ray
def test_b118_workers_on_ray_know_the_environment_that_is_named_with_its_module(
    told_on_ray: list[Trajectories], told_inline: list[Trajectories]
) -> None:
    assert drawn(told_on_ray) == drawn(told_inline)


@pytest.mark.ray
def test_b113_a_worker_computes_with_one_thread(told_on_ray: list[Trajectories]) -> None:
    for fragment in told_on_ray:
        np.testing.assert_array_equal(fragment.observations[..., 0], 1.0)


class Counted(Ray):
    """Ray, counting how often the driver waited."""

    waits = 0

    @override
    def wait(self, calls: Sequence[Call], timeout: float | None, needed: int = 1) -> Sequence[Call]:
        self.waits += 1
        return super().wait(calls, timeout, needed)


@pytest.mark.ray
def test_b106_a_driver_whose_learner_is_busy_waits_once_for_it_and_does_not_look_again_and_again(
    ray_runtime: None,
) -> None:
    engine = Counted()
    learner = actors(SlowLearner, 1, 0.1)
    plan = (
        actors(Counter, 2).produce(Counter.next_number)
        | gather_async(4)
        | learner.stage(SlowLearner.update).max_in_flight(2)
    )
    with plan.run(engine) as run:
        list(islice(run, 10))  # the queues before the learner are full
        before = engine.waits
        list(islice(run, 10))
    # For each item the learner's call and the one that fills its place in a queue again.
    assert engine.waits - before <= 2 * 10


@pytest.mark.parametrize("seed", range(10))
def test_b107_neither_side_of_a_replay_ratio_waits_for_ever_for_the_other(seed: int) -> None:
    """The ratio is at its bound from the first sample on: the buffer gives none before it is warm."""
    makers, store = actors(Failing, 2), actors(RowStore, 1, 8)
    stored = (
        makers.produce(Failing.number).map(lambda _: Rows(4)) | gather_async(2) | store.stage(RowStore.add)
    )
    trained = store.produce(RowStore.sample) | gather_async(2)
    found = list(islice((stored & trained).by_steps(1, 1).run(Sim(seed)), 100))
    replayed = sum(rows.steps for rows in found if rows.name == "replayed")
    assert abs(replayed - sum(rows.steps for rows in found if rows.name == "")) <= 8 + 2 * 4


@pytest.mark.parametrize("seed", range(20))
def test_b109_what_a_worker_made_before_its_error_comes_first_and_nothing_comes_in_its_place(
    seed: int,
) -> None:
    found = list[object]()
    run = (actors(Failing, 2).produce(Failing.third_fails) | gather_async(3)).run(Sim(seed))
    with pytest.raises(StageError, match=r"LookupError: 'the third'|LookupError: the third"):
        found.extend(run)
    assert set(found) <= {1, 2}
    assert len(found) <= 4


@pytest.mark.parametrize("where", ["step", "reset"])
def test_b110_an_environment_that_breaks_is_made_and_reset_anew(where: str, tmp_path: Path) -> None:
    env = EnvSpec("tests.faults.environments:Breaking-v0", {"folder": str(tmp_path), "where": where})
    workers = (
        actors(RolloutWorker, 2, env, PolicySpec.for_env(env, hidden=(4,)), num_envs=1, fragment_length=4)
        .restarts(1)
        .on_error("restart")
    )
    with (workers.produce(RolloutWorker.sample) | gather_sync()).run() as run:
        found = list(islice(run, 12))
        assert run.stats().restarts == 1
        assert run.stats().lost == 1
    # Every step has its reward and every fifth ends an episode: nothing was stepped before it was reset.
    assert all((fragment.rewards[fragment.valid] == 1.0).all() for fragment in found)
    assert {length for fragment in found for length in fragment.episodes.lengths.tolist()} == {5}


@pytest.mark.parametrize("engine", ["inline", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])])
def test_b112_when_no_restart_is_left_the_error_is_the_environments_own(engine: EngineName) -> None:
    simulators = actors(BrokenSimulator, 1).restarts(1).on_error("restart")
    with pytest.raises(StageError, match="the simulator's licence has run out") as caught:
        list((simulators.produce(BrokenSimulator.sample) | gather_async()).run(engine))
    assert isinstance(caught.value.__cause__, BrokenSimulatorError)
    assert caught.value.actor == "BrokenSimulator[0]"


def test_b119_a_worker_holds_no_more_after_a_thousand_episodes_whose_agents_come_and_go() -> None:
    env = MultiAgentEnvSpec(functools.partial(MultiAgentCartPole, 3, time_limit=5, returning=True))
    spaces = env.spaces()["0"]
    policies = PolicyMap(
        {"one": PolicySpec(spaces.observations, spaces.actions, hidden=(4,))}, lambda agent: "one"
    )
    worker = MultiAgentWorker(env, policies, num_envs=4, fragment_length=25, seed=1, index=0)
    gauge = Gauge(10, 60)
    for _ in range(60):
        worker.sample()
        gauge.tick()
    assert gauge.growth < 100


def test_b127_a_report_counts_what_the_reports_before_it_that_nobody_saw_did() -> None:
    seen = list(islice((ppo(SMALL) | every(3)).run(), 2))
    all_reports = list(islice(ppo(SMALL).run(), 6))
    assert [report.version for report in seen] == [3, 6]
    assert [report.lifetime_steps for report in seen] == [
        sum(report.steps for report in all_reports[:count]) for count in (3, 6)
    ]
    joined = Report.joined(all_reports[:3])
    assert joined.steps == joined.lifetime_steps == seen[0].lifetime_steps
    assert joined.episodes.count == sum(report.episodes.count for report in all_reports[:3])


def test_b128_the_learners_counters_go_on_when_a_worker_is_started_again(tmp_path: Path) -> None:
    env = EnvSpec("tests.faults.environments:Breaking-v0", {"folder": str(tmp_path), "where": "reset"})
    policy = PolicySpec.for_env(env, hidden=(4,))
    workers = (
        actors(RolloutWorker, 2, env, policy, num_envs=1, fragment_length=4).restarts(1).on_error("restart")
    )
    learner = actors(PPOLearner, 1, policy)
    plan = (
        workers.produce(RolloutWorker.sample)
        | gae()
        | gather_sync()
        | learner.stage(PPOLearner.update)
        | sync_weights(learner, workers)
    )
    with plan.run() as run:
        reports = list(islice(run, 12))
        assert run.stats().restarts == 1
    assert [report.version for report in reports] == list(range(1, 13))
    assert [report.lifetime_steps for report in reports] == list(
        itertools.accumulate(report.steps for report in reports)
    )
    assert sum(report.steps for report in reports) == 12 * 4
