"""PPO: the loop over epochs, its early stop, and what one update reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor
from typing_extensions import override

from pipeflow.rl.batches import Advantages, Sequences
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.learners.ppo import EpochsDone, PPOLearner, run_epochs
from pipeflow.rl.learners.ppo_loss import PPOLoss
from pipeflow.rl.learners.ppo_rows import Rows, split_by_rows
from pipeflow.rl.policies import ActorCritic, PolicySpec
from pipeflow.rl.returns import gae
from pipeflow.rl.rollouts import RolloutWorker
from pipeflow.rl.spaces import action_codec, observation_codec
from tests.cases import Case
from tests.rl.partial_environments import Recall
from tests.rl.read_only import read_only
from tests.rl.selected_cases import selected

VECTOR = observation_codec(spaces.Box(-1.0, 1.0, (3,), np.float32))
ACTIONS: list[spaces.Space[object]] = [
    spaces.Discrete(3, start=-1),
    spaces.MultiDiscrete([2, 3]),
    spaces.MultiBinary(2),
    spaces.Box(-0.1, 0.1, (2,), np.float32),
]


def acted(spec: PolicySpec, rows: int, seed: int = 0) -> Advantages:
    """Rows that the initial policy of seed 0 acted out; what it did at random observations is judged at random."""
    rng = np.random.default_rng(seed)
    learner = PPOLearner(spec, seed=0)
    policy = spec.build(seed=0)
    policy.load_numpy(learner.weights().parameters)
    observations = rng.normal(size=(rows, 3)).astype(np.float32)
    actions, log_probs, values, _ = policy.act(observations, np.zeros((rows, 0), np.float32), rng)
    return Advantages(
        observations=observations,
        actions=actions,
        log_probs=log_probs,
        values=values,
        advantages=rng.normal(size=rows).astype(np.float32),
        value_targets=rng.normal(size=rows).astype(np.float32),
        version=0,
    )


DISCRETE = PolicySpec(VECTOR, action_codec(spaces.Discrete(3)))


@pytest.mark.parametrize("case", selected("schedule", "SCH-08"))
def test_the_first_minibatch_over_the_kl_limit_ends_the_update_before_its_step(case: Case) -> None:
    inputs, expected = case["inputs"], case["expected"]
    kls: list[float] = inputs["approx_kl_per_minibatch"]
    assessed: list[int] = []
    applied: list[int] = []

    def minibatches() -> Iterator[int]:
        start = len(assessed)
        yield from range(start, start + inputs["minibatches_per_epoch"])

    def assess(minibatch: int) -> tuple[float, int]:
        assessed.append(minibatch)
        return kls[minibatch], minibatch

    done = run_epochs(
        inputs["n_epochs"], minibatches, assess, applied.append, inputs["factor"] * inputs["target_kl"]
    )
    assert assessed[-1] == expected["minibatch_index_that_stops"]
    assert done == EpochsDone(expected["optimizer_steps_applied"], expected["complete_epochs"])
    assert applied == list(range(expected["optimizer_steps_applied"]))
    assert done.steps != case["wrong_values"]["n_updates"]


def test_without_a_limit_every_minibatch_is_applied() -> None:
    done = run_epochs(3, lambda: [1, 2], lambda minibatch: (1e9, minibatch), lambda _: None, None)
    assert done == EpochsDone(6, 3)


def test_the_learner_stops_early_and_says_so() -> None:
    report = PPOLearner(DISCRETE, lr=0.1, target_kl=1e-4, minibatch_size=64).update(acted(DISCRETE, 256))
    # The first minibatch is before any step, so its divergence is zero; a step of this size exceeds the limit.
    assert report.metrics["optimizer_steps"] == 1
    assert report.metrics["complete_epochs"] == 0


@pytest.mark.parametrize("space", ACTIONS, ids=lambda space: type(space).__name__)
def test_before_any_step_the_ratio_is_one(space: spaces.Space[object]) -> None:
    spec = PolicySpec(VECTOR, action_codec(space))
    rows = acted(spec, 64)
    policy = spec.build(seed=0)
    policy.load_numpy(PPOLearner(spec, seed=0).weights().parameters)
    log_probs, _, values = policy.evaluate(torch.tensor(rows.observations), torch.tensor(rows.actions))
    np.testing.assert_allclose(log_probs.detach().numpy(), rows.log_probs, rtol=0, atol=2e-6)
    np.testing.assert_allclose(values.detach().numpy(), rows.values, rtol=0, atol=2e-6)

    report = PPOLearner(spec, minibatch_size=64, epochs=1).update(rows)
    assert report.metrics["approx_kl"] == pytest.approx(0.0, abs=1e-9)
    assert report.metrics["clip_fraction"] == 0.0
    # All ratios are one and the advantages have mean zero.
    assert report.metrics["policy_loss"] == pytest.approx(0.0, abs=1e-6)


def test_a_short_last_minibatch_is_kept() -> None:
    report = PPOLearner(DISCRETE, epochs=2, minibatch_size=64).update(acted(DISCRETE, 150))
    assert report.metrics["optimizer_steps"] == 2 * 3


def test_metrics_weigh_a_short_minibatch_by_its_rows() -> None:
    rows = acted(DISCRETE, 5)
    # With a learning rate of zero every minibatch sees one network, so the mean over rows is known.
    whole = PPOLearner(DISCRETE, lr=0.0, epochs=1, minibatch_size=5).update(rows)
    parts = PPOLearner(DISCRETE, lr=0.0, epochs=1, minibatch_size=2).update(rows)
    assert parts.metrics["value_loss"] == pytest.approx(whole.metrics["value_loss"], rel=1e-5)
    assert parts.metrics["entropy"] == pytest.approx(whole.metrics["entropy"], rel=1e-5)


def test_one_row_alone_gives_finite_parameters() -> None:
    learner = PPOLearner(DISCRETE, minibatch_size=1)
    report = learner.update(acted(DISCRETE, 1))
    assert report.metrics["skipped_updates"] == 0
    assert all(np.isfinite(array).all() for array in learner.weights().parameters.values())


def test_a_batch_smaller_than_a_minibatch_is_one_minibatch() -> None:
    report = PPOLearner(DISCRETE, epochs=3, minibatch_size=256).update(acted(DISCRETE, 10))
    assert report.metrics["optimizer_steps"] == 3


@pytest.mark.parametrize(("epochs", "minibatch_size"), [(0, 256), (4, 0)])
def test_an_update_without_steps_is_refused(epochs: int, minibatch_size: int) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        PPOLearner(DISCRETE, epochs=epochs, minibatch_size=minibatch_size)


def test_an_update_makes_good_actions_likelier() -> None:
    rows = acted(DISCRETE, 256)
    good = rows.actions == 2
    judged = replace(
        rows,
        advantages=np.where(good, 1.0, -1.0).astype(np.float32),
        value_targets=np.ones(256, np.float32),
    )
    learner = PPOLearner(DISCRETE, lr=3e-3, epochs=10, minibatch_size=64)
    report = learner.update(judged)
    policy = DISCRETE.build(seed=0)
    policy.load_numpy(learner.weights().parameters)
    log_probs, _, values = policy.evaluate(torch.tensor(rows.observations), torch.tensor(rows.actions))
    assert log_probs.detach().numpy()[good].mean() > rows.log_probs[good].mean() + 0.05
    assert values.mean().item() > 0.2
    assert report.metrics["approx_kl"] > 0.0


def test_an_entropy_bonus_keeps_entropy() -> None:
    rows = acted(DISCRETE, 256)
    entropies = []
    for coefficient in (0.0, 1.0):
        learner = PPOLearner(DISCRETE, lr=1e-2, epochs=8, minibatch_size=64, entropy_coef=coefficient)
        learner.update(rows)
        entropies.append(learner.update(rows).metrics["entropy"])
    assert entropies[1] > entropies[0]


@dataclass(frozen=True)
class Shifted(PPOLoss):
    """PPO's loss, plus the mean value times a weight."""

    metrics = (*PPOLoss.metrics, "shift")
    weight: float = 0.0

    @override
    def __call__(self, policy: ActorCritic, rows: Rows) -> tuple[Tensor, Tensor]:
        loss, record = super().__call__(policy, rows)
        shift = policy.evaluate(rows.observations, rows.actions)[2].mean()
        return loss + self.weight * shift, torch.cat([record, shift.detach()[None]])


