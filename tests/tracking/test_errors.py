"""A package that is missing is one line that says what to install."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeflow.tracking import MLflow, TrackingError, WandB
from pipeflow.tracking.errors import require


def nothing(*words: str) -> None:
    """Finds no package, and requires none."""


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeflow.tracking.errors.find_spec", nothing)
    with pytest.raises(TrackingError) as raised:
        WandB()
    assert str(raised.value) == "WandB needs wandb, which is not installed: pip install 'pipeflow[wandb]'"
    with pytest.raises(TrackingError, match=r"pip install 'pipeflow\[mlflow\]'"):
        MLflow()


def test_the_folder_that_a_service_writes_is_not_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "somebodys_runs").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TrackingError, match="which is not installed"):
        require("somebodys_runs", "runs", "this")
