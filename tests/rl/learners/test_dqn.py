"""The Q-learner: targets by hand, the target network's timing, and a state that resumes bit for bit."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from pipeflow.rl.action_values import ActionValueSpec, QNetwork
from pipeflow.rl.batches import joined
from pipeflow.rl.learners.dqn import DQNLearner, target_due
from pipeflow.rl.learners.dqn_gradient import ActionValueGradient
from pipeflow.rl.replay_batches import Samples
from pipeflow.rl.schedules import Linear
from pipeflow.rl.spaces import action_codec, observation_codec
from tests.cases import Case
from tests.rl.read_only import read_only
from tests.rl.selected_cases import selected

SPEC = ActionValueSpec(
    observation_codec(spaces.Box(-1.0, 1.0, (3,), np.float32)),
    action_codec(spaces.Discrete(4)),
    hidden=(8,),
    dueling=True,
)


def samples(seed: int, rows: int = 32, new_env_steps: int = 10) -> Samples:
    rng = np.random.default_rng(seed)
    return read_only(
        Samples(
            observations=rng.normal(size=(rows, 3)).astype(np.float32),
            actions=rng.integers(0, 4, rows),
            rewards=rng.normal(size=rows).astype(np.float32),
            next_observations=rng.normal(size=(rows, 3)).astype(np.float32),
            terminated=rng.random(rows) < 0.3,
            discounts=np.full(rows, 0.9, np.float32),
            indices=rng.integers(0, 100, rows),
            generations=rng.integers(0, 100, rows),
            weights=rng.uniform(0.1, 1.0, rows).astype(np.float32),
            new_env_steps=new_env_steps,
        )
    )


def values(learner: DQNLearner, observations: NDArray[np.generic], network: str) -> NDArray[np.float32]:
    """Q of the network "parameters" or "target" of a learner's state, through one that was built anew."""
    built = SPEC.build(0)
    prefix = f"{network}/"
    state = learner.state()
    built.load_numpy(
        {n.removeprefix(prefix): np.asarray(v) for n, v in state.items() if n.startswith(prefix)}
    )
    with torch.no_grad():
        found: NDArray[np.float32] = built(torch.tensor(observations)).numpy()
    return found


def parted(*, double: bool) -> DQNLearner:
    """A learner whose target has fallen behind."""
    learner = DQNLearner(SPEC, target_every=None, lr=3e-2, double=double)
    for seed in range(20):
        learner.update(samples(seed))
    return learner


@pytest.mark.parametrize("double", [False, True])
def test_priorities_are_the_errors_against_targets_by_hand(double: bool) -> None:
    learner, batch = parted(double=double), samples(99)
    online, target = (values(learner, batch.next_observations, name) for name in ("parameters", "target"))
    rows = np.arange(batch.steps)
    best = target[rows, (online if double else target).argmax(axis=1)]
    wanted = batch.rewards + batch.discounts * np.where(batch.terminated, 0.0, best)
    errors = np.abs(
        wanted - values(learner, batch.observations, "parameters")[rows, batch.actions.astype(np.int64)]
    )
    report = learner.update(batch)
    np.testing.assert_allclose(report.priorities.priorities, errors, rtol=1e-4, atol=1e-5)
    assert report.priorities.indices is batch.indices
    assert report.priorities.generations is batch.generations
    huber = np.where(errors < 1.0, 0.5 * errors**2, errors - 0.5)
    assert report.metrics["loss"] == pytest.approx(np.average(huber, weights=batch.weights), rel=1e-4)
    assert report.metrics["td_error"] == pytest.approx(errors.mean(), rel=1e-4)


def test_double_and_plain_targets_differ() -> None:
    plain, double = (parted(double=False), parted(double=True))
    plain.load_state(double.state())
    first, second = (learner.update(samples(99)).priorities.priorities for learner in (plain, double))
    assert not np.allclose(first, second)


