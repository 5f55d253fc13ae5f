"""The extension for the reference: docstrings as Markdown."""

from __future__ import annotations

from scripts.site.docstrings import readable


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
