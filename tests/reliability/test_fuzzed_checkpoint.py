"""Whatever a checkpoint's folder holds: it is used, or refused in one line, and no code runs that it names."""

from __future__ import annotations

import functools
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.numpy

from tests.cli.small import FLAGS
from tests.reliability.damage import ARRAYS, DAMAGES, DESCRIPTION
from tests.reliability.spoken import Said, said

DQN = (
    "--num-envs", "2", "--fragment-length", "4", "--learning-starts", "16", "--batch-size", "8", "--hidden", "8",
    "--capacity", "256",
)  # fmt: skip


def trained(folder: Path, algorithm: str, flags: tuple[str, ...]) -> Path:
    """The folder of a run of 128 steps, or a few more."""
    run = folder / algorithm
    said(["train", algorithm, "--quiet", *flags, "--steps", "128", "--logdir", str(run)]).check()
    return run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    return {"ppo": trained(folder, "ppo", FLAGS), "dqn": trained(folder, "dqn", DQN)}


@pytest.fixture
def copy(runs: dict[str, Path], tmp_path: Path) -> Path:
    """A run of PPO that a test may damage."""
    return shutil.copytree(runs["ppo"], tmp_path / "copy")


def newest(run: Path) -> Path:
    return max((run / "checkpoints").iterdir())


def evaluated(run: Path) -> Said:
    return said(["eval", str(run), "--episodes", "1"])


def resumed(run: Path) -> Said:
    return said(["train", "--resume", str(run), "--steps", "300", "--quiet"])


def test_what_is_not_damaged_is_used(copy: Path) -> None:
    assert evaluated(copy).code == 0
    assert resumed(copy).code == 0


def _damaged_and_read(damage: int, seed: int, runs: dict[str, Path], folder: Path) -> None:
    chance = random.Random(1_000 * damage + seed)
    run = shutil.copytree(runs[chance.choice(sorted(runs))], folder / "copy")
    DAMAGES[damage](newest(run), chance)
    evaluated(run).check()
    # What is wrong with contents whose digest is right may show only when they are trained on.
    resumed(run).check(in_training=True)
    shutil.rmtree(run)


KINDS = pytest.mark.parametrize("damage", range(len(DAMAGES)), ids=[damage.__name__ for damage in DAMAGES])


@KINDS
def test_a_damaged_checkpoint_is_used_or_refused_in_one_line(
    damage: int, runs: dict[str, Path], tmp_path: Path
) -> None:
    for seed in range(3):
        _damaged_and_read(damage, seed, runs, tmp_path)


@pytest.mark.slow
@KINDS
def test_many_damaged_checkpoints_are(damage: int, runs: dict[str, Path], tmp_path: Path) -> None:
    for seed in range(3, 100):
        _damaged_and_read(damage, seed, runs, tmp_path)


def swapped(folder: Path) -> None:
    """The files have each other's names."""
    (folder / ARRAYS).rename(folder / "other")
    (folder / DESCRIPTION).rename(folder / ARRAYS)
    (folder / "other").rename(folder / DESCRIPTION)


def foreign_arrays(folder: Path) -> None:
    (folder / ARRAYS).write_bytes(safetensors.numpy.save({}))


def no_arrays(folder: Path) -> None:
    (folder / ARRAYS).unlink()


def looping_arrays(folder: Path) -> None:
    (folder / ARRAYS).unlink()
    (folder / ARRAYS).symlink_to(folder / ARRAYS)


def looping_description(folder: Path) -> None:
    (folder / DESCRIPTION).unlink()
    (folder / DESCRIPTION).symlink_to(folder / DESCRIPTION)


def looping_folder(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.symlink_to(folder)


def folders_for_files(folder: Path) -> None:
    for name in (ARRAYS, DESCRIPTION):
        (folder / name).unlink()
        (folder / name).mkdir()


def described(text: str, folder: Path) -> None:
    (folder / DESCRIPTION).write_text(text, encoding="utf-8")


def version(number: object, folder: Path) -> None:
    description = json.loads((folder / DESCRIPTION).read_text())
    (folder / DESCRIPTION).write_text(json.dumps(description | {"format_version": number}))


FILES: dict[str, Callable[[Path], None]] = {
    "swapped files": swapped,
    "foreign arrays": foreign_arrays,
    "no arrays": no_arrays,
    "arrays that are a loop of links": looping_arrays,
    "a description that is a loop of links": looping_description,
    "a folder that is a loop of links": looping_folder,
    "folders for files": folders_for_files,
    "an empty description": functools.partial(described, ""),
    "foreign JSON": functools.partial(described, '{"name": "package", "version": "1.0.0"}'),
    "a list": functools.partial(described, "[1, 2]"),
    "a number": functools.partial(described, "1e400"),
    "a number of a hundred thousand digits": functools.partial(described, "9" * 100_000),
    "zero bytes": functools.partial(described, "\0" * 100),
    "no number for a version": functools.partial(version, {"a": [None]}),
    "a version to come": functools.partial(version, 10**30),
}


DEEP = pytest.param(
    functools.partial(described, "[" * 100_000),
    id="a hundred thousand lists in each other",
)


@pytest.mark.parametrize("damage", [*(pytest.param(damage, id=name) for name, damage in FILES.items()), DEEP])
def test_what_is_no_checkpoint_is_refused_in_one_line(damage: Callable[[Path], None], copy: Path) -> None:
    damage(newest(copy))
    for answer in (evaluated(copy), resumed(copy)):
        answer.check()
        assert answer.code == 2, answer
        assert str(copy) in answer.err
