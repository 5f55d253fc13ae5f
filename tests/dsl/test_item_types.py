"""What is known of item types at run time: never a guess."""

# pyright: reportUnknownLambdaType=none
# pyright infers no parameter of a lambda on the right of `|`.

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, Generic, Never, Protocol, Self, TypeVar, Union

import pytest

from pipeflow.dsl import Ended, NotReady, stage
from pipeflow.dsl.item_types import (
    UNKNOWN,
    fits,
    list_of,
    member_of,
    name_of,
    returned_class,
    returned_type,
    show,
    taken_type,
    union_of,
)

T = TypeVar("T")


class Animal:
    pass


class Dog(Animal):
    pass


class Box(Generic[T]):
    @classmethod
    def of(cls, item: T) -> Self:
        return cls()


class Herd:
    @classmethod
    def joined(cls, items: Sequence[Self]) -> list[Self]:
        return [*items]

    @classmethod
    def first(cls, items: list[Self] | None) -> Self | NotReady:
        return items[0] if items else NotReady()


class HasName(Protocol):
    @property
    def name(self) -> str: ...


class Keeper:
    def feed(self, animal: Animal) -> None:
        pass

    def catch(self) -> Dog | NotReady | Ended:
        return Dog()

    def __call__(self, animal: Animal) -> Dog:
        return Dog()


class Named:
    name = "a class attribute"


def unannotated(item):  # type: ignore[no-untyped-def]
    return item


def generic(item: T) -> list[T]:
    return [item]


def broken(item: DoesNotExist) -> DoesNotExist:  # type: ignore[name-defined]  # noqa: F821
    return item


def two(first: int, second: str = "", *, third: bytes = b"") -> None:
    pass


@pytest.mark.parametrize(
    ("given", "wanted", "expected"),
    [
        (Dog, Animal, True),
        (Animal, Dog, False),
        (int, str, False),
        (int, float, True),
        (bool, int, True),
        (bool, float, True),
        (int, complex, True),
        (float, int, False),
        (int, int | str, True),
        (bytes, int | str, False),
        (int | str, int, False),
        (int | bool, int, True),
        (int | str, float | str, True),
        (type(None), int | None, True),
        (list[int], list[int], True),
        (list[int], Sequence[int], True),
        (list[int], Iterable, True),
        (list[int], dict, False),
        (list[Dog], Sequence[Animal], True),
        (list[Animal], Sequence[Dog], False),
        (list[list[int]], Iterable[list[str]], False),
        (list[Any], list[str], True),
        (int, list, False),
        (Any, int, True),
        (int, Any, True),
        (UNKNOWN, int, True),
        (int, UNKNOWN, True),
        (int, object, True),
        (Never, int, True),
        (Animal, HasName, True),
        (Box[int], Box[str], True),
        (Callable[[int], int], Callable[[str], str], True),
    ],
)
def test_whether_one_type_may_go_where_another_is_taken(
    given: object, wanted: object, expected: bool
) -> None:
    assert fits(given, wanted) is expected


@pytest.mark.parametrize(
    ("function", "taken", "returned"),
    [
        (two, int, type(None)),
        (unannotated, UNKNOWN, UNKNOWN),
        (generic, UNKNOWN, UNKNOWN),
        (broken, UNKNOWN, UNKNOWN),
        (len, UNKNOWN, UNKNOWN),
        (lambda x: x, UNKNOWN, UNKNOWN),
        (Keeper(), Animal, Dog),
        (Keeper().feed, Animal, type(None)),
        (functools.partial(two, 1), str, type(None)),
        (stage(two), int, type(None)),
        (stage(Keeper()), Animal, Dog),
        (Dog, UNKNOWN, Dog),
        (Box.of, UNKNOWN, Box),
        (Herd.joined, Sequence[Herd], list[Herd]),
        (Herd.first, list[Herd] | None, Herd),
    ],
)
def test_what_a_function_takes_and_returns(
    function: Callable[..., object], taken: object, returned: object
) -> None:
    assert taken_type(function, 0) == taken
    assert returned_type(function) == returned


def test_the_second_parameter_of_a_method_is_its_item() -> None:
    assert taken_type(Keeper.feed, 1) is Animal
    assert taken_type(Keeper.catch, 1) is UNKNOWN


def test_the_signals_of_a_source_are_no_part_of_its_type() -> None:
    assert returned_type(Keeper.catch) is Dog

    def nothing() -> NotReady | Ended:
        return Ended()

    assert returned_type(nothing) is UNKNOWN


def test_the_class_that_is_returned_is_known_whatever_its_parameters() -> None:
    assert returned_class(generic) is list
    assert returned_class(unannotated) is None
    assert returned_class(Dog) is None


@pytest.mark.parametrize(
    ("item_type", "member"),
    [
        (list[int], int),
        (Iterator[Dog], Dog),
        (Generator[int, str, bytes], int),
        (set[int], int),
        (list[list[int]], list[int]),
        (tuple[int, ...], int),
        (tuple[int, str], int | str),
        (dict[str, int], UNKNOWN),
        (Box[int], UNKNOWN),
        (list[T], UNKNOWN),  # type: ignore[valid-type]
        (tuple[()], UNKNOWN),
        (list, UNKNOWN),
        (UNKNOWN, UNKNOWN),
    ],
)
def test_what_iterating_over_a_type_gives(item_type: object, member: object) -> None:
    assert member_of(item_type) == member


def test_composed_stages_have_the_types_of_both_ends() -> None:
    composed = stage(two) | stage(unannotated) | str
    assert taken_type(composed, 0) is int
    assert returned_type(composed) is str


@pytest.mark.parametrize(
    ("item_type", "text"),
    [
        (int, "int"),
        (list[int], "list[int]"),
        (dict[str, list[Dog]], "dict[str, list[Dog]]"),
        (int | str, "int | str"),
        (Union[int, Dog], "int | Dog"),  # noqa: UP007
        (UNKNOWN, "?"),
        (Any, "Any"),
        (Never, "Never"),
        (type(None), "NoneType"),
        (Box[int], "Box[int]"),
    ],
)
def test_a_type_is_shown_as_it_is_written(item_type: object, text: str) -> None:
    assert show(item_type) == text


def test_unions_and_lists_of_types() -> None:
    assert union_of([int, Never, str]) == int | str
    assert union_of([int, int]) is int
    assert union_of([int, UNKNOWN]) is UNKNOWN
    assert union_of([Never, Never]) is Never
    assert list_of(int) == list[int]
    assert list_of(UNKNOWN) is list


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (two, "two"),
        (len, "len"),
        (Keeper.feed, "Keeper.feed"),
        (Keeper(), "Keeper"),
        (lambda x: x, "lambda"),
        (functools.partial(two, 1), "two"),
        (stage(two).named("mine"), "mine"),
        (stage(two) | str, "two | str"),
        (Dog, "Dog"),
        (Named, "Named"),
    ],
)
def test_a_name_can_be_read(function: Callable[..., object], name: str) -> None:
    assert name_of(function) == name


def test_a_function_inside_another_is_named_without_the_outer() -> None:
    def inner() -> None:
        pass

    assert name_of(inner) == "inner"
