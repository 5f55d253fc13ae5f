"""A run's figures as Ray's metrics: what counters and gauges are given, and what Prometheus would read."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from importlib.util import find_spec

import pytest

from pipeflow.lowering.engines import ray_metrics
from pipeflow.lowering.stats import NodeStats, RunStats

# What the process that Ray exports metrics from is started with; ray[default] brings them.
_AGENT = ("aiohttp", "aiohttp_cors", "opencensus", "prometheus_client", "opentelemetry.exporter.prometheus")


@dataclass(frozen=True)
class Given:
    """A value that a metric was given. number: of the node."""

    name: str
    value: float
    number: str = ""


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[Given]:
    values: list[Given] = []

    class Metric:
        def __init__(self, name: str, description: str, tag_keys: tuple[str, ...]) -> None:
            self.name, self.tag_keys = name, tag_keys

        def _note(self, value: float, tags: dict[str, str]) -> None:
            assert tuple(tags) == self.tag_keys
            values.append(Given(self.name, value, tags.get("index", "")))

    class Counter(Metric):
        def inc(self, value: float, tags: dict[str, str]) -> None:
            assert value > 0  # Ray takes no other
            self._note(value, tags)

    class Gauge(Metric):
        def set(self, value: float, tags: dict[str, str]) -> None:
            self._note(value, tags)

    monkeypatch.setattr(ray_metrics, "Counter", Counter)
    monkeypatch.setattr(ray_metrics, "Gauge", Gauge)
    return values


GATHER = NodeStats("gather_async()", "plan.py:3", 6, 5, 0.5, 2.0, queue=1, mean_lag=0.4, max_lag=2)
STAGE = NodeStats("update", "plan.py:4", 5, 5, 4.0, 0.0, queue=0)
NONE = RunStats(
    "ray", (replace(GATHER, items_in=0, items_out=0, busy_seconds=0.0, waiting_seconds=0.0), STAGE)
)
SOME = RunStats("ray", (GATHER, STAGE), restarts=2, given_up=("Worker[1]",), lost=3)


def test_counters_grow_by_what_was_added_and_gauges_show_what_is(given: list[Given]) -> None:
    metrics = ray_metrics.Metrics()
    metrics.publish(NONE)
    given.clear()
    metrics.publish(SOME)
    gauges = [
        ("pipeflow_queue", 1, 0),
        ("pipeflow_mean_policy_lag", 0.4, 0.0),
        ("pipeflow_max_policy_lag", 2, 0),
    ]
    assert given == [
        Given("pipeflow_items_in", 6, "0"),
        Given("pipeflow_items_out", 5, "0"),
        Given("pipeflow_busy_seconds", 0.5, "0"),
        Given("pipeflow_waiting_seconds", 2.0, "0"),
        *(Given(name, gather, "0") for name, gather, _ in gauges),
        *(Given(name, stage, "1") for name, _, stage in gauges),
        Given("pipeflow_restarts", 2),
        Given("pipeflow_lost_calls", 3),
        Given("pipeflow_given_up_actors", 1),
    ]


def test_what_was_counted_before_a_run_was_resumed_is_not_counted_again(given: list[Given]) -> None:
    metrics = ray_metrics.Metrics()
    metrics.publish(SOME)
    counted = {"pipeflow_items_in", "pipeflow_busy_seconds", "pipeflow_restarts"}
    assert not counted & {value.name for value in given}
    given.clear()
    metrics.publish(replace(SOME, restarts=3))
    assert [value for value in given if value.name in counted] == [Given("pipeflow_restarts", 1)]


_SCRAPED = """
import time, urllib.request
import ray
from pipeflow import actors, gather_async
from pipeflow.lowering.engines.ray import Ray
from tests.lowering.actors import Counter

plan = actors(Counter, 2).produce(Counter.next_number) | gather_async()
with plan.run(Ray(num_cpus=2, metrics=True)) as run:
    next(run)
    (node,) = ray.nodes()
    place = f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
    page, end = "", time.monotonic() + 60
    while "ray_pipeflow_items_out_total" not in page and time.monotonic() < end:
        next(run)
        try:
            page = urllib.request.urlopen(place, timeout=5).read().decode()
        except OSError:
            time.sleep(0.5)
print(page)
"""


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.skipif(
    not all(map(_installed, _AGENT)), reason="Ray's agent is not installed: pip install 'ray[default]'"
)
def test_prometheus_finds_the_figures_at_rays_metrics_port() -> None:
    done = subprocess.run([sys.executable, "-c", _SCRAPED], capture_output=True, text=True, timeout=300)
    lines = [line for line in done.stdout.splitlines() if line.startswith("ray_pipeflow_items_out_total{")]
    gathers = [line for line in lines if 'node="gather_async(' in line]
    assert len(gathers) == 1, done.stderr
    assert float(gathers[0].rpartition(" ")[2]) > 0
