"""`pipeflow graph` prints the plan of the configuration that the flags give, and starts nothing."""

from __future__ import annotations

import pytest

from pipeflow.algorithms.ppo import PPOConfig, ppo
from pipeflow.cli import main
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.rollouts import RolloutWorker


def test_text_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "ppo"]) == 0
    assert capsys.readouterr().out == ppo(PPOConfig()).explain() + "\n"


def test_mermaid_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "ppo", "--mermaid", "--env", "Acrobot-v1"]) == 0
    assert capsys.readouterr().out == ppo(PPOConfig(env=EnvSpec("Acrobot-v1"))).to_mermaid()


def test_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*args: object, **kwargs: object) -> None:
        raise AssertionError("a worker was made")

    monkeypatch.setattr(RolloutWorker, "__init__", started)
    assert main(["graph", "ppo"]) == 0
