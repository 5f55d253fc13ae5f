"""A training by the command is the plan's own run, recorded whole, on every engine."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeflow import group_of, take
from pipeflow.algorithms.ppo import PPOConfig, policy_of, ppo
from pipeflow.cli import main
from pipeflow.cli.configuration import from_json
from pipeflow.lowering.checkpoint import Checkpoint
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.learners.learner import Learner
from pipeflow.state.folders import checkpoints_in
from tests.cli.small import CONFIG, FLAGS, STEPS_PER_UPDATE, TIME_COLUMNS, rows_of

FOUR_UPDATES = ("--steps", str(3 * STEPS_PER_UPDATE + 1), "--seed", "3")


def train(*words: str, logdir: str = "run") -> int:
    return main(["train", "ppo", *FLAGS, "--logdir", logdir, *words])


def test_its_folder_has_everything_and_the_numbers_are_the_reports(
    engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(*FOUR_UPDATES, "--engine", engine) == 0
    printed = capsys.readouterr().out

    run = Path("run")
    names = {path.name.partition(".tfevents")[0] for path in run.iterdir()}
    assert names == {
        "checkpoints",
        "config.json",
        "dashboard.jsonl",
        "events.out",
        "plan.mmd",
        "plan.txt",
        "progress.csv",
    }

    config = replace(CONFIG, seed=3)
    reports = list((ppo(config) | take(4)).run())
    rows = rows_of(run)
    assert len(rows) == len(reports) == 4
    returns: list[float] = []
    for row, report in zip(rows, reports, strict=True):
        returns += report.episodes.returns.tolist()
        assert int(row["steps"]) == report.lifetime_steps
        assert int(row["updates"]) == report.version
        assert int(row["episodes"]) == len(returns)
        assert float(row["episode_return"] or "nan") == pytest.approx(
            report.episodes.mean_return, nan_ok=True
        )
        assert float(row["recent_return"] or "nan") == pytest.approx(
            np.mean(returns[-100:]) if returns else math.nan, nan_ok=True
        )
        assert {name: float(row[name]) for name in report.metrics} == dict(report.metrics)

    (checkpoint,) = checkpoints_in(run / "checkpoints")
    assert f"checkpoint  {checkpoint}" in printed
    assert Checkpoint.load(checkpoint).actor_state("PPOLearner[0]")["version"] == 4
    assert f"finished after {reports[-1].lifetime_steps:,} steps" in printed
    assert "curves      run/progress.csv; tensorboard --logdir run" in printed
    assert "picture     run/plan.mmd" in printed


def test_the_checkpoint_has_the_weights_that_the_plan_trained() -> None:
    assert train(*FOUR_UPDATES) == 0
    config = replace(CONFIG, seed=3)
    plan = ppo(config) | take(4)
    with plan.run() as run:
        list(run)
        (expected,) = run.ask(group_of(plan, Learner), Learner.state)
    (checkpoint,) = checkpoints_in(Path("run/checkpoints"))
    found = Checkpoint.load(checkpoint).actor_state("PPOLearner[0]")
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
    policy_of(config).build(seed=9).load_numpy(
        {
            name.removeprefix("parameters/"): np.asarray(value)
            for name, value in found.items()
            if name.startswith("parameters/")
        }
    )


def test_what_was_run_can_be_read_off_its_folder(capsys: pytest.CaptureFixture[str]) -> None:
    environment = ("--env", "tests.cli.environments:Misbehaving-v0", "--env-kwargs", "fault=none")
    assert train("--steps", "1", "--normalise-observations", *environment) == 0
    written = json.loads(Path("run/config.json").read_text())
    assert written["algorithm"] == "ppo"
    assert from_json(PPOConfig, written["config"]) == replace(
        CONFIG,
        env=EnvSpec("tests.cli.environments:Misbehaving-v0", {"fault": "none"}),
        normalise_observations=True,
    )
    assert written["run"]["steps"] == 1
    assert written["run"]["engine"] == "inline"
    assert {"python", "torch", "numpy", "gymnasium"} <= written["versions"].keys()

    capsys.readouterr()
    assert main(["graph", "ppo", "--mermaid"]) == 0
    assert Path("run/plan.mmd").read_text() == capsys.readouterr().out
    assert main(["graph", "ppo"]) == 0
    assert Path("run/plan.txt").read_text() == capsys.readouterr().out


def test_the_same_seed_gives_the_same_curves_but_for_the_time() -> None:
    for logdir, seed in (("one", "3"), ("two", "3"), ("other", "4")):
        assert train("--steps", "300", "--seed", seed, "--quiet", logdir=logdir) == 0
    one, two, other = (
        [
            {name: value for name, value in row.items() if name not in TIME_COLUMNS}
            for row in rows_of(Path(run))
        ]
        for run in ("one", "two", "other")
    )
    assert one == two
    assert one != other


def test_the_output_is_plain_lines_where_it_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--steps", "200") == 0
    title, *reports, result, checkpoint, curves, picture, page = capsys.readouterr().out.splitlines()
    assert title == "training ppo on CartPole-v1, engine inline, folder run"
    assert len(reports) == len(rows_of(Path("run"))) == 2
    assert all(line.startswith("steps ") and "policy_loss" in line and "\x1b" not in line for line in reports)
    assert result.startswith("finished after")
    assert [line.split()[0] for line in (checkpoint, curves, picture)] == ["checkpoint", "curves", "picture"]
    assert page == "page        pipeflow show run"


def test_quiet_prints_the_result_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--steps", "1", "--quiet") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "finished",
        "checkpoint",
        "curves",
        "picture",
        "page",
    ]


def test_without_a_folder_it_makes_one_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "ppo", *FLAGS, "--steps", "1"]) == 0
    (run,) = Path("runs").iterdir()
    assert run.name.startswith("ppo-CartPole-v1-")
    assert (run / "progress.csv").exists()


def test_a_run_is_never_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--steps", "1") == 0
    before = Path("run/progress.csv").read_bytes()
    assert train("--steps", "1") == 2
    assert Path("run/progress.csv").read_bytes() == before


def test_a_goal_that_is_reached_ends_the_run(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--until-return", "8", "--engine", engine) == 0
    result = capsys.readouterr().out.splitlines()[-5]
    row = rows_of(Path("run"))[-1]
    assert float(row["evaluation_return"]) >= 8
    mean = float(row["evaluation_return"])
    assert result.startswith(
        f"solved: mean return {mean:.1f} over 20 greedy episodes after {int(row['steps']):,} steps"
    )
    assert result.endswith(" seconds")
    assert int(row["steps"]) < 10_000


def test_a_goal_that_is_not_reached_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--until-return", "501", "--steps", "200") == 1
    result = capsys.readouterr().out.splitlines()[-5]
    mean = float(rows_of(Path("run"))[-1]["evaluation_return"])
    assert result.startswith(f"not solved: mean return {mean:.1f} over 20 greedy episodes")
    assert "below 501" in result
    assert result.endswith("give more --steps")
    assert len(checkpoints_in(Path("run/checkpoints"))) == 1


def test_checkpoints_are_written_on_the_way_and_the_newest_stay() -> None:
    assert train("--steps", "600", "--checkpoint-minutes", "1e-9") == 0
    steps = [int(row["steps"]) for row in rows_of(Path("run"))]
    assert [int(path.name) for path in checkpoints_in(Path("run/checkpoints"))] == steps[-3:]


def test_torch_has_the_threads_that_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    counts: set[int] = set()
    monkeypatch.setattr(torch, "set_num_threads", counts.add)
    assert train("--steps", "1") == 0
    assert counts == {1, 7}, "one while an actor computes, then as many as before"
    assert train("--steps", "1", "--threads", "2", logdir="other") == 0
    assert counts == {1, 2, 7}
