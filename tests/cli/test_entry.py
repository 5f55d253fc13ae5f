"""The command itself: its help, its subcommands, and what becomes of what goes wrong."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from pipeflow.algorithms.catalogue import CATALOGUE
from pipeflow.cli import entry, main
from pipeflow.cli.versions import pipeflow_version
from tests.cli.small import COMMAND, ENVIRONMENT, run_python


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"]])
def test_help_names_every_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    printed = capsys.readouterr().out
    commands = ("train", "show", "eval", "graph", "list", "check", "simulate")
    assert all(f"  {command} " in printed for command in commands)


@pytest.mark.parametrize("command", ["train", "graph"])
def test_help_of_a_command_names_the_algorithms(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert (
        "algorithms: a2c, a3c, ppo, ddppo, impala, appo, dqn, apex, maml, two-trainers"
        in capsys.readouterr().out
    )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pipeflow {pipeflow_version()}\n"


def test_list_has_one_line_an_algorithm(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [entry.name for entry in CATALOGUE]
    assert "ppo           proximal policy optimisation: synchronous rounds, clipped minibatch epochs" in lines


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["list"],
        ["train", "--help"],
        ["train"],
        ["trian"],
        ["train", "pp"],
        ["--version"],
        ["check"],
    ],
)
def test_what_needs_no_torch_does_not_wait_for_it(words: list[str]) -> None:
    code = f"import sys; from pipeflow.cli import main; code = main({words!r}); "
    code += "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    done = run_python(["-c", code])
    assert done.returncode in (0, 2), done.stderr
    assert not {"torch", "ray"} & set(done.stderr.split())


def test_an_error_is_one_line_and_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trian"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        "pipeflow: error: there is no command 'trian'; did you mean train? pipeflow --help describes them\n"
    )


def test_debug_adds_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["trian", "--debug"]) == 2
    by_flag = capsys.readouterr().err
    monkeypatch.setenv("PIPEFLOW_DEBUG", "1")
    assert main(["trian"]) == 2
    by_variable = capsys.readouterr().err
    for printed in (by_flag, by_variable):
        assert printed.startswith("Traceback (most recent call last)")
        assert printed.splitlines()[-1].startswith("pipeflow: error: there is no command 'trian'")


def test_ctrl_c_before_anything_was_started_is_no_traceback_either(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(words: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(entry, "_run", interrupted)
    assert main(["list"]) == 130
    assert capsys.readouterr().err == "\npipeflow: interrupted\n"


def test_a_mistake_of_pipeflows_own_is_one_line_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(words: list[str]) -> int:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(entry, "_run", broken)
    assert main(["list"]) == 1
    assert capsys.readouterr().err == (
        "pipeflow: error: unexpected ZeroDivisionError: division by zero; --debug shows where\n"
    )


def test_a_reader_that_has_enough_is_no_error() -> None:
    done = subprocess.run(
        f"{shlex.join(COMMAND)} list | true",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )
    assert done.stderr == ""
