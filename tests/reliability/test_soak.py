"""The soak: what its readings are judged by, that the page shows the stored one, and a short run of it."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.documents import between
from benchmarks.harness import RESULTS, ROOT, read
from benchmarks.soak import DOCUMENT, Reading, growth, judged, shown

GOOD = [
    Reading(
        seconds=10.0 * index,
        updates=100 * index,
        steps=12_800 * index,
        kills=index // 3,
        restarts=index // 3,
        lost=2 * (index // 3),
        recent_return=min(20.0 + 30 * index, 480.0),
        driver_mib=180.0 + (index % 2),
        learner_mib=175.0,
        workers_mib=350.0,
        ray_mib=160.0,
        store_mib=0.2,
        processes=10,
        threads=3,
    )
    for index in range(61)
]


def failed(readings: list[Reading], left: int = 0) -> list[str]:
    """The targets that are not reached."""
    return [target.text for target in judged(readings, left).targets if not target.reached]


def test_a_run_that_learns_and_does_not_grow_is_good() -> None:
    assert failed(GOOD) == []


def test_growth_is_that_of_the_line_that_fits_best() -> None:
    rising = [dataclasses.replace(r, driver_mib=100 + r.seconds / 10 + (i % 2)) for i, r in enumerate(GOOD)]
    assert growth(rising, "driver_mib") == pytest.approx(60, abs=0.1)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"driver_mib": 1.0}, "MiB by which the driver grew after the warm-up"),
        ({"store_mib": 1.0}, "MiB by which the object store grew after the warm-up"),
        ({"ray_mib": 1.0}, "MiB by which Ray's services grew after the warm-up"),
    ],
)
def test_a_leak_is_found(changes: dict[str, float], text: str) -> None:
    leaking = [
        dataclasses.replace(r, **{name: getattr(r, name) + rate * i for name, rate in changes.items()})
        for i, r in enumerate(GOOD)
    ]
    assert failed(leaking) == [text]


@pytest.mark.parametrize(
    ("last", "left", "text"),
    [
        ({"lost": 41}, 0, "calls lost by each kill"),
        ({"restarts": 19}, 0, "restarts for each kill"),
        ({"threads": 4}, 0, "threads that the driver has more at the end"),
        ({}, 1, "processes left"),
    ],
)
def test_a_loss_at_the_end_is_found(last: dict[str, int], left: int, text: str) -> None:
    assert failed([*GOOD[:-1], dataclasses.replace(GOOD[-1], **last)], left) == [text]


def test_a_run_that_forgets_is_found() -> None:
    forgetting = [dataclasses.replace(r, recent_return=max(480.0 - 10 * i, 20.0)) for i, r in enumerate(GOOD)]
    assert failed(forgetting) == ["mean training return in the last quarter"]


def test_the_page_shows_the_stored_soak() -> None:
    assert between(DOCUMENT, "soak") == shown(RESULTS / "soak.json")


def test_the_page_names_tests_that_are_there() -> None:
    texts = (file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
    there = {name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}
    named = set(re.findall(r"`(test_\w+)`", DOCUMENT.read_text(encoding="utf-8")))
    assert named - there == set()


@pytest.mark.slow
def test_a_minute_of_it_shows_what_it_must(tmp_path: Path) -> None:
    program = [sys.executable, str(ROOT / "benchmarks" / "soak.py")]
    options = ["--minutes", "1", "--kill-seconds", "15", "--results", str(tmp_path)]
    done = subprocess.run([*program, *options], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = read(tmp_path / "soak.json")
    assert [target.text for target in result.targets if not target.reached] == []
    totals = result.details["totals"]
    assert isinstance(totals, dict)
    assert totals["kills"] == totals["restarts"] != 0
