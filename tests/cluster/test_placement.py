"""Plans on several nodes: the same reports as in one process, and actors where their group says."""

from __future__ import annotations

import re

import pytest

from tests.algorithms.compared import assert_identical
from tests.cluster import scenarios
from tests.cluster.nodes import Driver

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def test_a_synchronous_plan_on_three_nodes_reports_what_it_does_in_one_process(driver: Driver) -> None:
    there = driver.do(scenarios.learnt_by_ppo, 3)
    assert len(set(there.nodes)) == 3
    assert_identical(there.reports, driver.do(scenarios.learnt_by_ppo, 3, inline=True).reports)


def test_impala_learns_on_three_nodes(driver: Driver) -> None:
    reports = driver.do(scenarios.learnt_by_impala, 20)
    assert [report.version for report in reports] == list(range(1, 21))


def test_spread_actors_are_on_a_node_each(driver: Driver) -> None:
    assert len(set(driver.do(scenarios.placed, "spread", 3))) == 3


def test_packed_actors_are_on_one_node(driver: Driver) -> None:
    assert len(set(driver.do(scenarios.placed, "pack", 2))) == 1


def test_an_actor_is_where_the_resource_is_that_it_wants(driver: Driver) -> None:
    special, found, packed = driver.do(scenarios.placed_by_name)
    assert (found, packed) == (special, [special])


def test_a_run_leaves_no_reservation_no_core_in_use_and_no_process(driver: Driver) -> None:
    """Law 21."""
    left = driver.do(scenarios.left_behind)
    assert set(left.placements) <= {"REMOVED"}
    assert left.cores[0] == left.cores[1]
    assert left.pids == []


def test_a_run_takes_its_reservations_back_where_the_connection_stays(driver: Driver) -> None:
    reserved, left = driver.do(scenarios.left_by_two_runs)
    assert reserved == 1
    assert set(left.placements) == {"REMOVED"}
    assert left.cores[0] == left.cores[1]
    assert left.pids == []


def test_what_no_node_has_though_all_together_have_is_an_error_that_says_so(driver: Driver) -> None:
    error = driver.do(scenarios.no_room, scenarios.one_on_four_cores)
    assert re.match(
        r"wide\[0\] \(\S*scenarios\.py:\d+\) did not come up within 3 s: each actor of wide wants 4 CPU, 0 GPU; "
        r"the cluster has 6 CPU, 0 GPU, of which 6 CPU, 0 GPU are free, but no node has as much as one actor "
        "wants; ask for less",
        error,
    ), error


def test_places_for_which_there_is_no_room_at_once_are_an_error_that_says_so(driver: Driver) -> None:
    error = driver.do(scenarios.no_room, scenarios.eight_at_once)
    assert re.match(
        r"many\[0\] \(\S*scenarios\.py:\d+\) did not come up within 3 s: each actor of many wants 1 CPU, all 8 of "
        r'them at once for placement\("pack"\); the cluster has 6 CPU, of which 6 CPU are free; ask for less',
        error,
    ), error
