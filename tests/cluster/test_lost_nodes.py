"""docs/failures.md on several nodes: nodes come and go during a run, and the outcome is what the table states."""

from __future__ import annotations

import pytest

from tests.cluster import scenarios
from tests.cluster.nodes import Driver
from tests.cluster.scenarios import Fallen, Going

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def assert_went_on(run: Fallen, restarted_on: str) -> None:
    """The other worker went on, and the one whose node went is on another, with the latest weights."""
    assert run.error == ""
    other = [made for made in run.made if made.shard == 0]
    assert {made.node for made in other} == {run.where[0]}
    assert [made.k for made in other] == list(range(other[0].k, other[0].k + len(other)))
    again = [made for made in run.made if made.shard == 1 and made.node != run.gone]
    assert {made.node for made in again} == {restarted_on}
    assert [made.k for made in again] == list(range(len(again)))
    assert again[0].weights >= 9
    # Ray may put the worker on the node that is gone, as long as it does not know: that start is lost as well.
    assert 1 <= run.restarts <= 4
    assert run.lost <= run.restarts
    assert run.left == []


@pytest.mark.parametrize("going", ["removed", "lost"])
def test_the_workers_of_a_node_that_goes_are_started_on_another(driver: Driver, going: Going) -> None:
    run = driver.do(scenarios.workers_lose_their_node, going, restarts=4)
    assert_went_on(run, restarted_on=run.where[0])
    assert run.seconds < 60


def test_a_worker_for_which_there_is_no_room_left_is_started_on_a_node_that_comes(driver: Driver) -> None:
    run = driver.do(scenarios.workers_lose_their_node, "lost", restarts=4, add=True)
    assert_went_on(run, restarted_on=run.added)
    assert run.seconds < 60


def test_a_node_that_comes_takes_the_place_that_was_reserved_on_one_that_went(driver: Driver) -> None:
    run = driver.do(scenarios.workers_lose_their_node, "lost", restarts=4, placement=True, add=True)
    assert_went_on(run, restarted_on=run.added)
    assert run.seconds < 60


@pytest.mark.parametrize("going", ["removed", "lost"])
def test_a_node_that_goes_ends_the_run_of_workers_that_may_not_be_started_again(
    driver: Driver, going: Going
) -> None:
    run = driver.do(scenarios.workers_lose_their_node, going)
    assert run.error.startswith("Located[1] died while the run needed it for "), run.error
    assert run.seconds < 15
    assert run.left == []


def test_a_node_that_answers_nobody_is_given_up_within_two_minutes(driver: Driver) -> None:
    run = driver.do(scenarios.workers_lose_their_node, "frozen", restarts=4)
    assert_went_on(run, restarted_on=run.where[0])
    assert run.seconds < 120


def test_the_node_of_a_learner_that_goes_ends_the_run_by_name(driver: Driver) -> None:
    run = driver.do(scenarios.a_learner_loses_its_node)
    assert run.error.startswith("LocatedLearner[0] died while the run needed it for "), run.error
    assert run.seconds < 15
    assert run.left == []
