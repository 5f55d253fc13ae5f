"""Random chains as source text: well typed by construction, and the same with one stage that does not fit.

The generator knows how each operator changes the type of a stream, which can be said in a few lines; the tests
compare that with what mypy computes. Apart from the tests, since it is long.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

HEADER = """\
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self, assert_type

from pipeflow import *
from pipeflow.dsl.sources import Shard


@dataclass(frozen=True)
class Item:
    steps: int = 1

    @classmethod
    def concatenate(cls, items: Sequence[Self], /) -> Self:
        return cls(sum(item.steps for item in items))


class A(Item): ...
class B(Item): ...
class C(Item): ...
class D(Item): ...
class Stranger: ...


class Worker:
    def sample(self) -> A | NotReady: return A()
    def hear(self, message: int, /) -> None: ...


workers = actors(Worker, 2)
"""

# How a function, a method or a state is defined that takes one type and makes another. None of them is called.
DEFINITIONS = {
    "to": "def {name}(item: {taken}) -> {made}: raise NotImplementedError",
    "pieces": "def {name}(item: {taken}) -> list[{made}]: raise NotImplementedError",
    "own": "def {name}(worker: Worker, item: {taken}) -> {made}: raise NotImplementedError",
    "holds": "def {name}(item: {taken}) -> bool: raise NotImplementedError",
    "number": "def {name}(item: {taken}) -> int: raise NotImplementedError",
    "State": (
        "class {name}:\n"
        "    def push(self, item: {taken}, /) -> Iterable[{made}]: raise NotImplementedError\n"
        "    def finish(self) -> Iterable[{made}]: raise NotImplementedError"
    ),
    "Actor": (
        "class {name}:\n"
        "    def work(self, item: {taken}) -> {made}: raise NotImplementedError\n"
        "some_{name} = actors({name}, 1)"
    ),
}


@dataclass(frozen=True)
class Line:
    """A line of a chain, and what it is with a stage that takes another type; empty where no stage states one."""

    text: str
    swapped: str = ""

    def indented(self) -> Line:
        return Line(f"    {self.text}", self.swapped and f"    {self.swapped}")


@dataclass(frozen=True)
class Chain:
    """An expression and what is known about its type.

    Attributes:
        lines: the expression.
        members: the types whose union its items are of.
        shards: the class of the actors that it is still in, or None for a `Stream`.
        merged: whether it is a union whose policy can be set.
        bare: whether it needs parentheses before a method can follow.
        definitions: what the lines use.
    """

    lines: tuple[Line, ...]
    members: tuple[str, ...]
    shards: str | None = None
    merged: bool = False
    bare: bool = False
    definitions: frozenset[str] = frozenset()

    @property
    def item(self) -> str:
        return " | ".join(self.members)

    @property
    def type(self) -> str:
        if self.shards is not None:
            return f"ParallelStream[{self.item}, {self.shards}]"
        return f"Merged[{self.item}]" if self.merged else f"Stream[{self.item}]"

    @property
    def swappable(self) -> list[int]:
        return [index for index, line in enumerate(self.lines) if line.swapped]

    def source(self, swap: int | None = None) -> list[str]:
        """The lines, one of them with its other stage."""
        return [line.swapped if index == swap else line.text for index, line in enumerate(self.lines)]


@dataclass(frozen=True)
class Pair:
    """A chain, and the line of it that its twin has another stage on."""

    chain: Chain
    swap: int

    @property
    def accepted(self) -> list[str]:
        """Statements that must type-check."""
        lines = (f"    {line}" for line in self.chain.source())
        return ["plan = (", *lines, ")", f"assert_type(plan, {self.chain.type})"]

    @property
    def rejected(self) -> list[str]:
        """Statements with one error."""
        return ["(", *(f"    {line}" for line in self.chain.source(self.swap)), ")"]


def pairs() -> list[Pair]:
    """A hundred chains, always the same ones."""
    rng = random.Random(20260)
    drawn: dict[tuple[Line, ...], Chain] = {}
    while len(drawn) < 100:
        chain = _random_chain(rng)
        drawn[chain.lines] = chain
    return [Pair(chain, rng.choice(chain.swappable)) for chain in drawn.values()]


def write_chains(folder: Path) -> None:
    """The modules accepted_chains and rejected_chains, a function a chain."""
    drawn = pairs()
    definitions = sorted(set[str]().union(*(pair.chain.definitions for pair in drawn)))
    for name, bodies in (
        ("accepted_chains", [pair.accepted for pair in drawn]),
        ("rejected_chains", [pair.rejected for pair in drawn]),
    ):
        functions = [
            "\n".join([f"def chain_{number}() -> None:", *(f"    {line}" for line in body)])
            for number, body in enumerate(bodies)
        ]
        text = "\n\n\n".join([HEADER, *definitions, *functions]) + "\n"
        (folder / f"{name}.py").write_text(text, encoding="utf-8")


# Growing a chain


def _random_chain(rng: random.Random) -> Chain:
    """A well-typed chain of a source and up to nine operators."""
    chain = _source(rng)
    for _ in range(rng.randint(2, 9)):
        chain = rng.choice(OPERATORS)(chain, rng) or chain
    return chain if chain.swappable else _function(chain, rng)


def _source(rng: random.Random) -> Chain:
    item = rng.choice("ABCD")
    return rng.choice(
        [
            Chain((Line(f"from_items([{item}()])"),), (item,)),
            Chain((Line(f"from_shards([[{item}()], []])"),), (item,), shards=f"Shard[{item}]"),
            Chain((Line("workers.produce(Worker.sample)"),), ("A",), shards="Worker"),
        ]
    )


def _piped(chain: Chain, operator: str, swapped: str = "", members: tuple[str, ...] = ()) -> Chain:
    line = Line(f"| {operator}", swapped and f"| {swapped}")
    return replace(
        chain, lines=(*chain.lines, line), members=members or chain.members, merged=False, bare=True
    )


def _called(chain: Chain, method: str, swapped: str = "", members: tuple[str, ...] = ()) -> Chain:
    lines = _closed(chain)
    last = Line(f"{lines[-1].text}.{method}", swapped and f"{lines[-1].text}.{swapped}")
    # A swapped stage on the same line as another would make two candidates of one line.
    last = last if not lines[-1].swapped else Line(last.text)
    return replace(
        chain, lines=(*lines[:-1], last), members=members or chain.members, merged=False, bare=False
    )


def _closed(chain: Chain) -> tuple[Line, ...]:
    if not chain.bare:
        return chain.lines
    return (Line("("), *(line.indented() for line in chain.lines), Line(")"))


def _defined(chain: Chain, kind: str, made: str = "") -> tuple[Chain, str, str]:
    """The chain with a definition that takes its items and another that does not, and the names of both."""
    names: list[str] = []
    for taken in (chain.item, "Stranger"):
        name = re.sub(r"\W+", "_", f"{kind}_{taken}_{made}").strip("_")
        definition = DEFINITIONS[kind].format(name=name, taken=taken, made=made)
        chain = replace(chain, definitions=chain.definitions | {definition})
        names.append(name)
    return chain, names[0], names[1]


# Operators; None where one does not apply

Operator = Callable[[Chain, random.Random], Chain | None]


def _function(chain: Chain, rng: random.Random) -> Chain:
    made = rng.choice(["A", "B", "C", "D", "list[A]"])
    chain, name, other = _defined(chain, "to", made)
    spelling = rng.choice(["{}", "stage({})", "(stage({}) | stage(repr))"])
    members = ("str",) if "repr" in spelling else (made,)
    return _piped(chain, spelling.format(name), spelling.format(other), members)


def _map(chain: Chain, rng: random.Random) -> Chain:
    made = rng.choice("ABCD")
    chain, name, other = _defined(chain, "to", made)
    return _called(chain, f"map({name})", f"map({other})", (made,))


def _placed(chain: Chain, rng: random.Random) -> Chain | None:
    made = rng.choice("ABCD")
    if chain.shards == "Worker":
        chain, name, other = _defined(chain, "own", made)
        return _piped(chain, f"workers.stage({name})", f"workers.stage({other})", (made,))
    if chain.shards is not None:
        return None
    chain, name, other = _defined(chain, "Actor", made)
    limit = rng.choice(["", ".max_in_flight(2)"])
    right, wrong = (f"some_{actor}.stage({actor}.work){limit}" for actor in (name, other))
    return _piped(chain, right, wrong, (made,))


def _expansion(chain: Chain, rng: random.Random) -> Chain:
    made = rng.choice("ABCD")
    kind, spelling = rng.choice([("pieces", "flat_map({})"), ("State", "expand({})")])
    chain, name, other = _defined(chain, kind, made)
    return _piped(chain, spelling.format(name), spelling.format(other), (made,))


def _batch(chain: Chain, _: random.Random) -> Chain:
    return _piped(chain, "batch(2)", members=(f"list[{chain.item}]",))


def _flatten(chain: Chain, _: random.Random) -> Chain | None:
    if len(chain.members) > 1 or not chain.item.startswith("list["):
        return None
    return _piped(chain, "flatten()", members=tuple(chain.item[len("list[") : -1].split(" | ")))


def _counting(chain: Chain, rng: random.Random) -> Chain | None:
    operator = rng.choice(["concat(3)", "once_per_steps(3)"])
    return _piped(chain, operator) if chain.item in ("A", "B", "C", "D") else None


def _gate(chain: Chain, rng: random.Random) -> Chain:
    anywhere = ["take(3)", "every(2)", "shuffle(2, seed=1)"]
    shards = {None: ["buffer(2)", "throttle(0.1)", "every_seconds(0.1)"], "Worker": ["select_shards(1)"]}
    return _piped(chain, rng.choice([*anywhere, *shards.get(chain.shards, [])]))


def _filter(chain: Chain, _: random.Random) -> Chain:
    chain, name, other = _defined(chain, "holds")
    return _called(chain, f"filter({name})", f"filter({other})")


def _looking(chain: Chain, rng: random.Random) -> Chain | None:
    if chain.shards is not None:
        return None
    kind, operator = rng.choice([("number", "tap"), ("holds", "until")])
    chain, name, other = _defined(chain, kind)
    return rng.choice([_piped, _called])(chain, f"{operator}({name})", f"{operator}({other})")


def _gather(chain: Chain, rng: random.Random) -> Chain | None:
    if chain.shards is None:
        return None
    operator = rng.choice(["gather_sync()", "gather_async(2)", "gather_rounds()"])
    members = (f"list[{chain.item}]",) if "rounds" in operator else chain.members
    return replace(_piped(chain, operator, members=members), shards=None)


def _round_trip(chain: Chain, rng: random.Random) -> Chain | None:
    if chain.shards != "Worker":
        return None
    sourced = replace(_piped(chain, "gather_async().with_source()"), shards=None)
    if rng.random() < 0.5:
        sourced = _batch(sourced, rng)
    sent = _placed(sourced, rng)
    assert sent is not None
    sent, name, other = _defined(sent, "number")
    reply, wrong = (f"reply(Worker.hear, {function})" for function in (name, other))
    return rng.choice([_piped(sent, reply, wrong), _called(sent, reply)])


def _again(chain: Chain, rng: random.Random) -> Chain | None:
    """Back into actors, and gathered again."""
    if chain.shards is not None:
        return None
    spread = replace(_piped(chain, rng.choice(["workers.scatter()", "workers.broadcast()"])), shards="Worker")
    inside = _placed(spread, rng)
    assert inside is not None
    return replace(_piped(inside, "gather_sync()"), shards=None)


def _zip(chain: Chain, rng: random.Random) -> Chain | None:
    if chain.shards is not None:
        return None
    item = rng.choice("ABCD")
    return _called(chain, f"zip(from_items([{item}()]))", members=(f"tuple[{chain.item}, {item}]",))


def _union(chain: Chain, rng: random.Random) -> Chain | None:
    if chain.shards is not None:
        return None
    other = _source(rng)
    always: list[Callable[[Chain, random.Random], Chain]] = [_function, _expansion, _batch, _gate]
    for operator in rng.choices(always, k=rng.randint(1, 3)):
        other = operator(other, rng)
    other = _gather(other, rng) or other
    added = tuple(member for member in other.members if member not in chain.members)
    if rng.random() < 0.3:
        other, added = _piped(other, "drain"), ()
    branches = (*_closed(chain), *_joined("& ", _closed(replace(other, bare=True))))
    union = replace(
        chain,
        lines=branches,
        members=(*chain.members, *added),
        merged=True,
        bare=True,
        definitions=chain.definitions | other.definitions,
    )
    policies = ["round_robin()", "async_()", "prioritised()"]
    if added and set(union.members) <= set("ABCD"):
        policies = ["by_steps(1, 2)"]
    return _called(union, rng.choice(policies)) if rng.random() < 0.5 else union


def _joined(sign: str, lines: tuple[Line, ...]) -> tuple[Line, ...]:
    return (Line(sign + lines[0].text), *lines[1:])


def _outlet(chain: Chain, _: random.Random) -> Chain | None:
    return _called(chain, "fork(2, buffer=4)[0]") if chain.shards is None else None


OPERATORS: list[Operator] = [
    _function,
    _function,
    _map,
    _placed,
    _placed,
    _expansion,
    _batch,
    _flatten,
    _counting,
    _gate,
    _filter,
    _looking,
    _gather,
    _gather,
    _round_trip,
    _again,
    _zip,
    _union,
    _outlet,
]
