"""Write docs/type_errors.md: the ten type errors that users meet, in the checkers' own words, and what to do.

The mistakes are functions of tests/typing/reject, on which mypy and pyright are run; what to write instead is the
function of the same name in tests/typing/accept/corrections.py, which both accept and the tests run.

    python scripts/write_type_errors.py          write the page
    python scripts/write_type_errors.py --check  fail when the page is another
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the tests are part of the checkout and not of the package

from tests.typing.checkers import REJECT, Diagnostic, mypy, pyright  # noqa: E402

DOCUMENT = ROOT / "docs" / "type_errors.md"
CORRECTIONS = ROOT / "tests" / "typing" / "accept" / "corrections.py"


@dataclass(frozen=True)
class Lesson:
    """A mistake: what it is called, the module of `reject` and the function it is in, what the error means."""

    title: str
    module: str
    function: str
    meaning: str


LESSONS = (
    Lesson(
        "A stage is missing",
        "misfits",
        "gae_forgotten",
        "The stream delivers `Trajectories`, and the stage on the right takes `Advantages`: the first of "
        "the types in `Placed[Advantages, Report, PPOLearner]`, whose second is what it makes. Between the "
        "two stands nothing that makes the one from the other. The remedy is the stage that does.",
    ),
    Lesson(
        "A method of other actors",
        "placement",
        "stage_with_a_method_of_another_class",
        "`workers` are actors of `RolloutWorker`, and the method that is to run in them is one of "
        "`PPOLearner`. The first type in each of the brackets is the class. Name the actors whose method it "
        "is, or a method of theirs.",
    ),
    Lesson(
        "A wrong argument of an actor's constructor",
        "placement",
        "an_argument_of_another_type",
        "`actors` takes the class, the number of actors, and then what the constructor takes. Its arguments "
        "are counted with the class and the number, so argument 3 is the first of the constructor's own, "
        "`seed: int`.",
    ),
    Lesson(
        "Shards where a stream is taken",
        "gathers",
        "a_stage_of_other_actors_without_a_gather",
        "A `ParallelStream` is still inside its workers, one shard in each: the second of its types says in "
        "actors of which class. A stage of other actors takes one stream. Gather the shards before it: "
        "`gather_rounds()` and `gather_sync()` in rounds, `gather_async()` as they come.",
    ),
    Lesson(
        "An operator that was not called",
        "uncalled",
        "gather_sync_uncalled",
        "`Callable[[], Gather]` is a function that makes a `Gather`, and what stands right of the bar is "
        "the function and not what it makes. Call it. `drain` alone is written without parentheses.",
    ),
    Lesson(
        "A union of different items",
        "concurrency",
        "a_union_where_one_branch_is_learnt_from",
        "`left & right` delivers what either branch does, and the stage behind it has to take both. Put the "
        "missing stage into the branch that lacks it, or use a stage that takes `Advantages | "
        "Trajectories`.",
    ),
    Lesson(
        "Weights of what has none",
        "messages",
        "weights_of_what_has_none",
        "`sync_weights(learner, workers)` calls `weights()` on the first and `set_weights(weights)` on the "
        "second: the first `HasWeights`, the second `TakesWeights`, of one type. `Replay` has none. Mostly other "
        "actors were meant, or the two were exchanged. Where both have their method, and one gives another type "
        'than the other takes, mypy says `Cannot infer value of type parameter "Weights" of "sync_weights"`.',
    ),
    Lesson(
        "A branch that was not drained",
        "concurrency",
        "a_branch_that_was_not_drained",
        "The branch that stores delivers the `int` of `Replay.add`, so the union delivers `int | Report`. A "
        "branch that is there for what it does ends with `| drain`; its items then vanish from the union.",
    ),
    Lesson(
        "A lambda with the wrong number of parameters",
        "lambdas",
        "of_two_parameters",
        "A stage is given one item. mypy says first that it finds no type for the lambda; the second line "
        "says why: what is expected takes one argument, `Trajectories`. Where two values go on together, "
        "they are one item: a tuple or a dataclass.",
    ),
    Lesson(
        "`produce` was forgotten",
        "placement",
        "producing_forgotten",
        "`Actors[RolloutWorker]` is a description of actors and delivers nothing. `.produce` with a method "
        "makes the stream of what the method returns, a shard an actor.",
    ),
)

_HEAD = """\
# The type errors that users meet

<!-- only shown: fragments, which tests/typing checks -->

Ten mistakes, what mypy {mypy} and pyright {pyright} say about them, and what to write instead. mypy's words
are complete; of pyright's the first line is shown. mypy reports the line of the stage that does not fit, pyright
the first line of the chain. All that the checkers refuse, and how to read the types: [typing.md](typing.md).

`pipeflow check` runs mypy with the settings that these words need. `reveal_type(...)` around a part of a plan
makes a checker say the type of that part.

Four things to know beforehand:

- The first report is the one to mend. What a function that does not fit makes is `Any` to mypy, so that a line
  further down, as in `"Stream[list[Any]]" and ...`, may be reported although it is right.
