"""Every test of the command line works in an empty folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _elsewhere(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Before the change of folder: Ray's workers import the tests from where Ray was started.
    for name in {"engine", "ray_runtime"} & set(request.fixturenames):
        request.getfixturevalue(name)
    monkeypatch.chdir(tmp_path)
