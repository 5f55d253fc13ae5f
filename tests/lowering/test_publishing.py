"""When an engine that publishes a run's figures is given them."""

from __future__ import annotations

from typing_extensions import override

from pipeflow import from_items
from pipeflow.lowering.engines.inline import InlineEngine
from pipeflow.lowering.stats import RunStats


class Publishing(InlineEngine):
    """Keeps how many items the plan had delivered; its clock stands unless it is put forward."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self.published: list[int] = []

    @override
    def now(self) -> float:
        return self.seconds

    @property
    @override
    def publishes(self) -> bool:
        return True

    @override
    def publish(self, stats: RunStats) -> None:
        self.published.append(stats.nodes[-1].items_out)


def test_figures_are_published_at_the_start_once_a_second_and_at_the_end() -> None:
    engine = Publishing()
    with from_items(range(10)).run(engine) as run:
        for _ in run:
            engine.seconds += 0.4
    # After 0, 1.2, 2.4 and 3.6 seconds, and at the end.
    assert engine.published == [0, 3, 6, 9, 10]


def test_an_engine_that_does_not_publish_is_given_nothing() -> None:
    class Silent(Publishing):
        @property
        @override
        def publishes(self) -> bool:
            return False

    engine = Silent()
    list(from_items(range(10)).run(engine))
    assert engine.published == []
