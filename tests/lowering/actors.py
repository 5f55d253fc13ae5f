"""Small actors whose state shows what a run did to them, shared by the tests of how plans run.

In a module of their own, since Ray's workers import them by name.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from typing_extensions import override

from pipeflow.dsl import Ended, NotReady, current_shard


@final
class Counter:
    """Counts up from 1, to `limit` if there is one."""

    def __init__(self, limit: int | None = None) -> None:
        self._count = 0
        self._limit = limit

    def next_number(self) -> int | Ended:
        """1, 2, 3, ..."""
        if self._count == self._limit:
            return Ended()
        self._count += 1
        return self._count

    def next_tagged(self) -> tuple[int, int] | Ended:
        """The shard's index beside the number."""
        number = self.next_number()
        return number if isinstance(number, Ended) else (current_shard(), number)

    def started(self) -> int:
        """How many numbers were asked for."""
        return self._count

    def scaled(self, number: int) -> int:
        """100 for each shard before this one, plus the number."""
        return 100 * current_shard() + number

    def pid(self) -> int:
        """The process it lives in."""
        return os.getpid()


class Sample(NamedTuple):
    """What a `Worker` makes: the shard, how many it made before, and the version of its weights."""

    shard: int
    k: int
    version: int


@final
class Worker:
    """Acts with weights that are a version number."""

    def __init__(self) -> None:
        self._version = -1
        self._made = 0
        self._messages: list[int] = []

    def sample(self) -> Sample:
        """The next sample, with the version that it reflects."""
        self._made += 1
        return Sample(current_shard(), self._made - 1, self._version)

    def set_weights(self, weights: int, /) -> None:
        """Act with this version."""
        self._version = weights
        self._messages.append(weights)

    def messages(self) -> list[int]:
        """Every version that it was sent, in order."""
        return self._messages

    def started(self) -> int:
        """How many samples were asked for."""
        return self._made

    def doubled(self, number: int) -> int:
        """A method that other classes have too."""
        return 2 * number


class Rows(NamedTuple):
    """A batch that counts its steps, and says what it is of."""

    steps: int
    name: str = ""


@dataclass(frozen=True)
class Rolled:
    """What a `Roller` makes; can be joined."""

    steps: int

    @classmethod
    def concatenate(cls, items: Sequence[Rolled], /) -> Rolled:
        """One with the steps of all."""
        return cls(sum(item.steps for item in items))


@final
class Roller:
    """Makes batches of three steps."""

    def roll(self) -> Rolled:
        """The next batch."""
        return Rolled(3)


@final
class RowStore:
    """A replay buffer of rows: gives nothing before it holds `warm` steps."""

    def __init__(self, warm: int) -> None:
        self._held = 0
        self._warm = warm

    def add(self, rows: Rows) -> Rows:
        """Keep rows and pass them on."""
        self._held += rows.steps
        return rows

    def sample(self) -> Rows | NotReady:
        """Four rows."""
        return NotReady() if self._held < self._warm else Rows(4, "replayed")

    def held(self) -> Rows:
        """As many steps as it holds."""
        return Rows(self._held, "held")


@final
class Learner:
    """Its weights are the number of its updates."""

    def __init__(self) -> None:
        self._version = 0
        self._targets: list[int] = []

    def update(self, sample: Sample) -> Sample:
        """Learn from a sample and pass it on."""
        self._version += 1
        return sample

    def update_round(self, samples: list[Sample]) -> list[Sample]:
        """Learn from all samples of a round at once."""
        self._version += 1
        return samples

    def weights(self) -> int:
        """The version."""
        return self._version

    def update_target(self) -> None:
        """The target is what the weights are now."""
        self._targets.append(self._version)

    def targets(self) -> list[int]:
        """Every version that was the target."""
        return self._targets


@final
class Recorder:
    """Notes what it is given."""

    def __init__(self) -> None:
        self._notes: list[object] = []

    def note(self, item: object) -> object:
        """Note an item and pass it on."""
        self._notes.append(item)
        return item

    def note_number(self, number: int) -> int:
        """Note a number and pass it on."""
        self._notes.append(number)
        return number

    def notes(self) -> list[object]:
        """All notes, in order."""
        return self._notes


@final
class Store:
    """A replay buffer: gives nothing before it holds `warm` items."""

    def __init__(self, warm: int = 1) -> None:
        self._items: list[int] = []
        self._warm = warm
        self._given = 0

    def add(self, item: int) -> int:
        """Keep an item; how many there are now."""
        self._items.append(item)
        return len(self._items)

    def sample(self) -> int | NotReady:
        """The items in turn."""
        if len(self._items) < self._warm:
            return NotReady()
        self._given += 1
        return self._items[(self._given - 1) % len(self._items)]

    def items(self) -> list[int]:
        """What it holds."""
        return self._items


