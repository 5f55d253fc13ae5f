"""The tables of the documents, made of the stored results: ``docs/benchmarks.md``, and a summary in the README.

    python benchmarks/documents.py

Apart from the harness, which measures: a table can be made anew without measuring anything.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import RESULTS, ROOT, Case, Result, Target, read, significant

README = ROOT / "README.md"
DOCUMENT = ROOT / "docs" / "benchmarks.md"
SUMMARY = "benchmarks"

# The order of the page.
NAMES = (
    "ppo_cartpole",
    "dqn_cartpole",
    "time_to_solve",
    "overhead",
    "data_plane",
    "scaling",
    "spark_streaming",
    "replay",
    "startup",
    "profile",
)


def main() -> None:
    for name, path in stored().items():
        replace_between(DOCUMENT, name, section(path))
    replace_between(README, SUMMARY, summary([read(path) for path in stored().values()]))


def stored(folder: Path = RESULTS) -> dict[str, Path]:
    """The files of the results that there are, in the order of the page."""
    paths = {name: folder / f"{name}.json" for name in NAMES}
    return {name: path for name, path in paths.items() if path.exists()}


def section(path: Path) -> str:
    """What a result's file says, as Markdown: targets, figures, and what they were measured with."""
    result = read(path)
    parts = [targets_table(result.targets)] if result.targets else []
    return "\n\n".join(
        [*parts, cases_table(result.cases), _measured_with(json.loads(path.read_text())["about"])]
    )


def targets_table(targets: Sequence[Target]) -> str:
    """What must be shown, and what was."""
    return _table(
        ("measured", "", "must be", "reached"),
        [(_number(t.figure), t.text, f"{t.limit} {t.bound:g}", _verdict(t)) for t in targets],
        "rllc",
    )


def cases_table(cases: Sequence[Case]) -> str:
    """The medians of all contestants; in brackets, the first one's figure as a multiple of this one's."""
    contestants = list(dict.fromkeys(who for case in cases for who in case.figures))
    rows = [(f"{case.name}, {case.unit}", *(_cell(case, who) for who in contestants)) for case in cases]
    return _table(("", *contestants), rows, "l" + "r" * len(contestants))


def summary(results: Sequence[Result]) -> str:
    """One row for every target of every benchmark."""
    rows = [
        (f"`{result.name}`", _number(t.figure), t.text, f"{t.limit} {t.bound:g}", _verdict(t))
        for result in results
        for t in result.targets
    ]
    return _table(("benchmark", "measured", "", "must be", "reached"), rows, "lrllc")


def between(document: Path, name: str) -> str:
    """What a document has between the two markers of a name.

    Raises:
        ValueError: it has no such markers.
    """
    return _parts(document, name)[1].strip()


def replace_between(document: Path, name: str, text: str) -> None:
    """Put a text between the two markers of a name, and leave the rest of the document as it is.

    Raises:
        ValueError: it has no such markers.
    """
    before, _, after = _parts(document, name)
    document.write_text(f"{before}<!-- {name} -->\n{text}\n<!-- /{name} -->{after}")


def _parts(document: Path, name: str) -> tuple[str, str, str]:
    before, opening, rest = document.read_text().partition(f"<!-- {name} -->")
    inside, closing, after = rest.partition(f"<!-- /{name} -->")
    if not opening or not closing:
        message = f"{document.name} has no <!-- {name} --> followed by <!-- /{name} -->"
        raise ValueError(message)
    return before, inside, after


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], columns: str) -> str:
    """A Markdown table. columns: l, c or r for each."""
    rules = {"l": "---", "c": ":---:", "r": "---:"}
    lines = [head, [rules[column] for column in columns], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(case: Case, contestant: str) -> str:
    if contestant not in case.figures:
        return "–"
    first = next(iter(case.figures))
    shown = _number(case.median(contestant))
    return shown if contestant == first else f"{shown} ({case.ratio(first, contestant):.3g}×)"


def _number(figure: float) -> str:
    """Three significant digits, and thousands with their comma.

    >>> _number(8123.4), _number(0.01234)
    ('8,123', '0.0123')
    """
    return f"{figure:,.0f}" if abs(figure) >= 1000 else f"{significant(figure, 3):g}"


def _verdict(target: Target) -> str:
    return "yes" if target.reached else "**no**"


def _measured_with(about: Mapping[str, object]) -> str:
    versions = about["versions"]
    assert isinstance(versions, dict)
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"`{about['command']}` on {about['date']}: {about['cores']} cores of {about['processor']}, "
        f"{about['memory_gib']} GiB; Python {about['python']}, {packages}."
    )


if __name__ == "__main__":
    main()
