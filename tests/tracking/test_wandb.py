"""W&B, offline, and what it wrote read back from its file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pipeflow import StageError, from_items
from pipeflow.rl.batches import Report
from pipeflow.tracking import TrackingError, WandB, report_to
from tests.tracking.offline import OfflineRun, offline_runs
from tests.tracking.reports import RECORD, report

wandb = pytest.importorskip("wandb", reason="wandb is not installed: pip install 'pipeflow[wandb]'")


@pytest.fixture(autouse=True)
def _offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    yield
    wandb.teardown()


def written(folder: Path) -> list[OfflineRun]:
    """What is in the files once W&B's own process has ended: it writes on for a moment after a run is finished."""
    wandb.teardown()
    return offline_runs(folder)


def test_reports_are_in_the_run_with_their_steps_and_the_configuration(tmp_path: Path) -> None:
    tracker = WandB("walking", "first", {"lr": 0.5, "env": {"name": "Walker"}})
    list((from_items([report(1, 2.0, loss=0.5), report(2, loss=0.25)]) | report_to(tracker)).run())
    (run,) = written(tmp_path)
    assert (run.project, run.name, run.exit_code) == ("walking", "first", 0)
    assert run.config == {"lr": 0.5, "env": {"name": "Walker"}}
    assert run.axes == {"steps": "", "*": "steps"}
    first, second = run.history
    assert first.pop("time/steps_per_second") > 0
    assert first == {
        "steps": 100,
        "episodes/return": 2.0,
        "episodes/length": 7.0,
        "episodes/recent_return": 2.0,
        "learner/loss": 0.5,
    }
    assert (second["steps"], second["learner/loss"]) == (200, 0.25)
    assert "episodes/return" not in second


@pytest.mark.slow
def test_a_run_that_an_error_ends_has_failed(tmp_path: Path) -> None:
    def failing(item: Report) -> Report:
        if item.version == 2:
            raise ArithmeticError
        return item

    with pytest.raises(StageError):
        list((from_items([report(1), report(2)]) | failing | report_to(WandB())).run())
    (run,) = written(tmp_path)
    assert (len(run.history), run.exit_code) == (1, 1)


@pytest.mark.slow
def test_a_run_that_is_gone_on_with_keeps_its_id(tmp_path: Path) -> None:
    first = WandB().open()
    first.close()
    second = WandB().open(100, first.run_id)
    second.record(replace(RECORD, report=report(2)))
    second.close()
    assert [run.run_id for run in written(tmp_path)] == [first.run_id, first.run_id]


@pytest.mark.slow
def test_a_run_of_the_callers_own_is_left_alone() -> None:
    own = wandb.init()
    WandB().open().close()
    assert wandb.run is own
    own.log({"still": "open"})
    own.finish()


@pytest.mark.slow
def test_a_refusal_is_one_line_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_MODE")
    monkeypatch.setenv("WANDB_API_KEY", "no key")
    with pytest.raises(TrackingError) as raised:
        WandB().open()
    assert str(raised.value).startswith("W&B cannot start a run: ")
    assert str(raised.value).endswith("; log in, or set WANDB_MODE=offline")
    assert "\n" not in str(raised.value)