def test_a_loss_of_the_users_own_is_descended_and_recorded() -> None:
    batch = acted(DISCRETE, 64)
    reports = {
        weight: PPOLearner(DISCRETE, epochs=20, loss=Shifted(weight=weight)).update(batch)
        for weight in (0.0, 10.0)
    }
    plain = PPOLearner(DISCRETE, epochs=20).update(batch)
    # With no weight it is PPO's own loss, by autograd rather than in closed form.
    assert reports[0.0].metrics["value_loss"] == pytest.approx(plain.metrics["value_loss"], rel=1e-3)
    assert reports[10.0].metrics["shift"] < reports[0.0].metrics["shift"]
    assert "shift" not in plain.metrics


def test_the_report_counts_steps_and_the_lag_of_the_batch() -> None:
    learner, rows = PPOLearner(DISCRETE, minibatch_size=64), acted(DISCRETE, 128)
    first, second = learner.update(rows), learner.update(rows)
    assert (first.version, first.steps, first.lifetime_steps) == (1, 128, 128)
    assert (second.version, second.steps, second.lifetime_steps) == (2, 128, 256)
    assert (first.metrics["policy_lag"], second.metrics["policy_lag"]) == (0, 1)
    assert np.isfinite(list(second.metrics.values())).all()


def test_a_batch_without_rows_changes_nothing_but_the_version() -> None:
    learner = PPOLearner(DISCRETE)
    before = learner.weights().parameters
    rows = acted(DISCRETE, 4)
    none = replace(
        rows,
        **{name: getattr(rows, name)[:0] for name in ("observations", "actions", "log_probs", "values")},
        advantages=rows.advantages[:0],
        value_targets=rows.value_targets[:0],
        episodes=EpisodeStats(np.array([7.0]), np.array([3])),
    )
    report = learner.update(none)
    assert (report.version, report.steps, report.lifetime_steps) == (1, 0, 0)
    assert report.episodes.mean_return == 7.0
    assert (report.metrics["optimizer_steps"], report.metrics["skipped_updates"]) == (0, 0)
    assert np.isfinite(list(report.metrics.values())).all()
    for name, array in learner.weights().parameters.items():
        np.testing.assert_array_equal(array, before[name])


