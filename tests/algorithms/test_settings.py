"""Every number of every configuration has a range, and one outside of it is refused by name."""

from __future__ import annotations

import dataclasses
import math
from typing import get_type_hints

import pytest

from pipeflow.algorithms.catalogue import CATALOGUE
from pipeflow.algorithms.dqn import DQNConfig
from pipeflow.algorithms.ppo import PPOConfig
from pipeflow.algorithms.settings import Count, Fraction, Positive, Settings


@dataclasses.dataclass(frozen=True)
class Example(Settings):
    count: Count = 1
    rate: Positive | None = None
    widths: tuple[Count, ...] = ()
    share: Fraction = 0.0
    free: float = -1.0


@pytest.mark.parametrize(
    ("config", "setting", "message"),
    [
        (PPOConfig, {"lr": -1.0}, "lr must be more than 0, got -1.0"),
        (PPOConfig, {"gamma": 2.0}, "gamma must lie in [0, 1], got 2.0"),
        (PPOConfig, {"hidden": (64, 0)}, "hidden must be at least 1, got 0"),
        (PPOConfig, {"max_grad_norm": 0.0}, "max_grad_norm must be more than 0, got 0.0"),
        (DQNConfig, {"epsilon_start": 1.5}, "epsilon_start must lie in [0, 1], got 1.5"),
        (DQNConfig, {"priority_alpha": -0.1}, "priority_alpha must be at least 0, got -0.1"),
        (Example, {"count": 0}, "count must be at least 1, got 0"),
        (Example, {"rate": math.inf}, "rate must be finite, got inf"),
        (Example, {"rate": math.nan}, "rate must be finite, got nan"),
        (Example, {"share": math.nextafter(1.0, 2.0)}, "share must lie in [0, 1], got 1.0000000000000002"),
    ],
)
def test_a_setting_out_of_its_range_is_refused_by_name(
    config: type[Settings], setting: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match="must") as refusal:
        config(**setting)
    assert str(refusal.value) == message


def test_what_lies_on_a_bound_and_what_is_not_given_is_accepted() -> None:
    assert Example(1, None, (), 1.0) == Example(share=1.0)
    assert Example(rate=5e-324, widths=(1, 2), share=0.0).free == -1.0


@pytest.mark.parametrize("name", [entry.name for entry in CATALOGUE])
def test_no_number_of_an_algorithm_is_without_a_range(name: str) -> None:
    (entry,) = [entry for entry in CATALOGUE if entry.name == name]
    kind = entry.load().configuration
    bare, ranged = get_type_hints(kind), get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        if bare[field.name] in (int, float, int | None, float | None, tuple[int, ...]):
            assert "Annotated" in repr(ranged[field.name]), f"{field.name} has no range"
