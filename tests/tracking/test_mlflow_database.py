"""MLflow with a database in a file, read back through its client."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeflow import StageError, from_items
from pipeflow.rl.batches import Report
from pipeflow.tracking import MLflow, TrackingError, report_to
from tests.tracking.reports import RECORD, report

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

pytest.importorskip("mlflow", reason="mlflow is not installed: pip install 'pipeflow[mlflow]'")
pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed: pip install 'pipeflow[mlflow]'")

pytestmark = [
    pytest.mark.slow,  # MLflow takes seconds to make its tables
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated"),
]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One for all tests: to make its tables takes longer than all of them."""
    return f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'mlflow.db'}"


@pytest.fixture(autouse=True)
def _in_the_database(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", database)


def client() -> MlflowClient:
    from mlflow import MlflowClient

    return MlflowClient()


def runs(experiment: str) -> list[Run]:
    found = client().get_experiment_by_name(experiment)
    assert found is not None
    return list(client().search_runs([found.experiment_id], order_by=["start_time"]))


def test_reports_are_in_the_run_with_their_steps_and_the_configuration() -> None:
    tracker = MLflow("walking", "first", {"lr": 0.5, "env": {"name": "Walker"}})
    list((from_items([report(1, 2.0, loss=0.5), report(2, loss=0.25)]) | report_to(tracker)).run())
    (run,) = runs("walking")
    assert (run.info.run_name, run.info.status) == ("first", "FINISHED")
    assert run.data.params == {"lr": "0.5", "env.name": "Walker"}
    losses = client().get_metric_history(run.info.run_id, "learner/loss")
    assert [(point.step, point.value) for point in losses] == [(100, 0.5), (200, 0.25)]
    (returned,) = client().get_metric_history(run.info.run_id, "episodes/return")
    assert (returned.step, returned.value) == (100, 2.0)


def test_the_experiment_may_be_named_by_mlflows_own_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "of the variable")
    MLflow().open().close()
    MLflow().open().close()
    assert len(runs("of the variable")) == 2


def test_a_run_that_an_error_ends_has_failed() -> None:
    def failing(item: Report) -> Report:
        raise ArithmeticError

    with pytest.raises(StageError):
        list((from_items([report(1)]) | report_to(MLflow("failing")) | failing).run())
    (run,) = runs("failing")
    assert run.info.status == "FAILED"


def test_ctrl_c_has_killed_its_run() -> None:
    MLflow("interrupted").open().close(KeyboardInterrupt())
    (run,) = runs("interrupted")
    assert run.info.status == "KILLED"


def test_a_run_that_is_gone_on_with_is_the_same_run() -> None:
    first = MLflow("resumed", config={"lr": 1}).open()
    first.close()
    second = MLflow("resumed", config={"lr": 1}).open(100, first.run_id)
    (run,) = runs("resumed")
    assert run.info.status == "RUNNING"
    second.record(replace(RECORD, report=report(2, loss=0.5)))
    second.close()
    (run,) = runs("resumed")
    assert (run.info.status, run.data.metrics["learner/loss"]) == ("FINISHED", 0.5)


def test_a_refusal_is_one_line_that_says_what_to_do() -> None:
    with pytest.raises(
        TrackingError, match=r"^MLflow cannot start a run: .*; check MLFLOW_TRACKING_URI$"
    ) as raised:
        MLflow().open(100, "no such run")
    assert "\n" not in str(raised.value)
