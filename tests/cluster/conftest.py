"""One cluster for a module of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.nodes import Driver


@pytest.fixture(scope="module")
def driver(no_process_is_left: None) -> Iterator[Driver]:
    """Where the scenarios of a module are played."""
    driver = Driver()
    yield driver
    driver.end()
