"""No public signature of the DSL lets `Any` through, where a checker would fall silent, without saying why."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any, get_overloads

import pytest

import pipeflow.dsl

# What users write is spelt with these, too.
OPERATORS = ("__and__", "__call__", "__or__", "__ror__")


def _public() -> Iterator[tuple[str, object]]:
    for name, thing in vars(pipeflow.dsl).items():
        if not name.startswith("_") and not inspect.ismodule(thing):
            yield name, thing


def _signatures() -> Iterator[tuple[str, Callable[..., object], str]]:
    """Every public function and method: its name, itself (or an overload of it), and where its reasons may stand."""
    for name, thing in _public():
        if inspect.isfunction(thing):
            yield name, thing, _source(thing)
        elif inspect.isclass(thing):
            for attribute, member in vars(thing).items():
                function = member.fget if isinstance(member, property) else member
                shown = not attribute.startswith("_") or attribute in OPERATORS
                if shown and inspect.isfunction(function) and function.__name__ == attribute:
                    for signature in get_overloads(function) or [function]:
                        yield f"{name}.{attribute}", signature, _source(function)


def _fields() -> Iterator[tuple[str, object, str]]:
    for name, thing in _public():
        if inspect.isclass(thing) and dataclasses.is_dataclass(thing):
            for field, annotation in _hints(thing).items():
                yield f"{name}.{field}", annotation, _source(thing)


def _source(thing: Any) -> str:
    lines, start = inspect.findsource(thing)
    return (inspect.getcomments(thing) or "") + "".join(inspect.getblock(lines[start:]))


class _Unresolved:
    """What a name stands for that a module imports for the checkers alone."""

    def __class_getitem__(cls, arguments: Any) -> object:
        return tuple[arguments]


def _hints(thing: Any) -> dict[str, object]:
    names: dict[str, object] = {}
    while True:
        try:
            return typing.get_type_hints(thing, localns=names)
        except NameError as error:
            names[str(error.name)] = _Unresolved


def _mentions_any(annotation: object) -> bool:
    if annotation is Any:
        return True
    members = annotation if isinstance(annotation, list) else typing.get_args(annotation)
    return any(_mentions_any(member) for member in members)


def test_signatures_are_found() -> None:
    names = {name for name, _, _ in _signatures()}
    assert {"actors", "Stream.__or__", "Placed.__ror__", "Stream.reply", "sync_weights"} <= names


def test_any_is_recognised_inside_of_other_types() -> None:
    assert _mentions_any(Callable[[Any, int], list[str]])
    assert _mentions_any(dict[str, list[Any]] | None)
    assert not _mentions_any(Callable[..., object])


@pytest.mark.parametrize(("name", "signature", "source"), list(_signatures()))
def test_no_signature_mentions_any_without_a_reason(
    name: str, signature: Callable[..., object], source: str
) -> None:
    leaking = [parameter for parameter, hint in _hints(signature).items() if _mentions_any(hint)]
    assert leaking == [] or "`Any`" in source, f"{name} says Any in {leaking}, and no comment `Any` says why"


@pytest.mark.parametrize(("name", "signature", "_"), list(_signatures()))
def test_every_parameter_and_result_is_annotated(name: str, signature: Callable[..., object], _: str) -> None:
    parameters = [parameter for parameter in inspect.signature(signature).parameters if parameter != "self"]
    missing = {*parameters, "return"} - set(_hints(signature))
    assert missing == set(), f"{name} does not annotate {missing}"


@pytest.mark.parametrize(("name", "annotation", "source"), list(_fields()))
def test_no_field_mentions_any_without_a_reason(name: str, annotation: object, source: str) -> None:
    assert not _mentions_any(annotation) or "`Any`" in source, f"{name} is {annotation}"
