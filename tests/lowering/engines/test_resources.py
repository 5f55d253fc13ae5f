"""What actors reserve, and the errors for what a cluster does not have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from pipeflow.dsl import Actors, EngineError, actors
from pipeflow.lowering.engines.resources import not_up, refuse_impossible, reserved_by
from tests.lowering.actors import Counter


class Waiting(NamedTuple):
    """An actor."""

    name: str = "Counter[1]"


COUNTERS = actors(Counter, 3)


@pytest.mark.parametrize(
    ("group", "reserved"),
    [
        (COUNTERS, {}),
        (COUNTERS.resources(cpus=0.5, learner=1), {"CPU": 0.5, "GPU": 0.0, "learner": 1}),
        (COUNTERS.placement("pack"), {"CPU": 1.0}),
        (COUNTERS.resources(cpus=0, gpus=1).placement("spread"), {"CPU": 0, "GPU": 1}),
        (COUNTERS.resources(cpus=0).placement("spread"), {"CPU": 0.001, "GPU": 0.0}),
    ],
    ids=["nothing", "resources", "a place", "a place with resources", "a place with nothing"],
)
def test_an_actor_reserves_what_its_group_says_and_a_place_is_something(
    group: Actors[Counter], reserved: Mapping[str, float]
) -> None:
    assert reserved_by(group.group) == reserved


def test_what_a_machine_has_is_not_refused_though_fractions_do_not_add_up_in_binary() -> None:
    refuse_impossible(COUNTERS.group, [{"CPU": 0.1}] * 10, {"CPU": 1.0})


def test_what_a_machine_lacks_is_refused_with_the_line_of_the_group() -> None:
    with pytest.raises(EngineError) as caught:
        refuse_impossible(COUNTERS.group, [{"CPU": 1, "learner": 1}] * 3, {"CPU": 4.0})
    assert re.match(
        r"Counter \(\S*test_resources\.py:\d+\) cannot be started: with it the run wants 3 learner, and the "
        r"cluster has 0 learner; ask for less with \.resources\(\.\.\.\), or join a larger cluster$",
        str(caught.value),
    )


@pytest.mark.parametrize(
    ("group", "nodes", "told"),
    [
        (
            COUNTERS.resources(cpus=2, learner=1),
            [{"CPU": 4.0}],
            "wants 2 CPU, 0 GPU, 1 learner; the cluster has 4 CPU, 0 GPU, 0 learner, of which 1 CPU, 0 GPU, 0 "
            "learner are free; ask for less",
        ),
        (
            COUNTERS.placement("spread"),
            [{"CPU": 1.0}, {"CPU": 1.0}],
            'wants 1 CPU, all 3 of them at once for placement("spread"); the cluster has 2 CPU, of which 1 CPU '
            "are free; ask for less",
        ),
        (
            COUNTERS.resources(cpus=2),
            [{"CPU": 1.0}, {"CPU": 1.0}],
            "wants 2 CPU, 0 GPU; the cluster has 2 CPU, 0 GPU, of which 1 CPU, 0 GPU are free, but no node has as "
            "much as one actor wants; ask for less",
        ),
        (
            COUNTERS,
            [{"CPU": 1.0}],
            "wants a process; the cluster has 1 CPU, of which 1 CPU are free; ask for less",
        ),
    ],
    ids=["custom", "placement", "no node alone", "nothing said"],
)
def test_the_error_of_an_actor_that_does_not_come_up_says_what_it_waits_for(
    group: Actors[Counter], nodes: list[Mapping[str, float]], told: str
) -> None:
    error = str(not_up(Waiting(), group.group, 5, nodes, {"CPU": 1.0}))
    assert re.match(r"Counter\[1\] \(\S*test_resources\.py:\d+\) did not come up within 5 s: ", error)
    assert told in error
