"""Hypothesis strategies that draw whole plans, and the schedules to run them under. They need hypothesis.

A plan is drawn as the text of a program that makes it, so what hypothesis prints for a failure can be pasted, and
the lines that errors and violations name are lines of that text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.vendor.pretty import RepresentationPrinter
from typing_extensions import override

from pipeflow.dsl import Stream
from pipeflow.testing.schedules import Schedule

T = TypeVar("T")
# Takes the expression of a stream and returns that of a longer one.
Step = Callable[[str], str]

_IMPORTS = "from pipeflow import *\nfrom pipeflow.testing.parts import *\n"


@dataclass(frozen=True)
class WrittenPlan:
    """A plan as the text that makes it; the last statement binds ``plan``."""

    code: str

    def build(self) -> Stream[int]:
        """The plan, made anew."""
        names: dict[str, Any] = {}
        exec(compile(self.code, "<plan>", "exec"), names)
        plan: Stream[int] = names["plan"]
        return plan

    @override
    def __repr__(self) -> str:
        return f"the plan of\n\n{self.code}"

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        """How hypothesis shows it: as text, not as a string in quotes."""
        printer.text(repr(self))


def plans(*, max_nodes: int = 10, restarts: int = 0, faults: bool = False) -> st.SearchStrategy[WrittenPlan]:
    """Plans of whole numbers with any of the operators, from the parts of `pipeflow.testing.parts`.

    They end, in a `DeadlockError` where a fork's consumers or a source that is never ready leave no other end.

    Args:
        max_nodes: about how many stages, sources included.
        restarts: how often the actors of a group may be started again.
        faults: whether stages that raise may be drawn.
    """
    return st.composite(_written)(max_nodes, restarts, faults)


def schedules(*, max_crashes: int = 0) -> st.SearchStrategy[Schedule]:
    """Seeds of the simulation, with at most so many deaths of actors."""
    return st.builds(Schedule, seed=st.integers(0, 2**16), crashes=st.integers(0, max_crashes))


def _written(draw: st.DrawFn, max_nodes: int, restarts: int, faults: bool) -> WrittenPlan:
    writer = _Writer(draw, max_nodes, restarts, faults)
    plan = writer.joined()
    return WrittenPlan("\n".join([_IMPORTS, *writer.statements, f"plan = {plan}", ""]))


class _Writer:
    """Writes one plan. Expressions are strings; what is used more than once gets a name in `statements`."""

    def __init__(self, draw: st.DrawFn, max_nodes: int, restarts: int, faults: bool) -> None:
        self._draw = draw
        self._left = max_nodes
        self._restarts = f".restarts({restarts})" if restarts else ""
        self._faults = faults
        self._names: dict[str, int] = {}
        self._groups: dict[str, list[str]] = {"workers": [], "learner": [], "store": []}
        self._outlets: list[str] = []
        self._starts = 0
        # How many branches a union without a policy has, which merges with a union around it.
        self._widths: dict[str, int] = {}
        # How many actors the groups have, by name.
        self._counts: dict[str, int] = {}
        self.statements: list[str] = []

    def joined(self) -> str:
        """A whole plan: what the outlets of forks feed is joined until none is left over."""
        plan = self._stream(depth=2)
        while self._outlets:
            other = self._transformed(self._outlets.pop(0), self._transforms)
            plan = self._union([plan, other])
            if self._left > 0:
                plan = self._transformed(plan, self._transforms)
        return plan

    # Streams

    def _stream(self, depth: int) -> str:
        kinds = [self._from_items, self._gathered]
        if depth > 0 and self._left > 3:
            kinds += [lambda: self._nested(depth), lambda: self._forked(depth)]
        if self._outlets:
            kinds.append(lambda: self._outlets.pop(0))
        return self._transformed(self._one_of(kinds)(), self._transforms)

    def _from_items(self) -> str:
        self._left -= 1
        return f"from_items({self._range()})"

    def _nested(self, depth: int) -> str:
        if self._rarely():
            self._left -= 1
            return f"({self._stream(depth - 1)}).zip({self._stream(depth - 1)}) | pair_sum"
        return self._union([self._stream(depth - 1) for _ in range(self._number(2, 3))])

    def _forked(self, depth: int) -> str:
        source = self._stream(depth - 1)
        self._left -= 1
        buffer = self._number(1, 3)
        name = self._name("out")
        outlets = [f"{name}_a", f"{name}_b"]
        operator = self._one_of([f"fork(2, buffer={buffer})", f"partition(is_even, buffer={buffer})"])
        self.statements.append(f"{', '.join(outlets)} = ({source}).{operator}")
        self._outlets.append(outlets[1])
        return outlets[0]

    def _union(self, branches: Sequence[str]) -> str:
        self._left -= 1
        policy = self._one_of(["async", "round_robin", "by_steps", "prioritised", "async", "round_robin"])
        if policy == "by_steps":
            branches = [f"({branch}).map(Counted)" for branch in branches]
        written = [f"({branch} | drain)" if self._rarely() else f"({branch})" for branch in branches]
        if all(branch.endswith("| drain)") for branch in written):
            written[-1] = f"({branches[-1]})"
        union = f"({' & '.join(written)})"
        width = sum(self._widths.get(branch[1:-1], 1) for branch in written)
        match policy:
            case "async":
                self._widths[union] = width
                return union
            case "prioritised":
                return f"{union}.prioritised()"
            case _:
                weights = [str(self._number(1, 2)) for _ in range(width)]
                return f"{union}.{policy}({', '.join(weights)})"

    def _transforms(self) -> list[Step]:
        found: list[Step] = [
            lambda s: f"{s} | double",
            lambda s: f"({s}).map(double, here=True)",
            lambda s: f"{s} | flat_map(both)",
            lambda s: f"({s}).filter(is_even)",
            lambda s: f"{s} | batch({self._number(1, 3)}) | total",
            lambda s: f"{s} | batch(2) | flatten()",
            lambda s: f"{s} | take({self._length()})",
            lambda s: f"{s} | every(2)",
            lambda s: f"({s}).until(ends_with_three)",
            lambda s: f"{s} | tap(look)",
            lambda s: f"{s} | {self._placed('learner', 'Learner.update')}",
            lambda s: f"{s} | {self._placed('store', 'Store.add')}",
            lambda s: f"{s} | {self._group('learner')}.send(Learner.note)",
            lambda s: f"{s} | {self._group('store')}.send(Store.add)",
            lambda s: f"{s} | {self._sync()}",
            lambda s: f"{s} | shuffle({self._number(1, 2)}, seed=1)",
            lambda s: f"({s}).map(Counted) | {self._counting()}",
            lambda s: f"{s} | buffer({self._number(1, 2)})",
            lambda s: f"{s} | {self._one_of(['throttle', 'every_seconds'])}(0.004)",
            lambda s: f"{s} | {self._scattered('workers', 'Worker.grade')}",
            lambda s: f"{s} | {self._scattered('store', 'Store.add')}",
            lambda s: f"{s} | update_target({self._group('learner')}{self._every()})",
        ]
        return [*found, *self._faulty()]

    def _placed(self, group: str, method: str) -> str:
        placed = f"{self._group(group)}.stage({method})"
        if not method.endswith("_all") and self._rarely():
            placed += ".repeat(2)"
        in_flight = self._number(1, 3)
        if in_flight > 1:
            placed += f".max_in_flight({in_flight})"
        return placed + self._one_of(["", ".unordered()"])

    def _scattered(self, group: str, method: str) -> str:
        name = self._group(group)
        spread = self._one_of(["scatter", "broadcast"])
        gather = self._one_of(["gather_sync()", "gather_rounds() | total"])
        self._left -= 1
        return f"{name}.{spread}() | {name}.stage({method}) | {gather}"

    def _counting(self) -> str:
        return self._one_of([f"concat({self._number(2, 4)})", f"once_per_steps({self._number(2, 4)})"])

    def _sync(self) -> str:
        learner, workers = self._group("learner", single=True), self._group("workers")
        return f"sync_weights({learner}, {workers}{self._every()})"

    def _every(self) -> str:
        return self._one_of(["", ", every=2"])

    def _faulty(self) -> list[Step]:
        if not self._faults:
            return []
        return [lambda s: f"{s} | fail_on_three", lambda s: f"{s} | stop_on_three"]

    # Before the gather

    def _gathered(self) -> str:
        parallel, workers = self._parallel()
        if self._left > 2 and self._rarely():
            parallel, workers = f"(({parallel}) & ({self._parallel()[0]}))", None
        self._left -= 1
        gathers: list[Callable[[], str]] = [
            lambda: "gather_sync()",
            lambda: "gather_rounds() | total",
            lambda: f"gather_async({self._number(1, 3)})",
            lambda: f"gather_async({self._number(1, 3)}) | max_lag({self._number(0, 1)})",
            lambda: f"gather_async({self._number(1, 3)}) | max_lag({self._number(1, 2)}, wait=True)",
        ]
        if workers is not None and self._rarely():
            return self._answered(parallel)
        if workers is not None:
            gathers.append(lambda: f"gather_rounds() | {workers}.broadcast() | total | gather_sync()")
        return f"{parallel} | {self._one_of(gathers)()}"

    def _answered(self, parallel: str) -> str:
        """A stream whose items go back, as messages, to the workers that they came from."""
        self._left -= 1
        mode = self._one_of(["gather_sync()", "gather_async()", "gather_async(2)"])
        size = self._number(2, 3)
        middles: list[Callable[[], str]] = [
            lambda: "",
            lambda: f" | {self._placed('learner', 'Learner.update')}",
            lambda: f" | batch({size}) | {self._placed('learner', 'Learner.update_all')}",
            lambda: f" | concat({size}) | {self._placed('learner', 'Learner.update')}",
            lambda: f" | buffer(1) | concat({size})",
            lambda: f" | batch({size})",
        ]
        middle = self._one_of(middles)()
        # Lists go to the workers as one number, and on as another.
        listed = middle.endswith(f"batch({size})")
        message, rest = ("total_as_weights", " | total") if listed else ("as_weights", "")
        sourced = f"({parallel}).map(Counted) | {mode}.with_source(){middle}"
        if self._one_of([False, True]):
            return f"({sourced}).reply(Worker.set_weights, {message}){rest}"
        return f"{sourced} | reply_weights({self._group('learner')}{self._every()}){rest}"

    def _parallel(self) -> tuple[str, str | None]:
        """Shards, and the name of their workers where they are workers."""
        self._left -= 1
        kind = self._one_of(["shards", "workers", "store"])
        if kind == "workers":
            workers = self._group("workers")
            grading: list[Step] = [lambda s: f"{s} | {workers}.stage(Worker.grade)"]
            source = f"{workers}.produce(Worker.sample){self._selected(self._counts[workers])}"
            return self._transformed(source, lambda: self._parallel_transforms() + grading), workers
        if kind == "store":
            store = self._group("store")
            source = f"{store}.produce(Store.sample){self._selected(self._counts[store])}"
        else:
            count = self._number(1, 3)
            source = f"from_shards([{', '.join(self._range() for _ in range(count))}]){self._selected(count)}"
        return self._transformed(source, self._parallel_transforms), None

    def _selected(self, count: int) -> str:
        if not self._rarely():
            return ""
        orders = [f"{count - 1}", *(["1, 0"] if count > 1 else [])]
        return f" | select_shards({self._one_of(orders)})"

    def _parallel_transforms(self) -> list[Step]:
        found: list[Step] = [
            lambda s: f"{s} | double",
            lambda s: f"({s}).filter(is_even)",
            lambda s: f"{s} | flat_map(both)",
            lambda s: f"{s} | batch(2) | flatten()",
            lambda s: f"{s} | take({self._number(0, 2)})",
            lambda s: f"{s} | every(2)",
            lambda s: f"{s} | shuffle(1, seed=1)",
            lambda s: f"({s}).map(Counted) | {self._counting()}",
        ]
        return [*found, *self._faulty()]

    # Pieces

    def _transformed(self, stream: str, transforms: Callable[[], list[Step]]) -> str:
        for _ in range(self._number(0, 2)):
            if self._left > 0:
                self._left -= 1
                stream = self._one_of(transforms())(stream)
        return stream

    def _group(self, kind: str, *, single: bool = False) -> str:
        known = self._groups[kind]
        if known and not self._rarely():
            return self._one_of(known)
        name = self._name(kind)
        count = 1 if kind == "learner" or single else self._number(1, 2)
        match kind:
            case "workers":
                self._starts += 10
                made = f"actors(Worker, {count}, {self._length()}, {self._starts})"
            case "learner":
                made = f"actors(Learner, {count})"
            case _:
                made = f"actors(Store, {count}, {self._number(1, 3)}, {self._length()})"
        self.statements.append(f"{name} = {made}{self._restarts}")
        known.append(name)
        self._counts[name] = count
        return name

    def _name(self, stem: str) -> str:
        self._names[stem] = self._names.get(stem, 0) + 1
        number = self._names[stem]
        return stem if number == 1 else f"{stem}_{number}"

    def _range(self) -> str:
        self._starts += 10
        return f"range({self._starts}, {self._starts + self._length()})"

    def _length(self) -> int:
        return self._one_of([1, 2, 3, 4, 0])

    def _number(self, least: int, most: int) -> int:
        return self._draw(st.integers(least, most))

    def _one_of(self, options: Sequence[T]) -> T:
        return self._draw(st.sampled_from(options))

    def _rarely(self) -> bool:
        return self._number(0, 3) == 3
