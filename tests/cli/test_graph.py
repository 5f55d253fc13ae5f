"""`pipeflow graph` prints the plan of the configuration that the flags give, and starts nothing."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from pipeflow.algorithms.catalogue import CATALOGUE, entry_of
from pipeflow.algorithms.ppo import PPOConfig, ppo
from pipeflow.cli import main
from pipeflow.dsl.trees import walk
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.rollouts import RolloutWorker


def drawn(printed: str) -> str:
    """Without the lines of the files, which move."""
    return re.sub(r" +\w+\.py:\d+$", "", printed, flags=re.MULTILINE)


def test_a_chain_runs_from_its_source_to_its_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "ppo"]) == 0
    assert drawn(capsys.readouterr().out) == textwrap.dedent(
        """\
        ●  RolloutWorker.produce(RolloutWorker.sample)  RolloutWorker × 2
        ║    Trajectories
        ●  gae                                          RolloutWorker × 2
        ║    Advantages
        ●  gather_rounds()                              driver
        │    list[Advantages]
        ●  Advantages.concatenate                       PPOLearner × 1
        │    Advantages
        ●  PPOLearner.stage(PPOLearner.update)          PPOLearner × 1
        │    Report
        ●  sync_weights(PPOLearner, RolloutWorker)      driver
        │    Report
        """
    )


def test_a_fork_and_a_union_are_lanes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "two-trainers"]) == 0
    assert drawn(capsys.readouterr().out) == textwrap.dedent(
        """\
        ●      MultiAgentWorker.produce(MultiAgentWorker.sample)                    MultiAgentWorker × 2
        ║        MultiAgentTrajectories
        ●      gather_rounds()                                                      driver
        │        list[MultiAgentTrajectories]
        ●      MultiAgentTrajectories.concatenate                                   driver
        │        MultiAgentTrajectories
        ●      fork(2)                                                              driver
        ├─╮      MultiAgentTrajectories
        ● │    fork(2)[0]                                                           driver
        │ │      MultiAgentTrajectories
        ● │    select('ppo')                                                        PPOLearner × 1
        │ │      Trajectories
        ● │    gae                                                                  PPOLearner × 1
        │ │      Advantages
        ● │    PPOLearner.stage(PPOLearner.update)                                  PPOLearner × 1
        │ │      Report
        ● │    sync_policy_weights('ppo', PPOLearner, MultiAgentWorker)             driver
        │ │      Report
        │ ●    fork(2)[1]                                                           driver
        │ │      MultiAgentTrajectories
        │ ●    select('dqn')                                                        ReplayBuffer × 1
        │ │      Trajectories
        │ ●    n_step                                                               ReplayBuffer × 1
        │ │      Transitions
        │ ●    ReplayBuffer.stage(ReplayBuffer.add)                                 ReplayBuffer × 1
        │ │      Stored
        │ ●    drain                                                                driver
        │ ┊      nothing
        │ ┊ ●  ReplayBuffer.produce(ReplayBuffer.sample)                            ReplayBuffer × 1
        │ ┊ ║    Samples
        │ ┊ ●  gather_sync()                                                        driver
        │ ┊ │    Samples
        │ ┊ ●  DQNLearner.stage(DQNLearner.update)                                  DQNLearner × 1
        │ ┊ │    TDReport
        │ ┊ ●  sync_policy_weights('dqn', DQNLearner, MultiAgentWorker, every=128)  driver
        │ ┊ │    TDReport
        ├─┴─╯
        ●      round_robin                                                          driver
        │        Report | TDReport
        """
    )


@pytest.mark.parametrize("name", [entry.name for entry in CATALOGUE])
def test_every_algorithm_is_drawn_with_a_line_and_a_type_for_each_stage(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["graph", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    algorithm = entry_of(name).load()
    stages = list(walk(algorithm.plan(algorithm.configuration()).node))
    assert sum("●" in line for line in lines) == len(stages)
    assert not [line for line in lines if line.endswith("?")]
    assert max(map(len, lines)) < 120


def test_mermaid_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "ppo", "--mermaid", "--env", "Acrobot-v1"]) == 0
    assert capsys.readouterr().out == ppo(PPOConfig(env=EnvSpec("Acrobot-v1"))).to_mermaid()


def test_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*args: object, **kwargs: object) -> None:
        raise AssertionError("a worker was made")

    monkeypatch.setattr(RolloutWorker, "__init__", started)
    assert main(["graph", "ppo"]) == 0


def test_a_plan_of_the_users_by_its_module_or_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "tests.cli.simulated:on_policy"]) == 0
    by_module = capsys.readouterr().out
    assert by_module.startswith("●  ")
    assert main(["graph", str(Path(__file__).with_name("simulated.py")) + ":on_policy"]) == 0
    assert capsys.readouterr().out == by_module


def test_all_plans_of_a_module_are_under_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "tests.cli.simulated"]) == 0
    printed = capsys.readouterr().out
    assert "\n\nasynchronous\n●  " in printed
    assert main(["graph", "tests.cli.simulated", "--mermaid"]) == 0
    assert "%% asynchronous\nflowchart TD\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["simulated"], "there is no algorithm 'simulated'; "),
        (["simulated"], "; name a plan of yours as MODULE:NAME"),
        (["no.module:plan"], "cannot find no.module"),
        (["tests.cli.simulated:missing"], "the module has nothing of the name missing"),
        (["tests.cli.planted:used_twice"], ") is used twice, by abs"),
        (["tests.cli.simulated:on_policy", "--nonsense"], "--nonsense"),
    ],
)
def test_what_names_no_plan_is_told(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["graph", *words]) == 2
    assert problem in capsys.readouterr().err
