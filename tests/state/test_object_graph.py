"""Plain values as text and arrays: they come back as they were, shared where they were shared."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, make_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete

from pipeflow.lowering.stats import Meter
from pipeflow.state.reading import Reader
from pipeflow.state.values import StateValue
from pipeflow.state.writing import UnsavableValue, Writer
from tests.rl.saved_states import identical, over_disk


class Thing:
    """An object of a class."""

    def __init__(self, **attributes: object) -> None:
        vars(self).update(attributes)


def attributes(value: object) -> Mapping[str, object] | None:
    return vars(value) if isinstance(value, Thing) else None


def fill(value: object, found: Mapping[str, object]) -> None:
    assert isinstance(value, Thing)
    vars(value).update(found)


def written(value: object) -> dict[str, StateValue]:
    writer = Writer(attributes, constants=(Discrete,))
    return writer.finish(writer.write(value, "value"))


# Any: the tests know what they wrote.
def back(value: object, folder: Path, like: object = None) -> Any:
    return Reader(over_disk(written(value), folder), fill, constants=(Discrete,)).read(like)


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, 2**100, -0.0, 0.1, float("inf"), float("nan"), "text\n\x00", (), (1, (2.0, None)), [1, [2]],
        {"a": 1, (0, 1): [True], 3: "b"}, {1, 2}, frozenset({"a"}), deque([1, 2], maxlen=3), np.float64(0.1),
        np.float32(0.1), np.int64(7), np.bool_(True), np.bytes_(b"S"), np.zeros((0, 3)), np.array(1.5),
        np.arange(6, dtype=np.uint8).reshape(2, 3), np.array([b"SF", b"H"]), np.array(["ab", "c"]),
        np.array([1 + 2j]), np.arange(3, dtype=">i4"), np.array([1.0], np.longdouble), np.array([1.0], np.float16),
    ],
    ids=repr,
)  # fmt: skip
def test_plain_values_come_back_with_their_types_and_bits(value: object, tmp_path: Path) -> None:
    found = back(value, tmp_path)
    assert identical(found, value) or (value != value and found != found)


def test_a_deque_keeps_its_greatest_length(tmp_path: Path) -> None:
    assert back(deque([1], maxlen=3), tmp_path).maxlen == 3


@pytest.mark.parametrize(
    "bits",
    [np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64],
)
def test_generators_draw_on_where_they_stood(bits: Any, tmp_path: Path) -> None:
    generator = np.random.Generator(bits(5))
    generator.integers(3, size=3, dtype=np.int32)  # which leaves half a word
    found = back(generator, tmp_path)
    np.testing.assert_array_equal(
        found.integers(9, size=50, dtype=np.int32), generator.integers(9, size=50, dtype=np.int32)
    )
    np.testing.assert_array_equal(found.normal(size=50), generator.normal(size=50))


def test_the_older_kinds_of_generators_draw_on_too(tmp_path: Path) -> None:
    legacy = np.random.RandomState(1)
    legacy.normal()  # which keeps a second one
    assert back(legacy, tmp_path).normal(size=3).tolist() == legacy.normal(size=3).tolist()
    python = random.Random(1)
    python.gauss(0, 1)
    assert back(python, tmp_path).gauss(0, 1) == python.gauss(0, 1)


def test_two_names_of_one_value_are_two_names_of_one_again(tmp_path: Path) -> None:
    array, generator, inner = np.zeros(3), np.random.default_rng(0), [1]
    first, second = back([[array, generator, inner], (array, generator, inner)], tmp_path)
    assert all(one is other for one, other in zip(first, second, strict=True))
    equal_but_two = back([np.zeros(3), np.zeros(3)], tmp_path)
    assert equal_but_two[0] is not equal_but_two[1]


def test_a_list_may_hold_itself(tmp_path: Path) -> None:
    value: list[Any] = [1]
    value.append({"again": value})
    found = back(value, tmp_path)
    assert found[0] == 1
    assert found[1]["again"] is found


def test_a_view_is_of_the_same_memory_again(tmp_path: Path) -> None:
    array = np.arange(12.0).reshape(3, 4)
    whole, row, other = back([array, array[1, ::2], array.T], tmp_path)
    assert whole.tolist() == array.tolist()
    assert row.tolist() == [4.0, 6.0]
    whole[1] = -1.0
    assert row.tolist() == [-1.0, -1.0]
    assert other[:, 1].tolist() == [-1.0] * 4
    # And once more, from what was read.
    again, row = back([whole, row], tmp_path)
    row[:] = 7.0
    assert again[1].tolist() == [7.0, -1.0, 7.0, -1.0]


def test_what_cannot_be_written_to_cannot_be_again(tmp_path: Path) -> None:
    array = np.zeros(4)
    view = array[:2]
    array.flags.writeable = False
    kept, still = back([array, view], tmp_path)
    assert (kept.flags.writeable, still.flags.writeable) == (False, True)


def test_column_order_is_kept(tmp_path: Path) -> None:
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    found = back(array, tmp_path)
    assert found.tolist() == array.tolist()
    assert found.strides == array.strides


def test_objects_are_filled_where_they_are_and_constants_stay(tmp_path: Path) -> None:
    saved = Thing(count=3, inner=Thing(list=[1, 2]), space=Discrete(3), act=print)
    vars(saved)["again"] = vars(saved)["inner"]
    inner, space = Thing(list=[], old=True), Discrete(3)
    like = Thing(count=0, inner=inner, space=space, act=repr, again=None)
    found = back({"a": saved}, tmp_path, {"a": like})["a"]
    assert found is like
    assert vars(found) == {"count": 3, "inner": inner, "space": space, "act": repr, "again": inner}
    assert vars(inner) == {"list": [1, 2], "old": True}


@pytest.mark.parametrize("like", [None, {}, {"a": None}])
def test_where_there_is_no_object_none_is_made(like: object, tmp_path: Path) -> None:
    state = over_disk(written({"a": Discrete(3)}), tmp_path)
    with pytest.raises(ValueError, match=r"at it\['a'\] there is NoneType"):
        Reader(state, fill, constants=(Discrete,)).read(like)


class Phase(Enum):
    """Known by name in its module."""

    FIRST = 1


class Pair(NamedTuple):
    """Known by name in its module."""

    left: object
    right: object


@dataclass(frozen=True, slots=True)
class Frozen:
    """Known by name in its module."""

    numbers: list[int]
    again: object = None


@dataclass(frozen=True)
class Closing:
    """Data that does something when it goes."""

    number: int = 0

    def __del__(self) -> None:
        """It would run when a state that names it is read."""


def test_plain_data_is_made_again_and_no_constructor_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = [1, 2]
    first = Frozen(numbers)
    value = [Phase.FIRST, Pair(first, b"bytes"), Frozen(numbers, first), OrderedDict(b=1), Counter("aab")]
    monkeypatch.setattr(Frozen, "__init__", None)
    monkeypatch.setattr(Pair, "__new__", None)
    found = back(value, tmp_path)
    monkeypatch.undo()
    assert found == value
    assert [type(item) for item in found] == [type(item) for item in value]
    assert found[1].left is found[2].again
    assert found[1].left.numbers is found[2].numbers


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6).reshape(2, 3),
        torch.tensor(0.1),
        torch.tensor([1.5], dtype=torch.bfloat16),
        torch.ones(2).half(),
    ],
    ids=lambda tensor: str(tensor.dtype),
)
def test_tensors_come_back(tensor: torch.Tensor, tmp_path: Path) -> None:
    found = back([tensor, tensor], tmp_path)
    assert found[0] is found[1]
    assert found[0].dtype == tensor.dtype
    assert torch.equal(found[0], tensor)


def test_what_both_sides_know_is_written_by_name_and_what_is_special_is_made_there(tmp_path: Path) -> None:
    known, handle = Thing(), Thing(number=7)
    writer = Writer(
        attributes,
        names={id(known): "known"},
        special=lambda value: ("handle", {"number": 7}) if value is handle else None,
    )
    state = writer.finish(writer.write([known, handle, handle], "value"))
    here = Thing()
    reader = Reader(
        over_disk(state, tmp_path), fill, named={"known": here}, make=lambda kind, saved: (kind, saved)
    )
    found = reader.read(None)
    assert found[0] is here
    assert found[1] == ("handle", {"number": 7})
    assert found[1] is found[2]


def test_what_is_made_anew_holds_nothing_that_only_a_like_one_could_give() -> None:
    with pytest.raises(UnsavableValue, match=r"^value\[0\]\.numbers is <built-in function len>"):
        written(deque([Frozen(len)]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value",
    [object(), Closing(), iter([]), 1j, np.array([None]), np.ma.zeros(2), np.frombuffer(bytearray(4), np.uint8),
     {"a": [3, Closing()]}, make_dataclass("Nameless", ["x"])(1)],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(UnsavableValue, match="value"):
        written(value)


def test_a_refusal_names_the_place() -> None:
    with pytest.raises(
        UnsavableValue, match=r"^value\['a'\]\[1\] is of type Closing, which is no plain value"
    ):
        written({"a": [3, Closing()]})


@pytest.mark.parametrize(
    "name",
    [
        "os:system", "subprocess:Popen", "builtins:object", "nowhere:Thing",
        "tests.state.test_object_graph:Closing",
        "tests.state.test_object_graph:Thing", "tests.state.test_object_graph:nothing", "", ":", "antigravity:x",
    ],
)  # fmt: skip
def test_a_state_makes_no_object_of_any_other_class_and_imports_nothing(name: str) -> None:
    before = set(sys.modules)
    text = json.dumps([["shared", 0], [["instance", name, {}]]]).encode()
    with pytest.raises(ValueError, match=f"there is no class {name} here"):
        Reader(with_text(text), fill).read(None)
    assert set(sys.modules) == before


def test_an_object_that_was_saved_without_a_field_is_refused() -> None:
    name = f"{Meter.__module__}:{Meter.__qualname__}"
    text = json.dumps([["shared", 0], [["instance", name, {"taken": 1, "made": 1}]]])
    with pytest.raises(ValueError, match=r"Meter was saved without busy, lag_max, lag_sum, waiting"):
        Reader(with_text(text.encode()), fill).read(None)


_STATE = written([1, {"a": np.arange(3)}, np.random.default_rng(0), (np.arange(9)[3:], 1.0)])


def with_text(text: bytes) -> dict[str, StateValue]:
    return {**_STATE, "text": np.frombuffer(text, np.uint8)}


def text_of(state: Mapping[str, StateValue]) -> bytes:
    text = state["text"]
    assert isinstance(text, np.ndarray)
    return text.tobytes()


def test_a_damaged_text_gives_a_value_or_an_ordinary_error() -> None:
    generator, text = random.Random(0), text_of(_STATE)
    for _ in range(2000):
        damaged = bytearray(text)
        for _ in range(generator.randint(1, 3)):
            damaged[generator.randrange(len(text))] = generator.choice(b'0123456789[]{},"-aeltru')
        with suppress(ValueError, TypeError, LookupError, AttributeError, RecursionError):
            Reader(with_text(bytes(damaged)), fill).read(None)


def test_a_view_does_not_reach_out_of_its_memory() -> None:
    root, shared = json.loads(text_of(_STATE))
    (view,) = (node for node in shared if node[0] == "view")
    view[4] = 10**6
    with pytest.raises(ValueError, match="buffer"):
        Reader(with_text(json.dumps([root, shared]).encode()), fill).read(None)


@pytest.mark.parametrize("bits", [np.random.MT19937, np.random.Philox])
def test_a_generator_does_not_draw_from_outside_its_memory(bits: Any) -> None:
    state = written(np.random.Generator(bits(0)))
    text = text_of(state).replace(b'"pos",', b'"pos",9').replace(b'"buffer_pos",', b'"buffer_pos",9')
    with pytest.raises(ValueError, match="outside of its"):
        Reader({**state, "text": np.frombuffer(text, np.uint8)}, fill).read(None)


def test_a_state_without_text_is_refused() -> None:
    with pytest.raises(ValueError, match="no 'text'"):
        Reader({}, fill)