RECALL = EnvSpec(Recall)
RECURRENT = PolicySpec.for_env(RECALL, hidden=(8,), memory="lstm", memory_size=8)


def remembered(worker: RolloutWorker) -> Advantages:
    return gae()(read_only(worker.sample()))


def test_with_memory_the_ratio_is_one_before_any_step() -> None:
    worker = RolloutWorker(RECALL, RECURRENT, num_envs=4, fragment_length=12)
    worker.sample()  # the next fragment begins within episodes
    rows = remembered(worker)
    report = PPOLearner(RECURRENT, minibatch_size=rows.steps, epochs=1).update(rows)
    assert report.metrics["approx_kl"] == pytest.approx(0.0, abs=1e-9)
    assert report.metrics["clip_fraction"] == 0.0


def test_padding_does_not_count_in_the_losses() -> None:
    rows = remembered(RolloutWorker(RECALL, RECURRENT, num_envs=4, fragment_length=12))
    assert rows.sequences is not None
    assert len(set(rows.sequences.lengths.tolist())) > 1
    # Sequences of one length need no padding: a learning rate of zero sees one network throughout.
    errors, sizes = [], []
    for length in set(rows.sequences.lengths.tolist()):
        taken, chosen = rows.sequences.take(np.flatnonzero(rows.sequences.lengths == length))
        part = replace(
            rows,
            **{
                name: getattr(rows, name)[chosen]
                for name in ("observations", "actions", "log_probs", "values")
            },
            advantages=rows.advantages[chosen],
            value_targets=rows.value_targets[chosen],
            sequences=taken,
        )
        errors.append(PPOLearner(RECURRENT, lr=0.0, epochs=1).update(part).metrics["value_loss"])
        sizes.append(part.steps)
    whole = PPOLearner(RECURRENT, lr=0.0, epochs=1).update(rows).metrics["value_loss"]
    assert whole == pytest.approx(np.average(errors, weights=sizes), rel=1e-5)


