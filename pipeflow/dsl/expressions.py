"""What may stand left and right of ``|``: expressions, operators, and what is wrong with anything else.

Apart from `streams`, which adds the types.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Never, NoReturn, Protocol, Self, TypeVar

from typing_extensions import TypeVar as DefaultTypeVar
from typing_extensions import override

from pipeflow.dsl import nodes
from pipeflow.dsl.checks import check_fits, check_linear
from pipeflow.dsl.errors import PlanError
from pipeflow.dsl.explain import explain, to_mermaid
from pipeflow.dsl.item_types import name_of, returned_class, returned_type, taken_type
from pipeflow.dsl.nodes import Node
from pipeflow.dsl.sites import Site, call_site, operator_site

Class = DefaultTypeVar("Class", bound=type[object], default=Never)
Class_co = TypeVar("Class_co", covariant=True)


class ClassObject(Protocol[Class_co]):
    """What every class is and no function: here, a class on the right of ``|`` that nobody called.

    Without it ``stream | SomeClass`` would quietly become a `types.UnionType`, because classes define
    ``__ror__``. With it, `Class` is solved as ``type`` for a class and stays ``Never``, which vanishes from a
    union, for everything else. So the stage after a class is refused as taking no ``type``. A class is no stage:
    call it if it makes one, or map with it (``.map(SomeClass)``).
    """

    def mro(self) -> Sequence[Class_co]: ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class Operator:
    """Anything but a plain callable that may stand on the right of ``|``."""

    name: str
    site: Site = dataclasses.field(default_factory=call_site)

    def named(self, name: str) -> Self:
        """The same operator under a name of the user's, which errors, pictures and statistics then show."""
        return dataclasses.replace(self, name=name)

    @override
    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    if not TYPE_CHECKING:  # hidden from checkers, who shall report `|` on an operator as unsupported

        def __or__(self, right: object) -> NoReturn:
            raise PlanError(misplaced(self, "|", right, call_site()))

        def __and__(self, right: object) -> NoReturn:
            raise PlanError(misplaced(self, "&", right, call_site()))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Expression:
    """What the two kinds of stream share: a node, a name, and a picture."""

    node: Node

    def named(self, name: str) -> Self:
        """The same stream, its last stage under a name of the user's."""
        return type(self)(dataclasses.replace(self.node, name=name))

    def explain(self) -> str:
        """The plan as an indented text: for every stage its name, its type, and where it was written."""
        check_linear(self.node)
        return explain(self.node)

    def to_mermaid(self) -> str:
        """The plan as a Mermaid flowchart."""
        check_linear(self.node)
        return to_mermaid(self.node)

    @override
    def __repr__(self) -> str:
        return f"<{self.node.type_name} {self.node.name} at {self.node.site}>"

    if not TYPE_CHECKING:  # hidden from checkers: `truthy-bool` and "not iterable" are better reports

        def __bool__(self) -> NoReturn:
            raise PlanError(
                f"{call_site()}: a stream has no truth value; join streams with &, not with 'and'"
            )

        def __iter__(self) -> NoReturn:
            advice = "gather it first" if self.node.parallel else "iterate over .run(...)"
            raise PlanError(
                f"{call_site()}: {self.node.type_name} is a description and cannot be iterated; {advice}"
            )

        def __getattr__(self, name: str) -> NoReturn:
            if name in ("round_robin", "by_steps", "prioritised", "async_"):
                raise PlanError(
                    f"{call_site()}: {name} says how a union is served, and {self.node.name} "
                    f"({self.node.site}) is none; put the union in parentheses, (a & b).{name}(...)"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


# `Any`: the right operand of `|` may be anything until `_operand_site` has looked at it.
def piped(left: Expression, operand: Any) -> Node | None:
    """The node of a plain callable right of ``|``; None where the operand brings its own ``__ror__``."""
    site = _operand_site(left, operand)
    return None if site is None else applied(left, operand, site)


def applied(left: Expression, function: Callable[[Any], object], site: Site, here: bool = False) -> Node:
    """The node that applies a function to every item."""
    name = name_of(function)
    check_fits(left.node, taken_type(function, 0), name, site)
    item_type = returned_type(function)
    return nodes.Apply(
        name=name, site=site, item_type=item_type, input=left.node, function=function, here=here
    )


def misplaced(left: object, sign: str, right: object, site: Site) -> str:
    """The message for an operator that stands right of something that it cannot take."""
    if isinstance(left, Expression):
        if left.node.parallel:
            return f"{site}: {right!r} takes a Stream, but {left!r} is still in its shards; gather it first"
        return f"{site}: {right!r} takes a ParallelStream, but {left!r} is gathered already"
    return (
        f"{site}: {left!r} {sign} {right!r}: a chain starts with a stream, and & binds tighter than |, so each "
        "branch of a union stands in parentheses"
    )


def _operand_site(left: Expression, stage: object) -> Site | None:
    """Where a plain callable is applied; None when the right operand brings its own ``__ror__``."""
    written = stage.site if isinstance(stage, Operator) else None
    site = operator_site(written)
    if inspect.isclass(stage):
        message = (
            f"{site}: the class {stage.__name__} stands on the right of | ; a class is no stage: call it if "
            f"it makes one, or write .map({stage.__name__})"
        )
        raise PlanError(message)
    if isinstance(stage, Operator) and not callable(stage):
        return None
    if not callable(stage):
        raise PlanError(
            f"{site}: {stage!r} is no stage: it is neither an operator nor a function of one item"
        )
    made = returned_class(stage)
    if made is not None and issubclass(made, Operator):
        raise PlanError(
            f"{site}: {name_of(stage)} makes a stage and was not called: write {name_of(stage)}(...)"
        )
    if inspect.iscoroutinefunction(stage):
        raise PlanError(f"{site}: {name_of(stage)} is a coroutine function; a stage is a plain function")
    return site
