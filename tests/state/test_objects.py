"""The state of an actor that a user wrote: what it says itself, its attributes, and what a derived class adds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn
from typing_extensions import override

from pipeflow.state.objects import load_object_state, object_state
from pipeflow.state.values import StateValue
from pipeflow.state.writing import UnsavableValue
from tests.rl.saved_states import over_disk


class Counter:
    """Says itself what it is."""

    def __init__(self) -> None:
        self._count = 0

    def count(self) -> int:
        self._count += 1
        return self._count

    def state(self) -> dict[str, StateValue]:
        return {"count": self._count}

    def load_state(self, state: Mapping[str, StateValue], /) -> None:
        self._count = int(state["count"])


@dataclass(frozen=True)
class Settings:
    rate: float


class Trainer(Counter):
    """Adds whatever an algorithm may: numbers, a list, a network, a tensor with an optimiser of its own."""

    def __init__(self, rate: float = 0.1) -> None:
        super().__init__()
        self._settings = Settings(rate)
        self._rate, self._name, self._loss = rate, "trainer", nn.functional.mse_loss
        self._baseline = 0.0
        self._seen: list[int] = []
        self._target = nn.Linear(2, 1)
        self._temperature = torch.ones(1, requires_grad=True)
        self._optimizer = torch.optim.Adam([self._temperature], lr=rate)

    def update(self) -> list[float]:
        self._baseline += 1.0
        self._seen.append(self.count())
        torch.autograd.backward((self._temperature * self._baseline).sum())
        self._optimizer.step()
        self._optimizer.zero_grad()
        with torch.no_grad():
            self._target.weight.add_(self._temperature)
        return [
            self._baseline,
            *self._seen,
            self._temperature.item(),
            *self._target.weight.flatten().tolist(),
        ]

    @property
    def rate(self) -> float:
        return self._rate


class Mixed:
    """Has an actor of a derived class within."""

    def __init__(self) -> None:
        self.inner, self.other = Trainer(), Counter()

    def update(self) -> list[float]:
        return [*self.inner.update(), self.other.count()]


@pytest.mark.parametrize("kind", [Trainer, Mixed], ids=["itself", "within another object"])
def test_a_derived_class_goes_on_with_what_it_adds(kind: type[Trainer | Mixed], tmp_path: Path) -> None:
    trained, resumed = kind(), kind()
    trained.update()
    load_object_state(resumed, over_disk(object_state(trained), tmp_path))
    assert [resumed.update() for _ in range(3)] == [trained.update() for _ in range(3)]


def test_settings_are_those_that_the_new_one_was_made_with() -> None:
    resumed = Trainer(rate=0.5)
    load_object_state(resumed, object_state(Trainer()))
    assert (resumed.rate, resumed._settings) == (0.5, Settings(0.5))


class Whole(Trainer):
    """Says all itself, by its own choice."""

    @override
    def state(self) -> dict[str, StateValue]:
        return {**super().state(), "baseline": self._baseline}


class MoreThanWhole(Whole):
    def __init__(self) -> None:
        super().__init__()
        self.more = [1]


def test_a_class_that_says_its_state_says_all_of_it() -> None:
    assert set(object_state(Counter())) == {"own/count"}
    assert set(object_state(Whole())) == {"own/count", "own/baseline"}
    added = object_state(MoreThanWhole())
    assert any(name.startswith("added/") for name in added)
    resumed = MoreThanWhole()
    resumed.more.append(2)
    load_object_state(resumed, added)
    assert resumed.more == [1]


class Decorated(Counter):
    """Sets attributes in every kind of method."""

    def __init__(self) -> None:
        super().__init__()
        self._by_property = self._by_class = self._within = self._never = 0

    @property
    def setting(self) -> int:
        return self._by_property

    @setting.setter
    def setting(self, value: int) -> None:
        self._by_property = value

    @staticmethod
    def set_class(it: Decorated) -> None:
        it._by_class = 2

    def set_within(self) -> None:
        def inner() -> None:
            self._within = 3

        inner()


def test_whatever_method_sets_an_attribute() -> None:
    changed = Decorated()
    changed.setting = 1
    changed.set_class(changed)
    changed.set_within()
    resumed = Decorated()
    load_object_state(resumed, object_state(changed))
    assert (resumed._by_property, resumed._by_class, resumed._within, resumed._never) == (1, 2, 3, 0)


class WithFile(Counter):
    def __init__(self) -> None:
        super().__init__()
        self.log = open(__file__)  # noqa: SIM115  # closed by the test


def test_what_a_derived_class_adds_and_cannot_be_saved_is_named() -> None:
    broken = WithFile()
    with broken.log, pytest.raises(UnsavableValue, match=r"WithFile\.log is of type TextIOWrapper"):
        object_state(broken)


class Shared:
    """Two names of one tensor at first."""

    def __init__(self) -> None:
        self.online = torch.zeros(2, requires_grad=True)
        self.target = self.online


def test_names_that_came_apart_stay_apart() -> None:
    apart = Shared()
    apart.target = torch.ones(2, requires_grad=True)
    resumed = Shared()
    online = resumed.online
    load_object_state(resumed, object_state(apart))
    assert (resumed.online.tolist(), resumed.target.tolist()) == ([0, 0], [1, 1])
    assert resumed.online is online, "an optimiser may hold it"
