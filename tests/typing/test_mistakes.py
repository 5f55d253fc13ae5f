"""The reading of expectations, which the other tests rely on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.typing.mistakes import Mistake, in_order, mistakes

SAMPLE = """\
def first() -> None:
    bad()  # E: operator: one .. two  # P: none
    # R: left .. right
    fine()


def second() -> None:
    (  # P: reportOperatorIssue
        worse()  # E: arg-type: three  # E: misc: four  # P: reportA, reportB
        # R: none, nothing is built
        # W: two mistakes
    )


def third() -> None:
    unseen()  # E: none
    # R: found
"""


@pytest.fixture
def read(tmp_path: Path) -> list[Mistake]:
    file = tmp_path / "sample.py"
    file.write_text(SAMPLE, encoding="utf-8")
    return mistakes(file)


def test_lines_and_functions(read: list[Mistake]) -> None:
    assert [(m.line, m.function) for m in read] == [(2, "first"), (8, "second"), (9, "second"), (16, "third")]


def test_mypys_codes_and_words(read: list[Mistake]) -> None:
    assert [m.errors for m in read] == [
        (("operator", ("one", "two")),),
        (),
        (("arg-type", ("three",)), ("misc", ("four",))),
        (),
    ]


def test_pyrights_rules(read: list[Mistake]) -> None:
    assert [set(m.rules) for m in read] == [set(), {"reportOperatorIssue"}, {"reportA", "reportB"}, set()]


def test_what_is_raised(read: list[Mistake]) -> None:
    assert [m.raises for m in read] == [("left", "right"), None, None, ("found",)]


def test_why_a_message_is_long(read: list[Mistake]) -> None:
    assert [m.why for m in read] == ["", "", "two mistakes", ""]


def test_pyrights_rule_follows_from_mypys_code(tmp_path: Path) -> None:
    file = tmp_path / "sample.py"
    file.write_text("def f() -> None:\n    bad()  # E: operator: x\n    # R: y\n", encoding="utf-8")
    (mistake,) = mistakes(file)
    assert mistake.rules == {"reportOperatorIssue"}


@pytest.mark.parametrize(
    ("parts", "text", "found"),
    [
        (("a", "b"), "a and b", True),
        (("b", "a"), "a and b", False),
        (("a", "a"), "a", False),
        ((), "", True),
    ],
)
def test_parts_are_found_in_their_order(parts: tuple[str, ...], text: str, found: bool) -> None:
    assert in_order(parts, text) == found
