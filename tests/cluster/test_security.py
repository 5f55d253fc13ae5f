"""docs/security.md: what a run opens, and what it writes down."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import pytest

ROOT = Path(__file__).resolve().parents[2]

OPENS = """
import json
import ray
from ray._common.usage import usage_lib
from pipeflow import actors, gather_sync
from tests.cluster.listening import addresses, is_loopback
from tests.lowering.actors import Counter

plan = actors(Counter, 2).produce(Counter.next_number) | gather_sync()
with plan.run("ray") as run:
    next(run)
    told = {
        "elsewhere": {
            name: [str(each) for each in there if not is_loopback(each)] for name, there in addresses().items()
        },
        "dashboard": ray._private.worker.global_worker.node.webui_url,
        "statistics": usage_lib.usage_stats_enabled(),
    }
print(json.dumps(told))
"""

JOINED = """
import os, subprocess, sys
import ray

JOIN = '''
import sys
from pipeflow import EngineError, actors, gather_sync
from pipeflow.lowering.engines.ray import Ray
from tests.lowering.actors import Counter
try:
    print(list((actors(Counter, 1, 3).produce(Counter.next_number) | gather_sync()).run(Ray(sys.argv[1]))))
except EngineError as error:
    print(error)
'''

ray.init(address="local", include_dashboard=False, log_to_driver=False)
address = ray.get_runtime_context().gcs_address
for token in (os.environ["RAY_AUTH_TOKEN"], "0" * 64):
    environment = {**os.environ, "RAY_AUTH_TOKEN": token}
    there = subprocess.run([sys.executable, "-c", JOIN, address], env=environment, capture_output=True, text=True)
    print(there.stdout.strip(), flush=True)
"""


def output(
    program: list[str], folder: Path = ROOT, environment: Mapping[str, str] = os.environ, **variables: str
) -> str:
    """What a program prints, errors too, with further environment variables."""
    done = subprocess.run(
        [sys.executable, *program],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT), **variables},
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


class Opened(TypedDict):
    """What a run opens: by program, the addresses that others reach; the dashboard's; whether Ray reports."""

    elsewhere: dict[str, list[str]]
    dashboard: str | None
    statistics: bool


@pytest.fixture(scope="module")
def opened() -> Opened:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    told: Opened = json.loads(output(["-c", OPENS], environment=environment).splitlines()[-1])
    return told


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the kernel's tables in /proc")
def test_the_processes_of_a_ray_that_a_run_starts_listen_on_loopback_alone(opened: Opened) -> None:
    assert {"gcs_server", "raylet", "python"} <= set(opened["elsewhere"])
    assert not any(opened["elsewhere"].values()), opened


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the kernel's tables in /proc")
def test_a_ray_that_a_run_starts_has_no_dashboard_and_sends_no_statistics(opened: Opened) -> None:
    assert not opened["dashboard"]
    assert not opened["statistics"]


@pytest.mark.parametrize("engine", ["inline", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])])
def test_no_environment_variable_is_in_what_a_training_prints_and_writes(engine: str, tmp_path: Path) -> None:
    secret = secrets.token_hex(16)
    folder = tmp_path / "run"
    words = [
        "train",
        "ppo",
        "--env",
        "CartPole-v1",
        "--engine",
        engine,
        "--steps",
        "2000",
        "--logdir",
        str(folder),
    ]
    printed = output(["-m", "pipeflow.cli", *words], tmp_path, PIPEFLOW_TEST_PASSWORD=secret)
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert len(files) > 5
    for written in [printed.encode(), *(file.read_bytes() for file in files)]:
        assert secret.encode() not in written
        assert b"PIPEFLOW_TEST_PASSWORD" not in written


@pytest.mark.slow
def test_with_ray_s_tokens_who_has_none_is_refused() -> None:
    told = output(["-c", JOINED], RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32)).splitlines()
    assert told[-2] == "[1, 2, 3]"
    assert re.match(r"Ray at \S+ cannot be reached: .*; .*InvalidAuthToken: ", told[-1]), told
