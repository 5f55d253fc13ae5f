"""Every algorithm in the catalogue is what a command expects of it, and the catalogue itself is light."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from pipeflow.algorithms.catalogue import CATALOGUE, Entry, UnknownAlgorithm, entry_of
from pipeflow.dsl import Stream, groups_with
from pipeflow.rl.learners.learner import Learner

each_entry = pytest.mark.parametrize("entry", CATALOGUE, ids=[entry.name for entry in CATALOGUE])


def test_names_are_unique_and_each_has_one_line() -> None:
    assert len({entry.name for entry in CATALOGUE}) == len(CATALOGUE)
    assert all(entry.summary and "\n" not in entry.summary for entry in CATALOGUE)


@each_entry
def test_its_configuration_is_a_frozen_dataclass_with_defaults(entry: Entry) -> None:
    configuration = entry.load().configuration
    assert dataclasses.is_dataclass(configuration)
    config = entry.load().configuration()
    assert isinstance(config.env.name, str)
    assert isinstance(config.seed, int)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.seed = 1


@each_entry
def test_its_plan_is_a_stream_that_trains_something(entry: Entry) -> None:
    algorithm = entry.load()
    plan = algorithm.plan(algorithm.configuration())
    assert isinstance(plan, Stream)
    assert groups_with(plan, Learner)


def test_an_unknown_name_is_answered_with_the_names_that_there_are() -> None:
    with pytest.raises(
        UnknownAlgorithm,
        match=r"no algorithm 'PPO2'; did you mean ppo\? the algorithms are: a2c, a3c, ppo, ddppo",
    ):
        entry_of("PPO2")


def test_the_table_imports_neither_torch_nor_gymnasium() -> None:
    code = "import sys, pipeflow.algorithms.catalogue; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not {"torch", "gymnasium", "numpy"} & set(done.stdout.split())