@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("double", [False, True])
def test_the_closed_form_learns_what_autograd_does(
    double: bool, dueling: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = replace(SPEC, dueling=dueling)

    def trained() -> tuple[DQNLearner, list[float]]:
        learner = DQNLearner(spec, target_every=30, double=double, lr=1e-2, huber=0.5)
        return learner, [learner.update(samples(seed)).metrics["loss"] for seed in range(10)]

    def nothing(network: QNetwork) -> None:
        return None

    by_hand, losses = trained()
    with monkeypatch.context() as patched:
        patched.setattr(ActionValueGradient, "of", nothing)
        by_autograd, expected = trained()
    assert losses == pytest.approx(expected, rel=1e-4)
    for name, array in by_autograd.weights().parameters.items():
        found = np.asarray(by_hand.weights().parameters[name], np.float32)
        np.testing.assert_allclose(found, np.asarray(array, np.float32), rtol=1e-4, atol=1e-5)


def test_minibatches_that_came_together_teach_what_they_teach_one_by_one() -> None:
    one_by_one, together = DQNLearner(SPEC, target_every=25), DQNLearner(SPEC, target_every=25, minibatches=4)
    parts = [samples(seed, new_env_steps=10 if seed == 3 else 0) for seed in range(4)]
    reports = [one_by_one.update(part) for part in parts]
    report = together.update(replace(joined(Samples, parts), new_env_steps=10))
    for name, array in one_by_one.weights().parameters.items():
        np.testing.assert_array_equal(array, together.weights().parameters[name])
    np.testing.assert_array_equal(
        report.priorities.priorities, np.concatenate([each.priorities.priorities for each in reports])
    )
    assert (report.steps, report.lifetime_steps, report.version) == (4 * 32, 10, 1)
    norms = [each.metrics["grad_norm"] for each in reports]
    assert report.metrics["grad_norm"] == pytest.approx(sum(norms) / 4)


def test_a_sample_that_cannot_be_parted_is_refused() -> None:
    with pytest.raises(ValueError, match="a sample of 32 rows cannot be parted into 3 minibatches"):
        DQNLearner(SPEC, minibatches=3).update(samples(0))


def test_a_row_of_weight_0_teaches_nothing() -> None:
    batch = samples(1)
    outlier = batch.rewards.copy()
    outlier[0] = 1e6
    weights = batch.weights.copy()
    weights[0] = 0.0
    first, second = DQNLearner(SPEC), DQNLearner(SPEC)
    first.update(replace(batch, weights=weights))
    second.update(replace(batch, weights=weights, rewards=outlier))
    for name, array in first.weights().parameters.items():
        np.testing.assert_array_equal(array, second.weights().parameters[name])


def test_behind_a_termination_nothing_is_read() -> None:
    batch = samples(1)
    far = batch.next_observations.copy()
    far[batch.terminated] = np.nan
    report = DQNLearner(SPEC).update(replace(batch, next_observations=far))
    assert np.isfinite(report.priorities.priorities).all()


def test_where_a_mask_allows_no_next_action_nothing_is_bootstrapped() -> None:
    masked = spaces.Dict(
        {"action_mask": spaces.MultiBinary(4), "seen": spaces.Box(-1.0, 1.0, (3,), np.float32)}
    )
    spec = replace(SPEC, observations=observation_codec(masked))
    batch = samples(1)
    mask = np.ones((batch.steps, 4), np.float32)
    nothing = replace(
        batch,
        observations=np.concatenate([batch.observations, mask], axis=1),
        next_observations=np.concatenate([batch.next_observations, 0 * mask], axis=1),
        rewards=np.zeros(batch.steps, np.float32),
        terminated=np.zeros(batch.steps, np.bool_),
    )
    report = DQNLearner(spec).update(nothing)
    # All targets are 0, so the errors are the values.
    assert np.isfinite(report.priorities.priorities).all()
    assert report.metrics["skipped_updates"] == 0


def test_an_error_that_is_no_number_changes_nothing() -> None:
    learner = DQNLearner(SPEC)
    before = learner.weights().parameters
    report = learner.update(replace(samples(1), rewards=np.full(32, np.nan, np.float32)))
    assert report.metrics["skipped_updates"] == 1
    for name, array in learner.weights().parameters.items():
        np.testing.assert_array_equal(array, before[name])


def target_is_online(learner: DQNLearner) -> bool:
    state = learner.state()
    return all(
        np.array_equal(np.asarray(state[name]), np.asarray(state[name.replace("parameters/", "target/")]))
        for name in state
        if name.startswith("parameters/")
    )


@pytest.mark.parametrize("case", selected("target_update", "SCH-04"))
def test_sch_04_the_target_follows_environment_steps_not_updates(case: Case) -> None:
    inputs, expected = case["inputs"], case["expected"]
    every, total, frequency = inputs["target_frequency"], inputs["total_steps"], inputs["train_frequency"]
    due = [step for step in range(1, total + 1) if target_due(step - 1, step, every)]
    assert due == expected["update_steps"]
    # Asked at every tenth step only, it is as often due, at the first of them that is not before.
    rarely = range(0, total + 1, frequency)
    found = [now for before, now in pairwise(rarely) if target_due(before, now, every)]
    assert found == [-(-step // frequency) * frequency for step in expected["update_steps"]]
    assert len(found) == expected["count"] != case["wrong_values"]["count"]


def test_sch_04_a_learner_that_trains_every_tenth_step_updates_its_target_in_time() -> None:
    learner = DQNLearner(SPEC, target_every=25)
    copied = []
    for seed in range(10):
        learner.update(samples(seed, new_env_steps=10))
        copied.append(target_is_online(learner))
    # Due at 25, 50, 75 and 100.
    assert copied == [False, False, True, False, True, False, False, True, False, True]
    assert learner.state()["target_updates"] == 4


def test_b58_updates_without_new_steps_do_not_update_the_target() -> None:
    learner = DQNLearner(SPEC, target_every=10)
    learner.update(samples(0, new_env_steps=10))
    assert target_is_online(learner)
    for seed in range(5):
        assert learner.update(samples(seed, new_env_steps=0)).metrics["target_updates"] == 1
    assert not target_is_online(learner)


@pytest.mark.parametrize("case", selected("target_update", "SCH-05"))
def test_sch_05_the_interval_stays_what_it_was_over_any_number_of_reloads(case: Case) -> None:
    inputs, expected = case["inputs"], case["expected"]
    interval, width = inputs["target_update_interval"], inputs["n_envs"]
    learner = DQNLearner(SPEC, target_every=interval)
    found = []
    for _ in range(inputs["reloads"] + 1):
        reloaded = DQNLearner(SPEC, target_every=interval)
        reloaded.load_state(learner.state())
        learner = reloaded
        updates = learner.state()["target_updates"]
        vector_steps = 0
        # Four environments step as one; a hundred vector steps at a time, to be quick.
        while learner.state()["target_updates"] == updates:
            learner.update(samples(0, rows=1, new_env_steps=100 * width))
            vector_steps += 100
        found.append(vector_steps)
    assert found == expected["interval_in_vector_steps_after_each_load"]
    assert found != case["wrong_values"]["interval_in_vector_steps_after_each_load"]
    assert found[0] * width == expected["interval_in_env_steps"]


def test_sch_06_tau_moves_the_target_towards_the_network() -> None:
    learner = DQNLearner(SPEC, target_every=None, tau=0.25)
    before = values(learner, np.eye(3, dtype=np.float32), "target")
    old = {name: np.asarray(array) for name, array in learner.state().items() if name.startswith("target/")}
    learner.update(samples(1))
    np.testing.assert_array_equal(values(learner, np.eye(3, dtype=np.float32), "target"), before)
    learner.update_target()
    state = learner.state()
    for name, array in old.items():
        online = np.asarray(state[name.replace("target/", "parameters/")])
        np.testing.assert_allclose(
            np.asarray(state[name]), array + 0.25 * (online - array), rtol=1e-5, atol=1e-7
        )


def test_steps_are_counted_by_increments() -> None:
    learner = DQNLearner(SPEC)
    first, second = learner.update(samples(1, new_env_steps=7)), learner.update(samples(2, new_env_steps=0))
    assert (first.version, first.steps, first.lifetime_steps) == (1, 32, 7)
    assert (second.version, second.steps, second.lifetime_steps) == (2, 32, 7)


def test_b98_a_learner_that_was_stopped_goes_on_bit_for_bit() -> None:
    def fresh() -> DQNLearner:
        return DQNLearner(SPEC, lr=Linear(1e-2, 0.0, 500), target_every=30)

    unbroken = fresh()
    for seed in range(4):
        unbroken.update(samples(seed))
    resumed, again = fresh(), fresh()
    resumed.load_state(unbroken.state())
    again.load_state(resumed.state())
    copied = copy.deepcopy(unbroken)
    for seed in range(4, 10):
        expected = unbroken.update(samples(seed))
        for other in (resumed, again, copied):
            report = other.update(samples(seed))
            assert dict(report.metrics) == dict(expected.metrics)
            np.testing.assert_array_equal(report.priorities.priorities, expected.priorities.priorities)
    for other in (resumed, again, copied):
        theirs = other.state()
        for name, value in unbroken.state().items():
            np.testing.assert_array_equal(np.asarray(value), np.asarray(theirs[name]), err_msg=name)


def test_a_copy_shares_nothing_with_its_original() -> None:
    original = DQNLearner(SPEC, target_every=10)
    copied = copy.deepcopy(original)
    copied.update(samples(1))
    fresh = DQNLearner(SPEC).state()
    for name, value in original.state().items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(fresh[name]), err_msg=name)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"target_every": 0}, "target_every must be at least 1"),
        ({"tau": 0.0}, "tau must be in"),
        ({"tau": 1.5}, "tau must be in"),
        ({"huber": 0.0}, "huber must be positive"),
        ({"minibatches": 0}, "minibatches must be"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        DQNLearner(SPEC, **settings)  # type: ignore[arg-type]  # a setting by name
