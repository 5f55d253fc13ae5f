"""docs/cluster.md, docs/security.md and examples/cluster: programs and commands run, files fit each other."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

from tests.cluster import scenarios
from tests.cluster.nodes import Driver

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "cluster"
CLUSTER = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
SECURITY = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", CLUSTER, re.DOTALL)
COMMANDS = [line.strip() for line in CLUSTER.splitlines() if line.startswith("    ")]
ADDRESS = "10.0.0.1:6379"


# `Any`: what others' formats hold.
def parsed(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))
    return found


def trainings() -> list[list[str]]:
    """The words of every training in the page and the files, without the program's path."""
    files = "\n".join(file.read_text(encoding="utf-8") for file in sorted(EXAMPLES.iterdir()))
    found = re.findall(r"pipeflow (train ppo [^'\n`]*)", "\n".join(COMMANDS) + "\n" + files)
    return [shlex.split(words) for words in found]


RAY = re.search(r"^ray==(.*)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("index", range(len(PROGRAMS)))
def test_a_program_of_the_page_runs_on_three_nodes(driver: Driver, index: int) -> None:
    program = PROGRAMS[index].replace("100_000", "1_000").replace('"working_dir": ".", ', "")
    assert ADDRESS in program
    driver.do(scenarios.a_program_runs, program, ADDRESS)


@pytest.mark.ray
@pytest.mark.slow
def test_the_trainings_of_the_page_and_the_files_run_on_three_nodes(driver: Driver, tmp_path: Path) -> None:
    found = trainings()
    assert len(found) == 5
    joining = [words for words in found if "--address" in words]
    assert len(joining) == 4
    for index, words in enumerate(joining):
        folder = tmp_path / str(index)
        more = ["--steps", "2000", "--workers", "2", "--logdir", str(folder)]
        assert driver.do(scenarios.a_training_runs, [*words, *more]) == 0
        assert (folder / "progress.csv").exists()


def test_every_option_of_a_ray_command_is_one() -> None:
    files = "\n".join(file.read_text(encoding="utf-8") for file in sorted(EXAMPLES.iterdir()))
    found = re.findall(r"ray start (--[^`\n]*)", CLUSTER + files)
    assert len(found) == 5
    told = subprocess.run(
        [sys.executable, "-m", "ray.scripts.scripts", "start", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for options in found:
        assert set(re.findall(r"--[a-z-]+", options)) <= set(re.findall(r"--[a-z-]+", told))


def test_ray_up_takes_its_file_and_starts_as_many_workers_as_it_names() -> None:
    file = parsed("ray_up.yaml")
    taken = prepare_config(file)
    validate_config(taken)
    [kind] = taken["available_node_types"].values()
    count = len(file["provider"]["worker_ips"])
    assert (kind["min_workers"], kind["max_workers"]) == (count, count)


def test_the_job_for_kubernetes_is_in_itself_consistent() -> None:
    spec = parsed("kuberay_rayjob.yaml")["spec"]
    cluster = spec["rayClusterSpec"]
    [head] = cluster["headGroupSpec"]["template"]["spec"]["containers"]
    [group] = cluster["workerGroupSpecs"]
    [worker] = group["template"]["spec"]["containers"]
    for pod in (cluster["headGroupSpec"]["template"]["spec"], group["template"]["spec"]):
        [container] = pod["containers"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {
            each["name"] for each in pod["volumes"]
        }
        assert "/dev/shm" in {mount["mountPath"] for mount in container["volumeMounts"]}
        assert container["resources"]["requests"] == container["resources"]["limits"]
        assert {"name": "RAY_USAGE_STATS_ENABLED", "value": "0"} in container["env"]
    words = shlex.split(spec["entrypoint"])
    cores = group["replicas"] * int(worker["resources"]["limits"]["cpu"])
    assert int(words[words.index("--workers") + 1]) == cores
    folder = words[words.index("--logdir") + 1]
    assert any(folder.startswith(mount["mountPath"] + "/") for mount in head["volumeMounts"])
    assert json.loads(json.loads(cluster["headGroupSpec"]["rayStartParams"]["resources"])) == {"learner": 1}
    assert head["image"] == worker["image"]
    assert f"-t {head['image']} ." in CLUSTER


def test_the_files_name_the_ray_that_is_tested() -> None:
    assert RAY is not None
    version = RAY[1]
    assert parsed("kuberay_rayjob.yaml")["spec"]["rayClusterSpec"]["rayVersion"] == version
    assert f"FROM rayproject/ray:{version}-py311\n" in (EXAMPLES / "Dockerfile").read_text(encoding="utf-8")


def test_every_promise_of_security_names_a_test_that_is_there() -> None:
    texts = (file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
    there = {name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}
    named = set(re.findall(r"`(test_\w+)`", SECURITY))
    assert len(named) == 8
    assert named <= there
