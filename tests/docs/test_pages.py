"""What the pages below docs show is so: their programs run and type-check, their sessions and commands are right.

The blocks of a page run one after the other, as one module, in an empty folder. `tests.docs.pages` says how a
page marks what cannot be run.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import subprocess
import sys
import types
from collections.abc import Generator
from pathlib import Path
from typing import NoReturn

import pytest

from pipeflow.cli import flags
from pipeflow.cli.entry import main
from tests.docs.pages import DOCS, FILES, Block, Mark, Page, parse_page, read_page

PAGES = [read_page(name) for name in FILES]
# `--resume` reads a run first, whose flags are the defaults; tests/cli resumes.
COMMANDS = sorted({command for page in PAGES for command in page.commands if "--resume" not in command})
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def _parameters() -> list[object]:
    found: list[object] = []
    for page in PAGES:
        if not page.only_shown and any(block.is_session or block.is_program for block in page.blocks):
            marks = [pytest.mark.slow] * page.slow + [pytest.mark.ray] * page.ray
            found.append(pytest.param(page, id=page.name, marks=marks))
    return found


@pytest.mark.parametrize("page", _parameters())
def test_the_code_of_a_page_does_what_the_page_says(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if page.ray:
        request.getfixturevalue("ray_runtime")
    monkeypatch.chdir(tmp_path)
    _run(page, monkeypatch)


def _run(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType(page.module)
    # Data classes and saved states find their classes by the module's name.
    monkeypatch.setitem(sys.modules, page.module, module)
    with _sent_by_value(module) if page.ray else contextlib.nullcontext():
        printed = ""
        for block in page.blocks:
            if block.mark == "output":
                _compare(page, block, printed)
            elif block.mark == "" and block.is_session:
                _converse(page, block, module)
            elif block.mark == "" and block.is_program:
                output = io.StringIO()
                code = compile(
                    "\n" * (block.line - 1) + block.code, str(DOCS / page.name), "exec", dont_inherit=True
                )
                with contextlib.redirect_stdout(output):
                    exec(code, module.__dict__)
                printed = output.getvalue()


@contextlib.contextmanager
def _sent_by_value(module: types.ModuleType) -> Generator[None]:
    """Let Ray send what is defined in a module that its workers cannot import."""
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def _compare(page: Page, block: Block, printed: str) -> None:
    if not doctest.OutputChecker().check_output(block.code, printed, _FLAGS):
        pytest.fail(
            f"docs/{page.name}:{block.line} shows\n{block.code}\nand the block before it prints\n{printed}"
        )


def _converse(page: Page, block: Block, module: types.ModuleType) -> None:
    parser, problems = doctest.DocTestParser(), io.StringIO()
    test = parser.get_doctest(block.code, module.__dict__, page.name, str(DOCS / page.name), block.line - 1)
    doctest.DocTestRunner(optionflags=_FLAGS).run(test, out=problems.write, clear_globs=False)
    module.__dict__.update(test.globs)  # the parser copies them
    if problems.getvalue():
        pytest.fail(problems.getvalue())


def test_mypy_accepts_the_programs_of_all_pages_and_refuses_what_they_say_it_refuses(tmp_path: Path) -> None:
    accepted: tuple[Mark, ...] = ("", "only checked")
    pages = [page for page in PAGES if not page.only_shown]
    programs = {f"{page.module}.py": page.program(accepted) for page in pages}
    expected: dict[str, list[str]] = {}
    for page in pages:
        for block, told in page.refused:
            name = f"{page.module}_{block.line}.py"
            programs[name] = page.program(accepted, refused=block)
            expected[name] = told.splitlines()
    for name, program in programs.items():
        (tmp_path / name).write_text(program, encoding="utf-8")
    root = DOCS.parent
    command = [sys.executable, "-m", "mypy", "--strict", "--hide-error-context", "--no-error-summary"]
    command += ["--config-file", str(root / "pyproject.toml"), str(tmp_path)]
    checked = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert checked.returncode in (0, 1), checked.stderr
    reported: dict[str, list[str]] = {}
    for line in checked.stdout.splitlines():
        place, separator, message = line.partition(": error: ")
        if separator:
            reported.setdefault(Path(place.partition(":")[0]).name, []).append(f"error: {message}")
    assert reported == expected, checked.stdout


class _Understood(BaseException):
    """The words of a command were understood; a `BaseException`, which `main` does not report."""


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_is_understood(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(options: object) -> NoReturn:
        raise _Understood

    # What is done with the options before the command goes to work.
    monkeypatch.setattr(flags, "_refuse_nan", stop)
    try:
        code = main(command)
    except _Understood:
        return
    assert code == 0, capsys.readouterr().err


def test_a_block_stands_where_it_stands_in_the_page() -> None:
    page = parse_page(
        "a.md", "# A\n\n```python\nx = 1\n```\n\n<!-- only checked: why -->\n\n```python\ny = x\n```\n"
    )
    assert page.program() == "\n\n\nx = 1\n"
    assert page.program(("", "only checked")) == "\n\n\nx = 1\n\n\n\n\n\ny = x\n"


def test_marks_are_of_the_block_that_follows() -> None:
    mistake = "<!-- not run: a mistake -->\n```python\n1 +\n```\n\n"
    text = mistake + "```python\nprint(1)\n```\n<!-- output -->\n```text\n1\n```\n"
    assert [block.mark for block in parse_page("a.md", text).blocks] == ["not run", "", "output"]


def test_a_page_may_only_be_shown() -> None:
    assert parse_page("a.md", "<!-- only shown: fragments -->\n").only_shown
    assert not parse_page("a.md", "only shown\n").only_shown


def test_output_that_is_not_printed_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    page = parse_page("a.md", "```python\nprint(2)\n```\n<!-- output -->\n```text\n1\n```\n")
    with pytest.raises(pytest.fail.Exception, match=r"a\.md:6 shows\n1\n"):
        _run(page, monkeypatch)


def test_an_answer_of_a_session_that_is_wrong_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    page = parse_page("a.md", "```python\nx = 2\n```\n\n```pycon\n>>> x\n1\n```\n")
    with pytest.raises(pytest.fail.Exception, match=r"line 6, in a\.md"):
        _run(page, monkeypatch)


def test_commands_are_found_in_shells_and_in_indented_lines() -> None:
    text = "    pipeflow list  # all\n\n```console\n$ pipeflow train ppo \\\n    --steps 10\n$ ls\n```\n"
    assert parse_page("a.md", text).commands == (("list",), ("train", "ppo", "--steps", "10"))
