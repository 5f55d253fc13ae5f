"""The numeric cases of numeric.json as parameters of tests.

Apart from the tests, since several of their modules read the same file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest

# Any: what a case holds is said by its kind, which only the test that asks for the kind knows.
Case: TypeAlias = dict[str, Any]

_FILE = Path(__file__).with_name("numeric.json")


def cases(kind: str, where: Callable[[Case], bool] | None = None) -> list[pytest.ParameterSet]:
    """Every case of one kind, each under its own id, for `pytest.mark.parametrize`.

    Args:
        kind: the value of the cases' "kind".
        where: keeps only the cases for which it is true, for a kind whose cases differ in what they give.

    Raises:
        ValueError: if no case is found, since a test without cases passes whatever it tests.
    """
    found = [
        pytest.param(case, id=case["id"])
        for case in _all_cases()
        if case["kind"] == kind and (where is None or where(case))
    ]
    if not found:
        kinds = ", ".join(sorted({case["kind"] for case in _all_cases()}))
        msg = f"{_FILE.name} has no such case of kind {kind!r}; its kinds are {kinds}"
        raise ValueError(msg)
    return found


@cache
def _all_cases() -> tuple[Case, ...]:
    with _FILE.open(encoding="utf-8") as file:
        return tuple(json.load(file))
