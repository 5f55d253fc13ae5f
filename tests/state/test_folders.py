"""A checkpoint comes back as it went in, is there whole or not at all, and nothing else is taken for one."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeflow.dsl import CheckpointError
from pipeflow.rl.batches import Advantages
from pipeflow.rl.environments import EnvSpec
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.policies import PolicySpec
from pipeflow.rl.running_moments import Moments
from pipeflow.state.folders import (
    Saved,
    checkpoints_in,
    digest_of,
    extend_series,
    is_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from pipeflow.state.values import Json, StateValue

ABOUT: Mapping[str, Json] = {
    "env": {"env": "CartPole-v1", "kwargs": {"gravity": 9.8}},
    "hidden": [64, 64],
    "anneal_steps": None,
}
SMALL = Saved(
    ABOUT,
    {
        "version": 3,
        "moments/return/count": 2.0,
        "moments/return/mean": np.array(0.1),
        "parameters/weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    },
)


def batch(rows: int) -> Advantages:
    generator = np.random.default_rng(0)

    def column() -> NDArray[np.float32]:
        return generator.standard_normal(rows).astype(np.float32)

    return Advantages(
        observations=generator.standard_normal((rows, 4)).astype(np.float32),
        actions=generator.integers(0, 2, rows),
        log_probs=column() - 1.0,
        values=column(),
        advantages=column(),
        value_targets=column(),
        version=0,
        observation_moments=Moments(float(rows), np.full(4, 0.25), np.full(4, 2.0)),
        return_moments=Moments(float(rows), np.array(1 / 3), np.array(0.1)),
    )


def learner(seed: int, hidden: tuple[int, ...] = (8,)) -> PPOLearner:
    policy = PolicySpec.for_env(EnvSpec("CartPole-v1"), hidden=hidden)
    return PPOLearner(policy, minibatch_size=16, epochs=2, seed=seed)


def test_everything_comes_back_as_it_was(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "it", *SMALL)
    loaded = load_checkpoint(tmp_path / "it")
    assert loaded.about == SMALL.about
    assert loaded.state.keys() == SMALL.state.keys()
    for name, value in SMALL.state.items():
        assert type(loaded.state[name]) is type(value)
        np.testing.assert_array_equal(loaded.state[name], value)
        assert np.asarray(loaded.state[name]).dtype == np.asarray(value).dtype


@pytest.mark.parametrize(
    "array",
    [
        np.array(1.5, np.float32),
        np.zeros((0, 3), np.int64),
        np.array([True, False]),
        np.arange(6.0).reshape(2, 3).T,
        np.arange(10)[::-2],
        np.array([np.nan, np.inf, -0.0]),
        np.arange(4, dtype=np.uint8).reshape(2, 2),
    ],
    ids=["scalar", "empty", "bool", "transposed", "strided", "not finite", "bytes"],
)
def test_arrays_of_any_kind_come_back(
    tmp_path: Path, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]
) -> None:
    save_checkpoint(tmp_path / "it", ABOUT, {"array": array})
    loaded = load_checkpoint(tmp_path / "it").state["array"]
    assert isinstance(loaded, np.ndarray)
    assert (loaded.dtype, loaded.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(loaded, array)


def test_a_loaded_array_may_be_written_to(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "it", *SMALL)
    weight = load_checkpoint(tmp_path / "it").state["parameters/weight"]
    assert isinstance(weight, np.ndarray)
    assert weight.flags.writeable


def test_a_learner_goes_on_bit_for_bit_from_its_checkpoint(tmp_path: Path) -> None:
    first = learner(seed=1)
    first.update(batch(32))
    save_checkpoint(tmp_path / "it", ABOUT, first.state())

    # Other parameters; the seed, of the minibatches as well, is part of the configuration.
    second = PPOLearner(learner(seed=1).policy.spec, minibatch_size=16, epochs=2, seed=1)
    second.load_state(load_checkpoint(tmp_path / "it").state)
    first.update(batch(64))
    second.update(batch(64))

    expected, found = first.state(), second.state()
    assert expected.keys() == found.keys()
    assert expected["version"] == 2
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_a_state_of_another_policy_is_refused_by_the_learner(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "it", ABOUT, learner(seed=0, hidden=(16,)).state())
    other = learner(seed=0, hidden=(8,))
    with pytest.raises(ValueError, match=r"has shape \(16, 4\), this policy's has \(8, 4\)"):
        other.load_state(load_checkpoint(tmp_path / "it").state)


def test_a_value_that_is_no_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="state 'flag' is a bool"):
        save_checkpoint(tmp_path / "it", {}, dict[str, StateValue]({"flag": True}))


def test_a_checkpoint_is_never_overwritten(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "it", *SMALL)
    with pytest.raises(FileExistsError, match="never overwritten"):
        save_checkpoint(tmp_path / "it", {"other": 1}, {})
    assert load_checkpoint(tmp_path / "it").about == ABOUT


def test_the_name_appears_last_and_after_all_contents_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def recorded_fsync(descriptor: int) -> None:
        events.append(f"fsync {Path(os.readlink(f'/proc/self/fd/{descriptor}')).name}")
        fsync(descriptor)

    def recorded_rename(self: Path, target: Path) -> Path:
        events.append(f"rename to {target.name}")
        return rename(self, target)

    if not Path("/proc/self/fd").exists():
        pytest.skip("the names of open files are read from /proc")
    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(Path, "rename", recorded_rename)
    save_checkpoint(tmp_path / "it", *SMALL)
    assert events == [
        "fsync state.safetensors",
        "fsync checkpoint.json",
        "fsync .writing-it",
        "rename to it",
        f"fsync {tmp_path.name}",
    ]


@pytest.mark.parametrize("moment", ["state.safetensors", "checkpoint.json", "rename"])
def test_a_failure_at_any_moment_leaves_no_checkpoint_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    open_file = Path.open

    def failing_open(self: Path, mode: str = "r") -> object:
        if self.name == moment:
            raise OSError(28, "No space left on device")
        return open_file(self, mode)

    def failing_rename(self: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", failing_open)
        if moment == "rename":
            patch.setattr(Path, "rename", failing_rename)
        with pytest.raises(KeyboardInterrupt if moment == "rename" else OSError):
            save_checkpoint(tmp_path / "series" / "000000000001", *SMALL)
    assert list((tmp_path / "series").iterdir()) == []


def test_what_a_killed_process_left_is_no_checkpoint_and_is_written_over(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "elsewhere", *SMALL)
    shutil.copytree(tmp_path / "elsewhere", tmp_path / "series" / ".writing-000000000007")
    assert checkpoints_in(tmp_path / "series") == []
    saved = extend_series(tmp_path / "series", 7, *SMALL)
    assert [path.name for path in (tmp_path / "series").iterdir()] == [saved.name]
    load_checkpoint(saved)


def test_a_truncated_file_is_refused_by_name(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "it", *SMALL)
    file = tmp_path / "it" / "state.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(
        CheckpointError, match=r"it/state\.safetensors is damaged: it has \d+ bytes where \d+"
    ):
        load_checkpoint(tmp_path / "it")


def test_a_file_with_one_wrong_bit_is_refused_by_name(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "it", *SMALL)
    file = tmp_path / "it" / "state.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"it/state\.safetensors is damaged: its contents"):
        load_checkpoint(tmp_path / "it")


def test_arrays_of_another_checkpoint_are_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "one", *SMALL)
    save_checkpoint(tmp_path / "two", ABOUT, {"parameters/weight": np.ones((2, 3), np.float32)})
    shutil.copy(tmp_path / "two" / "state.safetensors", tmp_path / "one")
    with pytest.raises(CheckpointError, match=r"one/state\.safetensors is damaged"):
        load_checkpoint(tmp_path / "one")


def test_a_missing_array_file_is_refused_by_name(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "it", *SMALL)
    (tmp_path / "it" / "state.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"it/state\.safetensors cannot be read"):
        load_checkpoint(tmp_path / "it")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is damaged, it is no JSON"),
        ('{"format": "pipeflow check', "is damaged, it is no JSON"),
        ("[1, 2]", "does not describe a pipeflow checkpoint"),
        ('{"format": "torch", "format_version": 1}', "does not describe a pipeflow checkpoint"),
        (
            '{"format": "pipeflow checkpoint", "format_version": 1}',
            "format version 1, and this pipeflow reads 3",
        ),
        (
            '{"format": "pipeflow checkpoint", "format_version": 3}',
            "is damaged: it does not say what was written",
        ),
    ],
)
def test_a_foreign_or_damaged_description_is_refused_by_name(
    tmp_path: Path, content: str, message: str
) -> None:
    save_checkpoint(tmp_path / "it", *SMALL)
    (tmp_path / "it" / "checkpoint.json").write_text(content)
    with pytest.raises(CheckpointError, match=f"it/checkpoint.json.*{message}") as caught:
        load_checkpoint(tmp_path / "it")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["about", "state", "arrays"])
def test_a_description_without_one_of_its_parts_is_refused(tmp_path: Path, key: str) -> None:
    save_checkpoint(tmp_path / "it", *SMALL)
    file = tmp_path / "it" / "checkpoint.json"
    description = json.loads(file.read_text())
    del description[key]
    file.write_text(json.dumps(description | {"sha256": digest_of(description)}))
    with pytest.raises(CheckpointError, match=rf"checkpoint\.json is damaged: its '{key}' is missing"):
        load_checkpoint(tmp_path / "it")


def test_a_number_that_is_none_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "it", *SMALL)
    file = tmp_path / "it" / "checkpoint.json"
    description = json.loads(file.read_text())
    description["state"]["version"] = "3"
    file.write_text(json.dumps(description | {"sha256": digest_of(description)}))
    with pytest.raises(CheckpointError, match="its state 'version' is no number"):
        load_checkpoint(tmp_path / "it")


def test_every_bit_of_the_description_counts(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "it", *SMALL)
    saved = load_checkpoint(tmp_path / "it")
    file = tmp_path / "it" / "checkpoint.json"
    content = file.read_bytes()
    for place in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        file.write_bytes(flipped)
        try:
            found = load_checkpoint(tmp_path / "it")
        except CheckpointError:
            continue
        # Only how it is laid out is another: a space, or the case of an exponent.
        assert found.about == saved.about
        assert {name: repr(value) for name, value in found.state.items()} == {
            name: repr(value) for name, value in saved.state.items()
        }


def test_where_there_is_none_the_message_says_so(tmp_path: Path) -> None:
    assert not is_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="there is no checkpoint at"):
        load_checkpoint(tmp_path)


def test_a_series_keeps_the_newest_in_the_order_of_their_steps(tmp_path: Path) -> None:
    series = tmp_path / "checkpoints"
    for steps in (900, 1_000, 20_000):
        extend_series(series, steps, *SMALL, keep=2)
    assert [path.name for path in checkpoints_in(series)] == ["000000001000", "000000020000"]


def test_a_series_leaves_alone_what_somebody_renamed(tmp_path: Path) -> None:
    series = tmp_path / "checkpoints"
    extend_series(series, 1, *SMALL, keep=1).rename(series / "best")
    extend_series(series, 2, *SMALL, keep=1)
    extend_series(series, 3, *SMALL, keep=1)
    assert [path.name for path in checkpoints_in(series)] == ["000000000003"]
    assert is_checkpoint(series / "best")


def test_no_checkpoint_is_deleted_before_the_new_one_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = tmp_path / "checkpoints"
    extend_series(series, 1, *SMALL, keep=1)

    def failing_rename(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", failing_rename)
    with pytest.raises(OSError, match="No space left"):
        extend_series(series, 2, *SMALL, keep=1)
    load_checkpoint(series / "000000000001")


def test_a_process_that_is_killed_at_any_moment_leaves_whole_checkpoints(tmp_path: Path) -> None:
    series, moments = tmp_path / "checkpoints", random.Random(3)
    state = {**SMALL.state, "large": np.zeros(200_000)}
    extend_series(series, 0, ABOUT, state)
    newest = -1
    for _ in range(100):
        child = os.fork()
        if child == 0:
            try:
                for steps in itertools.count(newest + 1):
                    extend_series(series, steps, ABOUT, state)
            finally:
                os._exit(1)
        time.sleep(moments.uniform(0, 0.03))
        os.kill(child, signal.SIGKILL)
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), "it was killed while it wrote"
        found = checkpoints_in(series)
        assert found, "what was there is not deleted before the next is complete"
        assert all(load_checkpoint(path).about == ABOUT for path in found)
        newest = int(found[-1].name)
    assert newest > 0, "and some were written"
