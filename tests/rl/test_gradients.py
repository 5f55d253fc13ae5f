"""Gradients: their mean is over steps, not over workers."""

from __future__ import annotations

import numpy as np
import pytest

from pipeflow.rl.episodes import EpisodeStats
from pipeflow.rl.gradients import Gradients
from pipeflow.rl.running_moments import Moments
from tests.cases import Case
from tests.rl.selected_cases import selected


def gradients(values: list[float] | None, steps: int, version: int = 0, loss: float = 0.0) -> Gradients:
    """Of a worker; None is what stands for the values of one that had no steps."""
    array = np.array([np.nan] if values is None else values, np.float32)
    return Gradients(array, steps, steps, version, metrics={"policy_loss": loss})


@pytest.mark.parametrize("case", selected("weighted_gradient", "AVG-01", "AVG-05"))
def test_fault_7_the_mean_is_weighted_by_steps(case: Case) -> None:
    inputs = case["inputs"]
    shards = zip(inputs["shard_mean_gradients"], inputs["shard_sizes"], strict=True)
    mean = Gradients.mean([gradients(values, steps) for values, steps in shards])
    np.testing.assert_allclose(mean.values, case["expected"]["gradient"], rtol=0, atol=1e-7)
    assert mean.steps == sum(inputs["shard_sizes"])
    if "wrong_values" in case:
        assert not np.allclose(mean.values, case["wrong_values"]["gradient"], atol=1e-3)


@pytest.mark.parametrize("case", selected("weighted_gradient", "AVG-04"))
def test_the_mean_does_not_depend_on_how_the_steps_were_split(case: Case) -> None:
    samples, size = case["inputs"]["per_sample"], case["inputs"]["minibatch_size"]
    parts = [samples[start : start + size] for start in range(0, len(samples), size)]
    assert [len(part) for part in parts] == case["expected"]["minibatch_sizes"]
    mean = Gradients.mean([gradients([sum(part) / len(part)], len(part)) for part in parts])
    assert mean.values.tolist() == [case["expected"]["mean"]]
    assert mean.values.tolist() != [case["wrong_values"]["mean_of_means"]]


@pytest.mark.parametrize("case", selected("weighted_gradient", "AVG-02"))
def test_ranks_weigh_by_their_valid_tokens(case: Case) -> None:
    ranks = zip(case["inputs"]["rank_sums"], case["inputs"]["rank_valid_counts"], strict=True)
    mean = Gradients.mean([gradients([total / count], count) for total, count in ranks])
    assert mean.values.tolist() == [case["expected"]["loss"]]


def test_fault_7_it_is_no_sum() -> None:
    assert Gradients.mean([gradients([2.0, -4.0], 8)] * 3).values.tolist() == [2.0, -4.0]


def test_metrics_are_means_over_steps_too_and_the_version_is_the_oldest() -> None:
    mean = Gradients.mean(
        [gradients([0.0], 1, version=4, loss=1.0), gradients([0.0], 3, version=2, loss=5.0)]
    )
    assert mean.metrics == {"policy_loss": 4.0}
    assert mean.version == 2


def test_statistics_are_merged_once_each() -> None:
    one = Gradients(
        np.zeros(1, np.float32),
        rows=2,
        steps=2,
        version=0,
        episodes=EpisodeStats(np.array([1.0]), np.array([2])),
        observation_moments=Moments.of(np.array([[0.0], [2.0]])),
    )
    mean = Gradients.mean([one, one])
    assert mean.episodes.returns.tolist() == [1.0, 1.0]
    assert mean.observation_moments is not None
    assert mean.observation_moments.count == 4
    assert mean.return_moments is None


def test_without_any_step_the_mean_is_zero_and_has_none() -> None:
    mean = Gradients.mean([gradients([1.0], 0), gradients([2.0], 0)])
    assert (mean.steps, mean.values.tolist()) == (0, [0.0])
    assert np.isnan(mean.metrics["policy_loss"])


def test_of_nothing_and_of_different_losses_there_is_no_mean() -> None:
    with pytest.raises(ValueError, match="given no item"):
        Gradients.mean([])
    other = Gradients(np.zeros(1, np.float32), 1, 1, 0, metrics={"kl": 0.0})
    with pytest.raises(ValueError, match=r"metrics \['policy_loss'\] and \['kl'\] have no mean"):
        Gradients.mean([gradients([1.0], 1), other])


def test_read_only_values_are_not_written_to() -> None:
    shared = gradients([1.0], 1)
    shared.values.setflags(write=False)
    assert Gradients.mean([shared, shared]).values.tolist() == [1.0]