@final
class Arithmetic:
    """A stage without state that knows where it runs."""

    def square(self, number: int) -> int:
        """The number squared."""
        return number * number

    def total(self, numbers: list[int]) -> int:
        """The sum."""
        return sum(numbers)

    def where(self, number: int) -> tuple[int, int]:
        """The index of the actor beside the number."""
        return current_shard(), number

    def late(self, number: int) -> int:
        """The number, after a delay that makes its neighbours overtake it."""
        time.sleep((number * 7 % 5) * 0.004)
        return number

    def held_up_by_first(self, number: int) -> tuple[int, int]:
        """As `where`; the first number takes long."""
        time.sleep(0.5 if number == 0 else 0.0)
        return self.where(number)

    def late_if_first(self, number: int) -> int:
        """The number; the first one takes so long that all others could overtake it."""
        time.sleep(0.3 if number == 0 else 0.001)
        return number


@final
class Averager:
    """A worker of an all-reduce: its gradient is its index plus all that was applied so far."""

    def __init__(self) -> None:
        self._sum = 0.0

    def gradient(self) -> float:
        """The next gradient."""
        return current_shard() + self._sum

    def apply(self, gradient: float) -> float:
        """Apply a gradient; the sum of all."""
        self._sum += gradient
        return self._sum


@final
class Closing:
    """Writes a file when it is closed, and when it is built."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._write("built")

    def pid(self) -> int:
        """The process it lives in."""
        return os.getpid()

    def fail(self) -> int:
        """End the run."""
        message = "on purpose"
        raise ValueError(message)

    def close(self) -> None:
        """Leave word."""
        self._write("closed")

    def _write(self, what: str) -> None:
        with open(os.path.join(self._folder, f"{what}-{current_shard()}"), "w", encoding="utf-8") as file:
            file.write(str(os.getpid()))


@final
class Failing:
    """Every way in which code in an actor can fail."""

    def __init__(self, when_built: bool = False, when_closed: bool = False) -> None:
        self._when_closed = when_closed
        self._count = 0
        if when_built:
            message = "not built"
            raise ValueError(message)

    def close(self) -> None:
        """Fail if told to."""
        if self._when_closed:
            message = "not closed"
            raise ValueError(message)

    def third_fails(self) -> int:
        """Two numbers, then an error."""
        self._count += 1
        if self._count == 3:
            message = "the third"
            raise LookupError(message)
        return self._count

    def number(self) -> int:
        """Numbers for ever."""
        self._count += 1
        return self._count

    def stops(self) -> int:
        """What a careless `next` raises."""
        return next(iter(()))

    def odd_error(self) -> int:
        """An exception that no pickle brings back."""
        raise OddError(1, "odd text")

    def dies(self) -> int:
        """The process is gone."""
        os._exit(3)

    def refuse(self, item: object) -> object:
        """A stage, or the handler of a message, that refuses everything."""
        message = f"refused {item!r}"
        raise ValueError(message)

    def set_weights(self, weights: int, /) -> None:
        """As `refuse`."""
        self.refuse(weights)

    def stops_at(self, item: object) -> object:
        """A stage that raises `StopIteration`."""
        raise StopIteration(item)


class OddError(Exception):
    """Its constructor wants more than `Exception` hands on."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Sealed:
    """An item that no process but those of the actors may unpickle."""

    def __init__(self, number: int, driver: int) -> None:
        self.number = number
        self.driver = driver

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return _unsealed, (self.number, self.driver)

    @property
    def steps(self) -> int:
        """For `concat`."""
        return 1

    @classmethod
    def concatenate(cls, items: Sequence[Sealed], /) -> Sealed:
        """For `concat`."""
        return Sealed(sum(item.number for item in items), items[0].driver)


def _unsealed(number: int, driver: int) -> Sealed:
    if os.getpid() == driver:
        message = "the driver has read an item that it does not need"
        raise AssertionError(message)
    return Sealed(number, driver)


@final
class Sealer:
    """Makes, and takes, sealed items."""

    def __init__(self, driver: int) -> None:
        self._driver = driver
        self._count = 0
        self._weights = 0

    def make(self) -> Sealed:
        """The next sealed number."""
        self._count += 1
        return Sealed(self._count, self._driver)

    def open(self, item: Sealed) -> int:
        """The number inside."""
        return item.number

    def join(self, items: list[Sealed]) -> Sealed:
        """One item with the sum of the numbers, sealed again."""
        return Sealed.concatenate(items)

    def open_all(self, items: list[Sealed]) -> list[int]:
        """The numbers inside."""
        return [item.number for item in items]

    def weights(self) -> Sealed:
        """Sealed weights."""
        return Sealed(-1, self._driver)

    def set_weights(self, weights: Sealed, /) -> None:
        """Take sealed weights."""
        self._weights = weights.number

    def taken(self) -> int:
        """The weights that it was given."""
        return self._weights