- mypy alone reports a plan that a function returns a second time, at the `return`: `Returning Any from function
  declared to return "Stream[...]"  [no-any-return]`. It goes when the stage fits, and `pipeflow check` does not
  show it.
- `Never` in a type, as in `expected "Actors[HasWeights[Never]]"`, means that no type would do: here nothing could
  be the weights, since the actors have no `weights()`, or the two groups are the wrong way round.
- Types stand in the messages as they are written. A dataclass for what passes between stages, weights too, is one
  word there, and `dict[str, ndarray[tuple[Any, ...], dtype[floating[_32Bit]]]]` is not.

Not about plans at all is `Call to untyped function "log_prob" in typed context  [no-untyped-call]`: torch's own
distributions are not annotated. Allow calls of those in the settings, `untyped_calls_exclude =
["torch.distributions"]` under `[tool.mypy]`, which `pipeflow check` reads too, and keep what they return in a
variable that is annotated, `log_prob: Tensor = ...`.

`rollouts` below is `workers.produce(RolloutWorker.sample)`, and `sampled()` is `rollouts | gather_sync()`.

<!-- Written by python scripts/write_type_errors.py from tests/typing. -->
"""


def page(mypy_reports: Iterable[Diagnostic], pyright_reports: Iterable[Diagnostic]) -> str:
    """The page, made of what the checkers report in the files of `reject`."""
    said, said_by_pyright = list(mypy_reports), list(pyright_reports)
    parts = [_HEAD.format(mypy=version("mypy"), pyright=version("pyright"))]
    for number, lesson in enumerate(LESSONS, start=1):
        (file,) = (file for file in REJECT if file.stem == lesson.module)
        mistake = _function(file, lesson.function)
        correction = _function(CORRECTIONS, lesson.function)
        # Where a mistake returns nothing it is one by itself, and the function around it is left away.
        shown = _body if _returns_none(mistake) else _whole
        errors = [f"error: {report.message}  [{report.code}]" for report in _within(said, file, mistake)]
        refusal = _within(said_by_pyright, file, mistake)[0]
        parts += [
            f"## {number}. {lesson.title}\n",
            f"```python\n{shown(file, mistake)}\n```\n",
            "mypy:\n",
            "```text\n" + "\n".join(errors) + "\n```\n",
            "pyright:\n",
            f"```text\nerror: {refusal.message.splitlines()[0]} ({refusal.code})\n```\n",
            textwrap.fill(lesson.meaning, 130, break_long_words=False, break_on_hyphens=False) + "\n",
            "Instead:\n",
            f"```python\n{shown(CORRECTIONS, correction)}\n```\n",
        ]
    return "\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit status."""
    parser = argparse.ArgumentParser(description="Write docs/type_errors.md from the type tests.")
    parser.add_argument("--check", action="store_true", help="fail when the page is another")
    options = parser.parse_args(arguments)
    files = sorted(file for file in REJECT if file.stem in {lesson.module for lesson in LESSONS})
    with tempfile.TemporaryDirectory() as folder:
        wanted = page(mypy(files, Path(folder) / "cache"), pyright(files, Path(folder)))
    if not options.check:
        DOCUMENT.write_text(wanted, encoding="utf-8")
    elif DOCUMENT.read_text(encoding="utf-8") != wanted:
        print(
            f"{DOCUMENT}: is not what the checkers say; renew it with {Path(__file__).name}", file=sys.stderr
        )
        return 1
    return 0


def _within(reports: Iterable[Diagnostic], file: Path, function: ast.FunctionDef) -> list[Diagnostic]:
    last = function.end_lineno or function.lineno
    found = [report for report in reports if report.file == file and function.lineno <= report.line <= last]
    return sorted(found, key=lambda report: report.line)


def _function(file: Path, name: str) -> ast.FunctionDef:
    (found,) = (
        node
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    return found


def _returns_none(function: ast.FunctionDef) -> bool:
    return isinstance(function.returns, ast.Constant) and function.returns.value is None


def _whole(file: Path, function: ast.FunctionDef) -> str:
    return _code(file, function.lineno, function.end_lineno)


def _body(file: Path, function: ast.FunctionDef) -> str:
    code = _code(file, function.body[0].lineno, function.end_lineno).replace("return ", "", 1)
    if not code.startswith("(\n"):
        return code
    # A chain over several lines, which the formatter would join.
    return " ".join(line.strip() for line in code.splitlines()[1:-1])


def _code(file: Path, first: int, last: int | None) -> str:
    """Lines of a file without what the tests expect of them."""
    lines = file.read_text(encoding="utf-8").splitlines()[first - 1 : last]
    kept = [re.sub(r"\s*# [EPRW]: .*$", "", line) for line in lines if not _is_expectation(line)]
    return textwrap.dedent("\n".join(kept))


def _is_expectation(line: str) -> bool:
    return re.match(r"\s*# [EPRW]: ", line) is not None


if __name__ == "__main__":
    sys.exit(main())
