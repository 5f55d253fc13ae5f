"""A run's folder: its name, and when it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeflow.cli.errors import UsageError
from pipeflow.cli.recording import run_folder


def test_a_folder_is_named_after_what_runs(tmp_path: Path) -> None:
    folder = run_folder(None, "ppo", "ale_py:ALE/Pong-v5")
    assert folder.parent == Path("runs")
    assert folder.name.startswith("ppo-ale_py-ALE-Pong-v5-2")
    assert not folder.exists()


def test_two_runs_of_the_same_second_have_two_folders() -> None:
    folders = set()
    for _ in range(3):
        folder = run_folder(None, "ppo", "CartPole-v1")
        folder.mkdir(parents=True)
        folders.add(folder)
    assert len(folders) == 3


def test_an_empty_folder_may_be_used_and_no_other(tmp_path: Path) -> None:
    assert run_folder(tmp_path, "ppo", "CartPole-v1") == tmp_path
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UsageError, match="is taken, and a run is never overwritten"):
        run_folder(tmp_path, "ppo", "CartPole-v1")
