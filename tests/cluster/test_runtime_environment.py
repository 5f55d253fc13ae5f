"""What the nodes lack reaches the workers: a module of the driver's folder, variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeflow import EngineError, actors, gather_sync
from pipeflow.lowering.engines.ray import Ray
from tests.cluster import scenarios
from tests.cluster.nodes import Driver
from tests.lowering.actors import Counter

MODULE = """
import os


class OwnWorker:
    def make(self) -> tuple[str, str, str]:
        return __file__, os.getcwd(), os.environ.get("FROM_THE_DRIVER", "")
"""


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("field", ["working_dir", "py_modules"])
def test_a_module_that_only_the_driver_has_runs_in_workers_of_other_nodes(
    driver: Driver, field: str, tmp_path: Path
) -> None:
    package = tmp_path / "own_workers"
    package.mkdir()
    (package / "__init__.py").write_text(MODULE, encoding="utf-8")
    sent: dict[str, object] = (
        {"working_dir": str(tmp_path)} if field == "working_dir" else {"py_modules": [str(package)]}
    )
    made = driver.do(scenarios.made_by_a_sent_module, str(tmp_path), sent)
    assert len(made) == 2
    for file, folder, variable in made:
        assert f"/runtime_resources/{field}_files/" in file
        assert (f"/runtime_resources/{field}_files/" in folder) == (field == "working_dir")
        assert variable == "sent"


def test_a_field_that_ray_does_not_know_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^Ray\(runtime_env=...\) has no field workdir; its fields are conda, .*pip"
    ):
        Ray(runtime_env={"workdir": "."})


@pytest.mark.parametrize(
    ("runtime_env", "reason"),
    [
        ({"working_dir": "/there/is/none"}, "/there/is/none is not a valid path."),
        ({"env_vars": {"A": 1}}, r"runtime_env\['env_vars'\] must be of type Dict\[str, str\]"),
        ({"py_modules": "one"}, "`py_modules` must be a list of strings"),
    ],
)
def test_a_value_that_a_field_cannot_have_is_refused(runtime_env: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=rf"^Ray\(runtime_env=\.\.\.\) is wrong: {reason}"):
        Ray(runtime_env=runtime_env)


@pytest.mark.ray
def test_workers_of_a_connection_that_is_there_cannot_be_given_more(ray_runtime: None) -> None:
    plan = actors(Counter, 1).produce(Counter.next_number) | gather_sync()
    with pytest.raises(
        EngineError, match=r"connected to Ray at \S+ already, .* give the runtime_env to that ray.init"
    ):
        next(plan.run(Ray(runtime_env={"env_vars": {"A": "1"}})))
