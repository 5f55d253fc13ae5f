"""The hook of the site: links lead to the same thing in the repository and in the site."""

from __future__ import annotations

import re

import pytest

from scripts.site import links
from tests.docs.pages import DOCS, FILES

ROOT = DOCS.parent
SOURCES = [*links.PAGES, *(f"docs/{name}" for name in FILES)]


@pytest.mark.parametrize(
    ("page", "link", "target"),
    [
        ("index.md", "docs/typing.md", "typing.md"),
        ("index.md", "CONTRIBUTING.md", "contributing.md"),
        ("typing.md", "../README.md", "index.md"),
        ("guides/weights.md", "replies.md", "guides/replies.md"),
        ("guides/weights.md", "../../pipeflow/rl", "reference/rl.md"),
        ("results.md", "../benchmarks/results/learning.json", "source/benchmarks/results/learning.json"),
        ("semantics.md", "../tests/lowering/test_laws.py#x", "source/tests/lowering/test_laws.py.txt"),
        ("index.md", "examples", "source/examples/index.md"),
    ],
)
def test_a_link_leads_to_its_place_in_the_site(page: str, link: str, target: str) -> None:
    assert links.place_of(page, link) == target


@pytest.mark.parametrize("link", ["#heading", "https://arxiv.org/abs/2011.12719", "mailto:somebody"])
def test_other_links_are_left_alone(link: str) -> None:
    assert links.place_of("typing.md", link) is None


def test_what_looks_like_a_link_in_code_is_none() -> None:
    text = "`a[0](b)` and [a](b.md)\n\n```python\nc = d[0](e)\n```\n"
    assert list(links.links_in(text)) == ["b.md"]


def test_a_bar_in_a_table_is_one_in_the_site() -> None:
    assert links.plain_bars(r"`shards \| gae()`") == "`shards | gae()`"


@pytest.mark.parametrize("source", SOURCES)
def test_every_link_leads_to_a_file_of_the_repository(source: str) -> None:
    text = (ROOT / source).read_text(encoding="utf-8")
    local = [link.partition("#")[0] for link in links.links_in(text) if not re.match(r"[a-z]+:|#", link)]
    assert [link for link in local if not ((ROOT / source).parent / link).exists()] == []


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://elsewhere.org/a.js"></script>',
        "<img alt='x' src='//elsewhere.org/a.png'>",
        '<link rel="stylesheet" href="https://elsewhere.org/a.css">',
        "@font-face{src:url(https://elsewhere.org/a.woff)}",
        '@import "https://elsewhere.org/a.css";',
    ],
)
def test_what_is_loaded_from_another_host_is_found(text: str) -> None:
    assert len(links.loaded_from_elsewhere(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        '<a href="https://elsewhere.org">a</a>',
        '<script src="assets/a.js"></script>',
        "url(data:image/svg;//x)",
    ],
)
def test_links_and_what_is_in_the_site_are_not(text: str) -> None:
    assert links.loaded_from_elsewhere(text) == []