def test_minibatches_are_whole_sequences_of_about_so_many_rows() -> None:
    lengths, order = np.array([5, 1, 4, 3, 7]), np.array([4, 0, 3, 1, 2])
    parts = split_by_rows(order, lengths, 6)
    assert [part.tolist() for part in parts] == [[4], [0], [3, 1, 2]]
    assert [part.tolist() for part in split_by_rows(order, lengths, 100)] == [order.tolist()]
    assert [part.tolist() for part in split_by_rows(order, lengths, 1)] == [[i] for i in order]


def test_every_row_is_in_one_minibatch_of_an_epoch() -> None:
    worker = RolloutWorker(RECALL, RECURRENT, num_envs=4, fragment_length=12)
    rows = Advantages.concatenate([remembered(worker), remembered(worker)])
    whole = PPOLearner(RECURRENT, lr=0.0, epochs=1, minibatch_size=rows.steps).update(rows)
    parts = PPOLearner(RECURRENT, lr=0.0, epochs=1, minibatch_size=10).update(rows)
    assert parts.metrics["optimizer_steps"] > 4
    assert parts.metrics["value_loss"] == pytest.approx(whole.metrics["value_loss"], rel=1e-5)


def test_a_batch_that_does_not_say_its_sequences_is_refused() -> None:
    rows = remembered(RolloutWorker(RECALL, RECURRENT, num_envs=2, fragment_length=6))
    with pytest.raises(ValueError, match="evaluate it over sequences"):
        PPOLearner(RECURRENT).update(replace(rows, sequences=None))


def test_a_restored_learner_with_memory_goes_on_bit_for_bit() -> None:
    worker = RolloutWorker(RECALL, RECURRENT, num_envs=4, fragment_length=12)
    unbroken, restored = (PPOLearner(RECURRENT, minibatch_size=16) for _ in range(2))
    unbroken.update(remembered(worker))
    restored.load_state(unbroken.state())
    rows = remembered(worker)
    assert unbroken.update(rows).metrics == restored.update(rows).metrics
    theirs = restored.weights().parameters
    for name, array in unbroken.weights().parameters.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)


def test_sequences_keep_a_memory_whose_parameters_share_one_tensor() -> None:
    learner = PPOLearner(RECURRENT, lr=1e-2)
    before = learner.weights().parameters
    learner.update(remembered(RolloutWorker(RECALL, RECURRENT, num_envs=4, fragment_length=12)))
    moved = [name for name, array in learner.weights().parameters.items() if (array != before[name]).any()]
    assert moved == list(before)


def test_states_of_sequences_are_where_they_start_from() -> None:
    rows = remembered(RolloutWorker(RECALL, RECURRENT, num_envs=2, fragment_length=6))
    assert rows.sequences is not None
    shifted = replace(rows, sequences=Sequences(rows.sequences.lengths, rows.sequences.states + 1.0))
    report = PPOLearner(RECURRENT, lr=0.0, epochs=1).update(shifted)
    assert report.metrics["approx_kl"] > 0.0
