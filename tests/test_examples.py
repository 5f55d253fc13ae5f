"""Every example runs as its first lines say, with a budget that shows that it works."""

from __future__ import annotations

import math
import re
import runpy
import subprocess
import sys
from collections import Counter
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from examples.own_operator import LENGTH, CountBonus
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.rollouts import RolloutWorker

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


class Example:
    """Runs examples in this process, which spares each of them the start of an interpreter."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def run(self, name: str, *arguments: str) -> list[str]:
        """The lines that `python examples/NAME.py ARGUMENTS` prints."""
        path = EXAMPLES / f"{name}.py"
        self._monkeypatch.setattr(sys, "argv", [str(path), *arguments])
        runpy.run_path(str(path), run_name="__main__")
        return self._capsys.readouterr().out.splitlines()


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Example:
    return Example(monkeypatch, capsys)


def numbers(lines: list[str], before: str) -> list[float]:
    """The numbers that stand behind a text, but for nan, line by line."""
    found = [re.search(rf"{before}\s+(-?[\d.]+|nan)", line) for line in lines]
    values = [float(match[1]) for match in found if match]
    return [value for value in values if not math.isnan(value)]


def test_every_example_is_tested_here_and_shorter_than_sixty_lines() -> None:
    tests = Path(__file__).read_text()
    for name in NAMES:
        assert f'run("{name}"' in tests
        assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 60, name


@pytest.mark.parametrize("name", NAMES)
def test_no_example_hides_a_package_from_a_program_in_its_folder(name: str) -> None:
    elsewhere = [
        entry for entry in sys.path if Path(entry).resolve() != EXAMPLES
    ]  # other tests import examples
    assert PathFinder.find_spec(name, elsewhere) is None


def test_the_index_has_every_example_with_the_command_that_it_gives() -> None:
    index = (EXAMPLES.parent / "docs" / "examples.md").read_text().replace("\\|", "|")
    for name in NAMES:
        command = next(
            line for line in (EXAMPLES / f"{name}.py").read_text().splitlines() if line.startswith("python ")
        )
        assert f"`{command.partition('    ')[0]}`" in index


def test_an_example_is_a_program() -> None:
    command = [sys.executable, str(EXAMPLES / "first_plan.py")]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=EXAMPLES.parent)
    assert finished.stdout.splitlines()[-1].startswith("{'the': 5"), finished.stderr


def test_first_plan_counts_every_word(example: Example, engine: str) -> None:
    assert example.run("first_plan", engine)[-1] in (
        "{'the': 5, 'plan': 3, 'runs': 2}",
        "{'the': 5, 'runs': 2, 'plan': 3}",
    )


def test_train_ppo_reports_and_evaluates(example: Example) -> None:
    lines = example.run("train_ppo", "4000")
    assert [line.split()[0] for line in lines[:-1]] == ["1970", "3972", "5984"] or len(lines) == 4
    assert lines[-1].startswith("greedy: ")


def test_custom_environment_is_learnt(example: Example) -> None:
    last = numbers(example.run("custom_environment", "10"), "mean return")[-1]
    assert last >= 0.6  # the shortest way pays 1 - 7 x 0.05


def test_custom_loss_makes_the_policy_symmetric_and_leaves_it_learning(example: Example) -> None:
    with_loss, without = (example.run("custom_loss", "8", weight) for weight in ("10", "0"))
    assert numbers(with_loss, "mean return")[-1] >= 3 * numbers(with_loss, "mean return")[0]
    assert sum(numbers(with_loss, "asymmetry")) <= 0.1 * sum(numbers(without, "asymmetry"))


def test_own_algorithm_improves(example: Example) -> None:
    returns = numbers(example.run("own_algorithm", "40"), "mean return")
    assert sum(returns[-5:]) / 5 >= 3 * returns[0], returns


def test_own_operator_finds_the_end(example: Example) -> None:
    assert numbers(example.run("own_operator", "50000"), "reached the end:")[-1] >= 50


def test_own_operator_adds_less_the_more_often_a_state_was_seen() -> None:
    env = EnvSpec("FrozenLake-v1", {"desc": ["S" + "F" * (LENGTH - 2) + "G"]})
    item = RolloutWorker(env, PolicySpec.for_env(env), num_envs=1, index=0).sample()
    bonus = CountBonus(scale=0.5)
    (first,), (second,) = bonus.push(item), bonus.push(item)
    reached = item.next_observations().argmax(axis=-1).ravel().tolist()
    visits = Counter(reached)
    expected = [0.5 / math.sqrt(visits[state]) for state in reached]
    assert (first.rewards - item.rewards).ravel().tolist() == pytest.approx(expected)
    halved = [value / math.sqrt(2) for value in expected]
    assert (second.rewards - item.rewards).ravel().tolist() == pytest.approx(halved)


@pytest.mark.slow
def test_own_operator_finds_what_stays_hidden_without_it(example: Example) -> None:
    with_bonus, without = (example.run("own_operator", "80000", scale) for scale in ("0.1", "0"))
    assert numbers(with_bonus, "reached the end:")[-1] >= 95
    assert set(numbers(without, "reached the end:")) == {0.0}


@pytest.mark.slow
def test_two_algorithms_interleaved_by_one_line_both_improve(example: Example) -> None:
    lines = example.run("interleaved", "16000")
    for trainer in ("dqn", "ppo"):
        returns = [float(line.split()[-1]) for line in lines if line.startswith(trainer)]
        assert returns[-1] >= 2 * returns[0], lines


def test_multi_agent_improves(example: Example) -> None:
    returns = numbers(example.run("multi_agent", "12000"), "mean return")
    assert sum(returns[-3:]) / 3 >= returns[0] + 2.5, returns


def test_evaluation_plays_with_every_fifth_weights(example: Example) -> None:
    lines = example.run("evaluation", "11000")
    assert numbers(lines, "after") == [0.0, 5.0]
    before, after = numbers(lines, "greedy return")
    assert after >= 5 * before
    assert len([line for line in lines if "steps:" in line]) == 6


@pytest.mark.ray
@pytest.mark.slow
def test_evaluation_goes_on_beside_training_on_ray(example: Example, ray_runtime: None) -> None:
    lines = example.run("evaluation", "60000", "ray")
    versions, returns = numbers(lines, "after"), numbers(lines, "greedy return")
    assert versions == sorted(versions)
    assert all(version % 5 == 0 for version in versions)
    assert returns[-1] >= 5 * returns[0]


@pytest.mark.ray
@pytest.mark.slow
def test_sweep_trains_what_it_draws_and_names_the_best(
    example: Example, ray_runtime: None, tmp_path: Path
) -> None:
    pytest.importorskip("ray.tune")
    *trials, best = [line for line in example.run("sweep", "3", str(tmp_path)) if " returned " in line]
    returns = {trial: float(trial.split()[-1]) for trial in trials}
    assert len(returns) == 3
    assert best == max(returns, key=returns.__getitem__)


@pytest.mark.ray
@pytest.mark.slow
def test_atari_plays_games_to_their_end(example: Example, ray_runtime: None) -> None:
    pytest.importorskip("envpool", reason="EnvPool is not installed: pip install 'pipeflow[envpool]'")
    returns = numbers(example.run("atari", "20000", "ray"), "mean return")
    assert returns
    assert all(-21.0 <= value <= 21.0 for value in returns), returns


def test_mujoco_improves_with_observations_that_are_normalised(example: Example) -> None:
    lines = example.run("train_mujoco", "10000")
    returns = numbers(lines, "mean return")
    assert returns[-1] >= 1.3 * returns[0], returns
    assert numbers(lines, "greedy:")[0] >= 1.5 * returns[0]


@pytest.mark.ray
@pytest.mark.slow
def test_the_plan_for_a_cluster_trains_on_the_one_of_an_address(example: Example, ray_runtime: None) -> None:
    import ray

    lines = example.run("train_on_cluster", "5000", ray.get_runtime_context().gcs_address)
    returns = numbers(lines, "mean return")
    assert len(returns) == 3
    assert returns[-1] >= 1.3 * returns[0], returns
