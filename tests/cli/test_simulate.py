"""`pipeflow simulate` finds the schedule under which a plan goes wrong, and says how to replay it."""

from __future__ import annotations

import re

import pytest

from pipeflow.cli import main
from pipeflow.testing import Schedule, policy_lag_at_most, simulate
from tests.cli.simulated import asynchronous, sent_before_the_barrier

HERE = "tests.cli.simulated"


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int) -> str:
    assert main(["simulate", *words]) == code
    captured = capsys.readouterr()
    return captured.err if code == 2 else captured.out


def test_a_plan_that_is_right_keeps_every_law(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, f"{HERE}:on_policy", "--schedules", "30", "--max-lag", "0", code=0)
    assert out == f"{HERE}:on_policy: every law holds under 30 schedules, seeds 0 to 29\n"


def test_a_plan_may_be_a_stream(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, f"{HERE}:ITEMS", "--schedules", "2", "--seed", "5", "--law", "1", "10", code=0)
    assert out == f"{HERE}:ITEMS: laws 1, 10 hold under 2 schedules, seeds 5 to 6\n"


def test_weights_that_are_sent_before_the_barrier_are_caught(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, f"{HERE}:sent_before_the_barrier", "--max-lag", "0", code=1)
    assert "the policy lag is 1 where at most 0 is allowed" in out
    found = re.search(r"plan\.run\(Sim\(seed=(\d+)\), record=True\)", out)
    assert found is not None
    replayed = simulate(sent_before_the_barrier(), Schedule(int(found[1])))
    assert policy_lag_at_most(0)(replayed.trace) is not None


def test_the_seed_that_is_told_replays_the_violation_and_its_neighbours_may_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [f"{HERE}:asynchronous", "--max-lag", "2"]
    out = said(capsys, *words, "--schedules", "300", code=1)
    command = out.splitlines()[-1].split()
    assert command[:3] == ["pipeflow", "simulate", words[0]]
    assert command[3:7] == ["--max-lag", "2", "--schedules", "1"]
    assert said(capsys, *command[2:], code=1) == out
    seed = int(command[-1])
    assert seed > 0, "every schedule breaks it, so the search shows nothing"
    assert all(
        policy_lag_at_most(2)(simulate(asynchronous(), Schedule(other)).trace) is None
        for other in range(seed)
    )


def test_invariants_of_the_users_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, f"{HERE}:ITEMS", "--invariant", f"{HERE}:asks_little", code=0)
    assert "every law holds" in out
    out = said(capsys, f"{HERE}:on_policy", "--invariant", f"{HERE}:asks_little", code=1)
    assert f"invariant {HERE}:asks_little: " in out


def test_an_error_in_a_stage_is_told_with_its_schedule(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, f"{HERE}:failing", code=1)
    assert "StageError" in out
    assert "3 ends with a three" in out
    assert "Sim(seed=0)" in out


@pytest.mark.parametrize(("plan", "ended"), [("on_policy", "40"), ("restarting", "none")])
def test_with_crashes_is_told_in_how_many_runs_actors_died_and_what_came_of_it(
    capsys: pytest.CaptureFixture[str], plan: str, ended: str
) -> None:
    out = said(capsys, f"{HERE}:{plan}", "--schedules", "40", "--crashes", "1", code=0)
    assert out == (
        f"{HERE}:{plan}: every law holds under 40 schedules, seeds 0 to 39; actors died in 40 of them, "
        f"and {ended} ended with ActorDiedError\n"
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "simulate needs a plan first"),
        (["--seed", "3"], "simulate needs a plan first"),
        (["on_policy"], "is not of the form MODULE:PLAN"),
        (["no_such_module:plan"], "there is no module no_such_module; give its dotted name"),
        ([f"{HERE}:missing"], "the module has nothing of the name missing"),
        ([f"{HERE}:HERE.deep"], "has nothing of the name HERE.deep"),
        ([f"{HERE}:with_argument"], "takes count; name a function without arguments"),
        ([f"{HERE}:__name__"], "is of type str; name a stream"),
        ([f"{HERE}:ITEMS", "--law", "99"], "there is no law 99; the laws are numbered from 1 to 26"),
        ([f"{HERE}:ITEMS", "--schedules", "0"], "--schedules must be at least 1, got 0"),
        ([f"{HERE}:ITEMS", "--invariant", f"{HERE}:ITEMS"], "is no function"),
        ([f"{HERE}:ITEMS", "--invariant", f"{HERE}:answers_yes"], "answers_yes returned True; an invariant"),
        ([f"{HERE}:ITEMS", "--nonsense"], "--nonsense"),
    ],
)
def test_what_cannot_be_done_is_told(
    capsys: pytest.CaptureFixture[str], words: list[str], problem: str
) -> None:
    assert problem in said(capsys, *words, code=2)


def test_help_lists_the_flags(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "--help", code=0)
    assert "--schedules" in out
    assert "--crashes" in out
