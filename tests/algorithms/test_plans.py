"""What holds of every algorithm's plan: laws, engines, resuming, drawing; it is typed as a stream of reports."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipeflow import take
from pipeflow.algorithms.catalogue import CATALOGUE, entry_of
from pipeflow.cli.learners import Learners
from pipeflow.lowering.engines.sim import Sim
from pipeflow.testing import check_laws
from tests.algorithms.compared import assert_identical
from tests.algorithms.small import SMALL, small_plan

ROOT = Path(__file__).resolve().parents[2]
# Which items these deliver does not depend on what is ready when.
SYNCHRONOUS = ("a2c", "ppo", "ddppo", "dqn", "maml", "two-trainers")

each_name = pytest.mark.parametrize("name", [entry.name for entry in CATALOGUE])
each_synchronous = pytest.mark.parametrize("name", SYNCHRONOUS)


@each_name
def test_it_keeps_every_law_under_simulated_schedules(name: str) -> None:
    check_laws(small_plan(name), schedules=3, items=3)


@each_name
def test_reports_say_how_far_the_run_is(name: str) -> None:
    reports = list((small_plan(name) | take(6)).run())
    assert len(reports) == 6
    for kind in {type(report) for report in reports}:
        # The two trainers count for themselves.
        versions = [report.version for report in reports if type(report) is kind]
        steps = [report.lifetime_steps for report in reports if type(report) is kind]
        assert versions == sorted(set(versions)), kind
        assert steps == sorted(steps), kind
        assert steps[-1] > 0, kind


@each_synchronous
def test_law_23_the_simulation_gives_the_reports_of_a_run_in_one_process(name: str) -> None:
    plan = small_plan(name) | take(4)
    assert_identical(list(plan.run()), list(plan.run(Sim(seed=7))))


@each_name
def test_law_22_a_resumed_run_gives_the_reports_of_the_unbroken_one(name: str) -> None:
    plan = small_plan(name) | take(5)
    with plan.run() as run:
        first = [next(run), next(run)]
        checkpoint = run.checkpoint()
        rest = list(run)
    assert len(first) + len(rest) == 5
    assert_identical(list(plan.run(resume=checkpoint)), rest)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_runtime")
@each_name
def test_the_same_plan_runs_on_ray(name: str) -> None:
    plan = small_plan(name) | take(3)
    reports = list(plan.run("ray"))
    assert len(reports) == 3
    if name in SYNCHRONOUS:
        assert_identical(reports, list(plan.run()))


@each_name
def test_it_can_be_drawn_and_every_stage_says_where_it_was_written(name: str) -> None:
    plan = small_plan(name)
    text = plan.explain().splitlines()
    assert all("pipeflow/algorithms/" in line or "pipeflow/rl/" in line for line in text), text
    assert plan.to_mermaid().startswith("flowchart TD\n")


@each_name
def test_its_weights_can_be_played_and_its_learners_saved_and_loaded(name: str) -> None:
    algorithm, plan = entry_of(name).load(), small_plan(name)
    learners = Learners(plan)
    with plan.run() as run:
        next(run)
        weights, checkpoint = learners.weights(run), run.checkpoint()
    for one, loaded in zip(weights, Learners(small_plan(name)).loaded(checkpoint), strict=True):
        assert one.version == loaded.version
        for key, array in one.parameters.items():
            np.testing.assert_array_equal(array, loaded.parameters[key])
    played = algorithm.play(SMALL[name], weights, 2, 0)
    assert played.count >= 2
    assert np.isfinite(played.mean_return)


def test_every_plan_is_a_stream_of_reports_to_the_type_checker(tmp_path: Path) -> None:
    lines = ["from pipeflow import Stream", "from pipeflow.rl.batches import Report"]
    for entry in CATALOGUE:
        algorithm = entry.load()
        module, plan, config = (
            algorithm.plan.__module__,
            algorithm.plan.__name__,
            algorithm.configuration.__name__,
        )
        lines += [
            f"from {module} import {plan}, {config}",
            f"{plan}_made: Stream[Report] = {plan}({config}())",
        ]
    program = tmp_path / "plans.py"
    program.write_text("\n".join(lines) + "\n")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(program)], cwd=ROOT, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout


def test_no_algorithm_casts_ignores_or_gives_up_types() -> None:
    for path in sorted((ROOT / "pipeflow" / "algorithms").glob("*.py")):
        if path.name in ("catalogue.py", "__init__.py"):
            continue
        text = path.read_text()
        found = re.findall(r"\bcast\(|type: ignore|\bAny\b", text)
        assert not found, f"{path.name} has {found}"
