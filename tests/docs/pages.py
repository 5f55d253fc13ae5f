"""The pages below docs as tests see them: their fenced blocks and commands, and what comments say of these.

A comment on a line of its own, with nothing but empty lines up to the block, speaks of the block that follows:

    <!-- not run: REASON -->        neither run nor type-checked
    <!-- only checked: REASON -->   type-checked, not run
    <!-- refused -->                not run: mypy reports the errors that the block after it shows
    <!-- output -->                 a text block: what the block before it prints; ... stands for anything

and anywhere in a page, of all of it:

    <!-- slow -->    takes more than a few seconds
    <!-- ray -->     uses the Ray engine
    <!-- only shown: REASON -->    none of its code is run or checked
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Literal

DOCS = Path(__file__).resolve().parents[2] / "docs"
FILES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))

Mark = Literal["", "not run", "only checked", "refused", "output"]

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n`]*\n(?P<code>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE
)
_MARK = re.compile(r"<!-- (?:(not run|only checked): [^<>]+|(refused|output)) -->\s*\Z")
_SHELLS = ("bash", "console", "sh", "shell")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        line: the number of its first line of code in the page, from 1.
        language: what stands behind the fence.
        code: without the page's indentation.
        mark: what the comment before it says.
    """

    line: int
    language: str
    code: str
    mark: Mark

    @property
    def is_session(self) -> bool:
        """Whether it shows an interpreter's prompts and answers."""
        return self.language == "pycon" or (
            self.language == "python" and self.code.lstrip().startswith(">>>")
        )

    @property
    def is_program(self) -> bool:
        """Whether it is Python to be run as it is."""
        return self.language == "python" and not self.is_session


@dataclass(frozen=True)
class Page:
    """A page and what is in it, in order.

    Attributes:
        name: its path below docs.
        commands: the lines that call pipeflow, as words without `pipeflow`.
    """

    name: str
    blocks: tuple[Block, ...]
    commands: tuple[tuple[str, ...], ...]
    slow: bool
    ray: bool
    only_shown: bool

    @property
    def module(self) -> str:
        """A name for the module that its blocks make together."""
        return "page_" + re.sub(r"\W", "_", self.name.removesuffix(".md"))

    @property
    def refused(self) -> list[tuple[Block, str]]:
        """The blocks that mypy refuses, and what it reports of each according to the page."""
        pairs = zip(self.blocks, self.blocks[1:], strict=False)
        return [(block, told.code) for block, told in pairs if block.mark == "refused"]

    def program(self, marks: tuple[Mark, ...] = ("",), refused: Block | None = None) -> str:
        """Its programs as one, each line at the place that it has in the page; empty if there is none.

        Args:
            marks: which blocks are taken.
            refused: a further one.
        """
        lines: list[str] = []
        for block in self.blocks:
            if block is refused or (block.is_program and block.mark in marks):
                lines += [""] * (block.line - 1 - len(lines)) + block.code.splitlines()
        return "\n".join(lines) + "\n" if lines else ""


def read_page(name: str) -> Page:
    """The page of a path below docs."""
    return parse_page(name, (DOCS / name).read_text(encoding="utf-8"))


def parse_page(name: str, text: str) -> Page:
    """The page that a text is."""
    blocks = tuple(_blocks(text))
    prose = _FENCE.sub("", text)
    lines = [line for line in prose.splitlines() if line.startswith("    ")]
    lines += [line for block in blocks if block.language in _SHELLS for line in _joined(block.code)]
    return Page(
        name,
        blocks,
        tuple(command for line in lines if (command := _command(line))),
        slow="<!-- slow -->" in text,
        ray="<!-- ray -->" in text,
        only_shown=re.search(r"<!-- only shown: [^<>]+ -->", text) is not None,
    )


def _blocks(text: str) -> list[Block]:
    found: list[Block] = []
    for fence in _FENCE.finditer(text):
        said = _MARK.search(text[: fence.start()])
        line = text.count("\n", 0, fence.start("code")) + 1
        found.append(Block(line, fence["language"], dedent(fence["code"]), _mark(said)))
    return found


def _mark(said: re.Match[str] | None) -> Mark:
    match None if said is None else said[1] or said[2]:
        case "not run" | "only checked" | "refused" | "output" as mark:
            return mark
        case _:
            return ""


def _joined(code: str) -> list[str]:
    return code.replace("\\\n", " ").splitlines()


def _command(line: str) -> tuple[str, ...]:
    """The words behind `pipeflow` where a line calls it, without a prompt and a comment."""
    words = shlex.split(line.strip().removeprefix("$ "), comments=True) if "pipeflow " in line else []
    return tuple(words[1:]) if words[:1] == ["pipeflow"] else ()
