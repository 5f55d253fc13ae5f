"""A learner that computes on a GPU reserves one, in every algorithm that has a device."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from pipeflow import actors
from pipeflow.algorithms.catalogue import CATALOGUE
from pipeflow.dsl.trees import groups_of
from pipeflow.rl.devices import on_device


def test_only_a_gpu_is_reserved() -> None:
    group = actors(list[int], 2)
    assert on_device("cpu", group) is group
    assert on_device("mps", group) is group
    for device in ("cuda", "cuda:1"):
        assert on_device(device, group).group.resources == {"CPU": 1.0, "GPU": 1.0}


@pytest.mark.parametrize("name", [entry.name for entry in CATALOGUE])
def test_the_learner_of_an_algorithm_reserves_what_its_device_needs(name: str) -> None:
    (entry,) = [entry for entry in CATALOGUE if entry.name == name]
    algorithm = entry.load()
    config = algorithm.configuration()
    if "device" not in {field.name for field in fields(algorithm.configuration)}:
        pytest.skip("computes in its workers, on the CPU")
    for device, gpus in (("cpu", []), ("cuda", [1.0])):
        plan = algorithm.plan(replace(config, device=device))
        reserved = [group.resources["GPU"] for group in groups_of(plan.node) if "GPU" in group.resources]
        assert reserved == gpus, device
