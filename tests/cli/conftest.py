"""Every test of the command line works in an empty folder of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _elsewhere(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Before the change of folder: Ray's workers import the tests from where Ray was started.
    for name in {"engine", "ray_runtime"} & set(request.fixturenames):
        request.getfixturevalue(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The module `plans.py`, to be written by the test; it is forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "plans", raising=False)
    return tmp_path / "plans.py"
