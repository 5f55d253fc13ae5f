"""Prioritised sampling: the numeric cases, and what the sampler makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from pipeflow.rl.prioritised import (
    Prioritisation,
    PrioritisedSampler,
    importance_weights,
    probability_masses,
)
from pipeflow.rl.schedules import Linear
from tests.cases import Case
from tests.rl.selected_cases import selected


@pytest.mark.parametrize("case", selected("per", "PER-01"))
def test_per_01_probabilities_are_powers_taken_once(case: Case) -> None:
    inputs = case["inputs"]
    masses = probability_masses(np.array(inputs["priorities"]), inputs["alpha"], inputs["eps"])
    expected = pytest.approx(case["expected"]["probabilities"], abs=case["tolerance"])
    assert (masses / masses.sum()).tolist() == expected


@pytest.mark.parametrize("case", selected("per", "PER-02"))
def test_per_02_weights_are_divided_by_the_buffers_largest_or_the_batches(case: Case) -> None:
    inputs, expected, tolerance = case["inputs"], case["expected"], case["tolerance"]
    masses = probability_masses(np.array(inputs["priorities"]), inputs["alpha"])
    sampled, beta = masses[inputs["sampled"]], inputs["beta"]
    for reference, name in (
        (masses.mean(), "raw_weights"),
        (masses.min(), "normalised_by_buffer_max"),
        (sampled.min(), "normalised_by_batch_max"),
    ):
        weights = importance_weights(sampled, reference, beta).tolist()
        assert weights == pytest.approx(expected[name], abs=tolerance)
        assert weights != pytest.approx(case["wrong_values"]["sign_error"], abs=1e-3)


@pytest.mark.parametrize("case", selected("per", "PER-07"))
def test_per_07_a_row_without_error_stays_sampleable(case: Case) -> None:
    inputs, expected, tolerance = case["inputs"], case["expected"], case["tolerance"]
    errors = np.array(inputs["td_errors"])
    sampler = PrioritisedSampler(len(errors), Prioritisation(alpha=inputs["alpha"], epsilon=inputs["eps"]))
    sampler.add(np.arange(len(errors)))
    sampler.update(np.arange(len(errors)), errors)
    masses = sampler.masses()
    assert masses.tolist() == pytest.approx(expected["leaves"], abs=tolerance)
    assert (masses / masses.sum()).tolist() == pytest.approx(expected["probabilities"], abs=tolerance)
    slots, weights = sampler.draw(np.array([0.5, 0.5]), step=0)
    assert (slots.tolist(), weights.tolist()) == ([0, 1], [1.0, 1.0])


@pytest.mark.parametrize("case", selected("per", "PER-08"))
def test_per_08_beta_is_annealed_by_the_steps_that_were_stored(case: Case) -> None:
    inputs = case["inputs"]
    beta = Linear(inputs["beta0"], inputs["beta_final"], inputs["steps"])
    sampler = PrioritisedSampler(2, Prioritisation(alpha=1.0, beta=beta, epsilon=2**-40))
    sampler.add(np.arange(2))
    sampler.update(np.arange(2), np.array([1.0, 2.0]))
    for step, expected in zip(inputs["t"], case["expected"]["beta"], strict=True):
        _, weights = sampler.draw(np.array([0.0, 0.9]), step)
        assert -np.log2(weights[1]) == pytest.approx(expected, abs=1e-6)  # weights are float32


@pytest.mark.parametrize("case", selected("per", "PER-10"))
def test_per_10_only_written_slots_have_mass_and_count(case: Case) -> None:
    inputs, expected, tolerance = case["inputs"], case["expected"], case["tolerance"]
    priorities = np.array(inputs["priorities"])
    size = len(priorities)
    settings = Prioritisation(alpha=inputs["alpha"], beta=inputs["beta"], epsilon=1e-12)
    sampler = PrioritisedSampler(inputs["capacity"], settings)
    sampler.add(np.arange(size))
    sampler.update(np.arange(size), priorities)
    masses = sampler.masses()
    assert (masses / masses.sum())[:size].tolist() == pytest.approx(expected["probabilities"], abs=tolerance)
    assert masses[size:].tolist() == [0.0] * (inputs["capacity"] - size)
    raw = importance_weights(masses[:size], masses.sum() / size, inputs["beta"])
    assert raw.tolist() == pytest.approx(expected["raw_weights"], abs=tolerance)
    assert raw.tolist() != pytest.approx(case["wrong_values"]["raw_weights_with_capacity"], abs=1e-3)
    slots, weights = sampler.draw(np.array([0.5, 0.5]), step=0)
    assert slots.tolist() == [0, 1]
    assert weights.tolist() == pytest.approx(expected["normalised_by_buffer_max"], abs=1e-6)


def test_rows_are_drawn_in_proportion_to_their_mass() -> None:
    sampler = PrioritisedSampler(4, Prioritisation(alpha=1.0, epsilon=1e-9))
    sampler.add(np.arange(4))
    sampler.update(np.arange(4), np.array([1.0, 2.0, 3.0, 4.0]))
    slots, _ = sampler.draw(np.random.default_rng(0).random(10_000), step=0)
    # Stratified: only the strata that hold a border can go either way.
    assert np.bincount(slots, minlength=4) == pytest.approx([1000, 2000, 3000, 4000], abs=1)


def test_b49_a_new_row_gets_the_largest_reported_priority_not_an_invented_one() -> None:
    sampler = PrioritisedSampler(3, Prioritisation(alpha=1.0, epsilon=2**-20))
    sampler.add(np.array([0]))
    assert sampler.masses().tolist() == [1.0 + 2**-20, 0.0, 0.0]
    sampler.update(np.array([0]), np.array([2**-10]))
    sampler.add(np.array([1]))
    assert sampler.masses()[1] == 2**-10 + 2**-20


def test_a_sampler_without_updates_draws_uniformly() -> None:
    sampler = PrioritisedSampler(8, Prioritisation())
    sampler.add(np.arange(5))
    slots, weights = sampler.draw(np.full(5, 0.5), step=0)
    assert (slots.tolist(), weights.tolist()) == ([0, 1, 2, 3, 4], [1.0] * 5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"alpha": 1.5}, "alpha must be in"),
        ({"beta": -0.1}, "beta must be in"),
        ({"epsilon": 0.0}, "epsilon must be positive, got 0.0"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Prioritisation(**settings)
