"""The statistics of every algorithm's run can be read on a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeflow.algorithms.catalogue import CATALOGUE, entry_of


@pytest.mark.parametrize("name", [entry.name for entry in CATALOGUE])
def test_the_table_of_every_algorithm_fits_into_120_columns(name: str) -> None:
    algorithm = entry_of(name).load()
    run = algorithm.plan(algorithm.configuration()).run()
    stats = run.stats()
    busy = replace(
        stats,
        nodes=tuple(
            replace(node, items_in=10**6, items_out=10**6, busy_seconds=1234.5, waiting_seconds=12345.6, queue=12)
            for node in stats.nodes
        ),
        groups=tuple(replace(group, busy_seconds=5000.0) for group in stats.groups),
        wall_seconds=10**4,
        concurrent=True,
    )  # fmt: skip
    lines = str(busy).splitlines()
    assert max(map(len, lines)) < 120
    assert len({line.index("1234.500") for line in lines if "1234.500" in line}) == 1
