"""A hook of the documentation site: links between files of the repository lead to the same thing in the site.

The documents are read on the repository's page as well, so that they link to files, such as ../pipeflow/dsl. Here
README, CONTRIBUTING and CHANGELOG become pages, a package's folder becomes its page of the reference, and every
other file outside of docs that is linked to is copied into the site; a folder becomes a page that lists its files.
What a page would load from another host is a warning, and so ends the build.
"""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from properdocs.config.defaults import ProperDocsConfig
from properdocs.structure.files import File, Files, InclusionLevel
from properdocs.structure.pages import Page

# The one whose warnings are errors in strict mode.
_LOG = logging.getLogger("properdocs.hooks.links")

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}

# Code is matched first, so that what looks like a link in it is none.
_CODE_OR_LINK = re.compile(
    r"^```.*?^```|``.*?``|`[^`\n]*`|(\]\()([^)\s]+)(?=[)\s])", re.DOTALL | re.MULTILINE
)

_LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\ssrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?![^>]*\brel=["']?(?:canonical|next|prev))[^>]*\shref=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|(?:url\(|@import)\s*["']?((?:https?:)?//[^"'\s)]+)"""
)


def on_files(files: Files, config: ProperDocsConfig) -> Files:
    """Add the pages of the repository's root, and whatever the documents link to outside of docs."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    linked = {
        target
        for file in list(files.documentation_pages())
        for destination in links_in(file.content_string)
        if (target := _repository_path(file.src_uri, destination)) is not None
    }
    for target in sorted(linked):
        for file in _copies(target, config):
            if files.get_file_from_path(file.src_uri) is None:
                files.append(file)
    return files


def on_page_markdown(markdown: str, page: Page, config: ProperDocsConfig, files: Files) -> str:
    """Let links lead to where their targets are in the site, and the code in tables be what is meant."""
    folder = posixpath.dirname(page.file.src_uri) or "."

    def rewritten(match: re.Match[str]) -> str:
        opening, destination = match.groups()
        if destination is None:
            return match[0] if match[0].startswith("```") else plain_bars(match[0])
        place = place_of(page.file.src_uri, destination)
        if place is None:
            return match[0]
        return opening + posixpath.relpath(place, folder) + "".join(destination.partition("#")[1:])

    return _CODE_OR_LINK.sub(rewritten, markdown)


def on_post_build(config: ProperDocsConfig) -> None:
    """Warn of everything that a page or a style would load from another host."""
    site = Path(config.site_dir)
    for file in sorted(site.rglob("*")):
        if file.suffix in (".css", ".html"):
            for address in loaded_from_elsewhere(file.read_text(encoding="utf-8")):
                _LOG.warning(f"{file.relative_to(site)} loads {address} from another host")


def loaded_from_elsewhere(text: str) -> list[str]:
    """The addresses on other hosts from which a page or a style loads something."""
    return [address for found in _LOADED.finditer(text) for address in found.groups() if address]


def plain_bars(code: str) -> str:
    """A code span without the backslash that a bar in it needs in a table of the repository's page."""
    return code.replace("\\|", "|")


def links_in(markdown: str) -> Iterator[str]:
    """The destinations of a document's links, outside of its code."""
    for match in _CODE_OR_LINK.finditer(markdown):
        if match.group(2) is not None:
            yield match.group(2)


def place_of(page: str, destination: str) -> str | None:
    """Where a link of a page leads to in the site; None for another host or an anchor."""
    target = _repository_path(page, destination)
    return None if target is None else _site_path(target)


def _repository_path(page: str, destination: str) -> str | None:
    """The path from the repository's root that a link of a page leads to; None for another host or an anchor."""
    path = destination.partition("#")[0]
    if not path or re.match(r"[a-z]+:", path):
        return None
    sources = {page: source for source, page in PAGES.items()}
    folder = posixpath.dirname(sources.get(page, f"docs/{page}"))
    return posixpath.normpath(posixpath.join(folder, path))


def _site_path(target: str) -> str:
    """Where a file or folder of the repository is in the site."""
    if target in PAGES:
        return PAGES[target]
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    package = re.fullmatch(r"pipeflow/(\w+)", target)
    if package:
        return f"reference/{package[1]}.md"
    if (ROOT / target).is_dir():
        return f"source/{target}/index.md"
    # Browsers show a text file and would save a program.
    return f"source/{target}" + ("" if target.endswith(".json") else ".txt")


def _copies(target: str, config: ProperDocsConfig) -> Iterator[File]:
    """The files of the site that a link to `target` needs beyond those of docs; none for what does not exist."""
    path, place = ROOT / target, _site_path(target)
    if not place.startswith("source/"):
        return
    if path.is_file():
        yield File.generated(config, place, abs_src_path=str(path))
    elif path.is_dir():
        names = sorted(entry.name for entry in path.iterdir() if entry.is_file())
        listed = "\n".join(
            f"- [{name}]({posixpath.basename(_site_path(f'{target}/{name}'))})" for name in names
        )
        page = f"---\nsearch:\n  exclude: true\n---\n\n# {target}\n\n{listed}\n"
        yield File.generated(config, place, content=page, inclusion=InclusionLevel.NOT_IN_NAV)
        for name in names:
            yield from _copies(f"{target}/{name}", config)
