"""Every algorithm learns what `benchmarks.learning_cases` states: threshold, budget, source and seeds are there.

The fast ones of one seed run with every change, all of them in the slow suite.
"""

from __future__ import annotations

import pytest

from benchmarks.bench_learning import train
from benchmarks.learning_cases import CASES, SEEDS, Case
from pipeflow.algorithms.catalogue import CATALOGUE, entry_of
from pipeflow.cli.configuration import to_json
from pipeflow.cli.flags import parse_with_configuration
from pipeflow.cli.training import TrainOptions

# Each takes some ten seconds on one core.
FAST = ("a2c", "a3c", "ddppo", "impala", "appo")


def case_of(algorithm: str) -> Case:
    """The case of an algorithm in one process."""
    return next(case for case in CASES if case.algorithm == algorithm and case.engine == "inline")


def reaches(case: Case, seed: int) -> None:
    outcome = train(case, seed)
    assert outcome.evaluation >= case.threshold, outcome
    # Training is rounded up to whole updates.
    assert outcome.trained <= 1.1 * case.steps


@pytest.mark.parametrize("algorithm", FAST)
def test_it_learns_in_one_process(algorithm: str) -> None:
    reaches(case_of(algorithm), seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.engine == "inline"], ids=lambda case: case.name
)
def test_it_learns_with_every_seed(case: Case, seed: int) -> None:
    reaches(case, seed)


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.usefixtures("ray_runtime")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", [case for case in CASES if case.engine == "ray"], ids=lambda case: case.name)
def test_it_learns_with_every_seed_on_ray(case: Case, seed: int) -> None:
    reaches(case, seed)


def test_every_algorithm_has_a_case_on_both_engines() -> None:
    found = {(case.algorithm, case.engine) for case in CASES}
    assert found == {(entry.name, engine) for entry in CATALOGUE for engine in ("inline", "ray")}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_command_of_a_case_trains_what_the_case_says(case: Case) -> None:
    words = case.command(2).split()
    assert words[:3] == ["pipeflow", "train", case.algorithm]
    options, config = parse_with_configuration(
        TrainOptions, entry_of(case.algorithm).load().configuration, words[3:], "pipeflow", "Train."
    )
    assert (options.engine, options.steps) == (case.engine, case.steps)
    assert options.until_return == (case.threshold if case.stop else None)
    assert to_json(config) == to_json(case.config) | {"seed": 2}
