"""The extension for the reference: docstrings as Markdown."""

from __future__ import annotations

from pathlib import Path

import griffe

from scripts.site.docstrings import Docstrings, readable

MODULE = '''
from dataclasses import dataclass


@dataclass
class Stage:
    """A stage. Made by `stage`."""

    name: str


def stage(name: str) -> Stage:
    """Make one.

    Args:
        name: what it is called.
    """
    return Stage(name)
'''


def test_sentences_about_arguments_become_a_list() -> None:
    text = "Sums of rewards.\n\nrewards: [T, *obs]. n, m: at least 1, and\nwhole.\nReturns sums."
    assert readable(text, {"rewards", "n", "m"}).splitlines() == [
        "Sums of rewards.",
        "",
        "",
        "- `rewards`: `[T, *obs]`.",
        "- `n, m`: at least 1, and",
        "  whole.",
        "",
        "Returns sums.",
    ]


def test_a_word_that_is_no_argument_begins_no_item() -> None:
    assert readable("Source: a paper.", {"n"}) == "Source: a paper."


def test_sections_are_left_to_the_parser() -> None:
    text = "Send.\n\nArgs:\n    count: how many.\n\nRaises:\n    ValueError: none."
    assert readable(text, {"count"}) == text


def test_examples_and_literal_blocks_are_fenced() -> None:
    text = "As follows::\n\n    a[0] | b\n\nAnd so on.\n\n>>> [T, 1]\n[1]"
    assert readable(text, set()).splitlines() == [
        "As follows:",
        "",
        "```python",
        "a[0] | b",
        "```",
        "",
        "And so on.",
        "",
        "",
        "```pycon",
        ">>> [T, 1]",
        "[1]",
        "```",
    ]


def test_sections_are_parsed_and_a_constructor_that_nobody_calls_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text(MODULE, encoding="utf-8")
    module = griffe.load(
        "planted",
        search_paths=[tmp_path],
        extensions=griffe.load_extensions(Docstrings),
        docstring_parser="google",
    )
    docstring = module["stage"].docstring
    assert docstring is not None
    assert [section.kind.value for section in docstring.parsed] == ["text", "parameters"]
    assert "__init__" not in module["Stage"].members
