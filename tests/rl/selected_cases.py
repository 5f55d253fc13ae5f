"""Single numeric cases, picked by the number that their ids begin with.

Apart from `tests.cases`, which gives all cases of a kind: where the cases of one kind need different tests,
each test picks its own, and a mistyped number is an error rather than a test without cases.
"""

from __future__ import annotations

import pytest

from tests.cases import cases


def selected(kind: str, *numbers: str) -> list[pytest.ParameterSet]:
    """The cases of a kind whose ids begin with `numbers` ("SCH-01"), for `pytest.mark.parametrize`.

    Raises ValueError unless there is exactly one case for each number.
    """
    found = [case for case in cases(kind) if str(case.id).startswith(numbers)]
    if len(found) != len(numbers):
        raise ValueError(
            f"{len(found)} cases of kind {kind!r} for the numbers {numbers}, where one each is expected"
        )
    return found
