"""What an MLflow server is told and when, and what happens while it is away."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pipeflow.tracking.mlflow import MLflowRun
from tests.tracking.reports import RECORD, report

if TYPE_CHECKING:
    from mlflow.entities import Metric, Param

pytest.importorskip("mlflow", reason="mlflow is not installed: pip install 'pipeflow[mlflow]'")


class Server:
    """An MLflow client that remembers what it was told, or is away."""

    def __init__(self) -> None:
        self.away = False
        self.batches: list[list[tuple[str, int]]] = []
        self.ended = ""

    def log_batch(self, run_id: str, metrics: list[Metric], params: list[Param] | None = None) -> None:
        self._answer()
        self.batches.append([(metric.key, metric.step) for metric in metrics])

    def set_terminated(self, run_id: str, status: str) -> None:
        self._answer()
        self.ended = status

    def _answer(self) -> None:
        if self.away:
            from mlflow.exceptions import MlflowException

            raise MlflowException("connection refused\nand more lines")


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def opened(server: Server, clock: Clock) -> MLflowRun:
    return MLflowRun(server, "the run", clock)  # type: ignore[arg-type]  # as much of a client as is used


def points(version: int) -> list[tuple[str, int]]:
    names = ["episodes/return", "episodes/length", "episodes/recent_return", "time/steps_per_second"]
    return [(name, 100 * version) for name in names]


def test_points_are_sent_about_once_a_second() -> None:
    server, clock = Server(), Clock()
    run = opened(server, clock)
    for version in (1, 2, 3, 4):
        clock.seconds += 0.6
        run.record(replace(RECORD, report=report(version, 1.0)))
    assert server.batches == [points(1) + points(2), points(3) + points(4)]
    run.record(replace(RECORD, report=report(5, 1.0)))
    run.close()
    assert server.batches[2:] == [points(5)]
    assert server.ended == "FINISHED"


def test_what_a_server_was_not_told_while_it_was_away_is_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    server, clock = Server(), Clock()
    run = opened(server, clock)
    server.away, clock.seconds = True, 2.0
    with caplog.at_level(logging.WARNING):
        run.record(replace(RECORD, report=report(1, 1.0)))
    assert caplog.messages == ["4 points wait for MLflow: connection refused"]
    server.away, clock.seconds = False, 4.0
    run.record(replace(RECORD, report=report(2, 1.0)))
    assert server.batches == [points(1) + points(2)]


def test_a_server_that_is_away_at_the_end_costs_points_and_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, clock = Server(), Clock()
    run = opened(server, clock)
    run.record(replace(RECORD, report=report(1, 1.0)))
    server.away = True
    with caplog.at_level(logging.WARNING):
        run.close()
    assert caplog.messages == [
        "4 points wait for MLflow: connection refused",
        "MLflow was not told that run the run ended: connection refused",
    ]
