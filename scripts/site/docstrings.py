"""An extension of Griffe, which reads the docstrings for the reference: what it needs beyond Google's sections.

The domain's docstrings explain arguments in sentences of the form ``seed: of the run. index: of the buffer.``,
which become list items here; examples and literal blocks become fenced code. Constructors that nobody calls, since
a function makes the object, and those with more arguments than a screen has lines, are left out: the attributes
below them say the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import takewhile
from textwrap import dedent

from griffe import Class, Extension, Function, GriffeLoader, Object
from typing_extensions import override

_MOST_ARGUMENTS = 8
_NOISE = {"class-attribute", "instance-attribute", "module-attribute"}
# Asterisks in a shape would begin an emphasis. Code is matched first, so that a shape in it stays as it is.
_CODE_OR_SHAPE = re.compile(
    r"``.*?``|`[^`]*`|^ *(?:>>>|\.\.\.) [^\n]*|(\[(?:[A-Z]\b|\*)[^\[\]`]*\])", re.DOTALL | re.MULTILINE
)
_SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields):$")


class Docstrings(Extension):
    """Rewrites every docstring into the Markdown that the reference is rendered from."""

    @override
    def on_object(self, *, obj: Object, loader: GriffeLoader, **kwargs: object) -> None:
        """Called once for every object of a package."""
        obj.labels -= _NOISE
        if isinstance(obj, Class):
            _without_needless_constructor(obj)
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value, _arguments(obj))


def readable(text: str, arguments: Collection[str]) -> str:
    """A docstring as Markdown: code fenced, shapes as code, and sentences about arguments as a list.

    >>> print(readable("Sums. rewards: [T, *obs]. n: at least 1.", {"rewards", "n"}))
    Sums.
    <BLANKLINE>
    - `rewards`: `[T, *obs]`.
    - `n`: at least 1.
    """
    text = _CODE_OR_SHAPE.sub(lambda found: f"`{found[1]}`" if found[1] else found[0], text)
    return "\n".join(_listed(list(_fenced(text.splitlines())), arguments))


def _without_needless_constructor(kind: Class) -> None:
    made = kind.members.get("__init__")
    told = kind.docstring is not None and " Made by " in f" {kind.docstring.value} "
    if isinstance(made, Function) and (
        told or (len(made.parameters) > _MOST_ARGUMENTS and "dataclass" in kind.labels)
    ):
        kind.del_member("__init__")


def _arguments(obj: Object) -> set[str]:
    """The names that a docstring may explain: an object's parameters, or a class's and its attributes."""
    if isinstance(obj, Function):
        return {parameter.name for parameter in obj.parameters}
    if isinstance(obj, Class):
        made = obj.members.get("__init__")
        named = {name for name, member in obj.members.items() if member.is_attribute}
        return named | (_arguments(made) if isinstance(made, Function) else set())
    return set()


def _fenced(lines: list[str]) -> Iterator[str]:
    """Put fences around examples, which begin with ``>>>``, and around what is indented below a ``::``."""
    place = 0
    while place < len(lines):
        line = lines[place]
        if line.lstrip().startswith(">>> "):
            block = list(takewhile(str.strip, lines[place:]))
            yield from _block("pycon", block)
            place += len(block)
        elif line.endswith("::"):
            yield line[:-1]
            place += 1
            block = list(takewhile(lambda text: not text or text.startswith(" "), lines[place:]))
            yield from _block("python", dedent("\n".join(block)).strip("\n").splitlines())
            place += len(block)
        else:
            yield line
            place += 1


def _block(language: str, lines: list[str]) -> Iterator[str]:
    yield from ("", f"```{language}", *lines, "```", "")


def _listed(lines: list[str], arguments: Collection[str]) -> Iterator[str]:
    """Begin a list item wherever a sentence explains arguments, and a paragraph at Returns and Raises."""
    names = "|".join(sorted(map(re.escape, arguments), key=len, reverse=True)) or "(?!)"
    explained = re.compile(rf"(?:^|(?<=[.;] ))((?:{names})(?:, (?:{names}))*): ")
    code = section = item = False
    for line in lines:
        code ^= line.startswith("```")
        section = bool(_SECTION.match(line)) or (section and (not line or line.startswith(" ")))
        if code or section or line.startswith("```"):
            item = False
            yield line
        elif re.match(r"(Returns|Raises) ", line):
            item = False
            yield from ("", line)
        elif explained.search(line):
            before, *rest = explained.split(line)
            if before.strip():
                yield f"  {before}".rstrip() if item else before.rstrip()
            if not item:
                yield ""
            item = True
            for name, text in zip(rest[::2], rest[1::2], strict=True):
                yield f"- `{name}`: {text}".rstrip()
        else:
            item = item and bool(line)
            yield f"  {line}" if item else line
