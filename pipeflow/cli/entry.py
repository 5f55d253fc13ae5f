"""The `pipeflow` command: which subcommand, and what becomes of its errors.

Apart from the subcommands so that nothing heavy is imported before it is known to be needed: help, the list of
algorithms and most mistakes take a few hundredths of a second, where importing torch takes seconds.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from difflib import get_close_matches

from pipeflow.cli.interrupts import deferred

_HELP = """\
usage: pipeflow COMMAND ...

Distributed reinforcement learning as typed dataflow.

commands:
  train ALGORITHM   train; the run's folder gets checkpoints, curves and the plan's picture
  train --resume RUN  go on with a run from its newest checkpoint
  show RUN          show a run in the browser: its plan, curves and failures, from its folder
  eval PATH         play greedy episodes with the policy of a run, or of a checkpoint
  graph PLAN        print the plan of an algorithm, or MODULE:NAME of yours, as text or as a Mermaid flowchart
  list              the algorithms, with one line each
  check PLAN        find mistakes in plans of yours, MODULE or MODULE:NAME, and in their types; starts nothing
  simulate PLAN     check the laws on a plan of yours, MODULE:NAME, under many simulated schedules

  pipeflow COMMAND --help, or pipeflow train ALGORITHM --help, lists the flags

options:
  -h, --help        show this text
  --version         show the version
  --debug           with any command: show the traceback of an error (as PIPEFLOW_DEBUG=1 does)
"""
_COMMANDS = ("train", "show", "eval", "graph", "list", "check", "simulate")
_HELP_WORDS = ("-h", "--help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    arguments: the words after `pipeflow`; None takes the process's own.
    Returns the exit code: 0, or 1 if the command failed (or its goal was not reached), 2 if it cannot be done
    as it was asked for, 128 and the signal's number if one stopped it.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words or os.environ.get("PIPEFLOW_DEBUG", "0") not in ("", "0")
    words = [word for word in words if word != "--debug"]
    try:
        return _run(words)
    except SystemExit as stop:
        # tyro ends the process after it has printed a help.
        return stop.code if isinstance(stop.code, int) else 0
    except KeyboardInterrupt:
        print("\npipeflow: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read the output has enough; the interpreter's own flush at exit shall not complain.
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.close(nothing)
        return 1
    except Exception as error:
        from pipeflow.cli.errors import explain

        explanation = explain(error)
        if debug:
            traceback.print_exception(error)
        elif explanation.details:
            print(explanation.details, file=sys.stderr)
        print(f"pipeflow: error: {explanation.line}", file=sys.stderr)
        return explanation.exit_code


def _run(words: list[str]) -> int:
    from pipeflow.cli.errors import UsageError

    if not words or words[0] in _HELP_WORDS:
        print(_HELP, end="")
        return 0
    command, rest = words[0], words[1:]
    if command == "--version":
        from pipeflow.cli.versions import pipeflow_version

        print(f"pipeflow {pipeflow_version()}")
        return 0
    if command not in _COMMANDS:
        close = get_close_matches(command, _COMMANDS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"the commands are {', '.join(_COMMANDS)};"
        raise UsageError(f"there is no command {command!r}; {hint} pipeflow --help describes them")
    if command == "list":
        if rest and rest[0] not in _HELP_WORDS:
            raise UsageError(f"list takes no arguments, got {' '.join(rest)!r}")
        return _list()
    if command == "eval":
        if not rest:
            raise UsageError(
                "eval needs the folder of a run or of a checkpoint, as in pipeflow eval runs/my-run"
            )
        with deferred():
            from pipeflow.cli.evaluate import evaluate_checkpoint

        return evaluate_checkpoint(rest)
    if command == "check":
        with deferred():
            from pipeflow.cli.check import check_plans

        return check_plans(rest)
    if command == "show":
        if not rest:
            raise UsageError("show needs the folder of a run, as in pipeflow show runs/my-run")
        with deferred():
            from pipeflow.cli.show import show_run

        return show_run(rest)
    if command == "simulate":
        return _simulate(rest)
    return _with_algorithm(command, rest)


def _list() -> int:
    from pipeflow.algorithms.catalogue import CATALOGUE

    width = max(len(entry.name) for entry in CATALOGUE)
    for entry in CATALOGUE:
        print(f"{entry.name:<{width}}  {entry.summary}")
    return 0


def _simulate(words: list[str]) -> int:
    from pipeflow.cli.errors import UsageError

    asks_for_help = bool(set(words) & set(_HELP_WORDS))
    if not asks_for_help and (not words or words[0].startswith("-")):
        raise UsageError("simulate needs a plan first, as in pipeflow simulate my_module:my_plan")
    with deferred():
        from pipeflow.cli.simulate import simulate_plan

    return simulate_plan("", ["--help"]) if asks_for_help else simulate_plan(words[0], words[1:])


def _with_algorithm(command: str, words: list[str]) -> int:
    from pipeflow.algorithms.catalogue import CATALOGUE, UnknownAlgorithm, entry_of
    from pipeflow.cli.errors import UsageError

    names = ", ".join(entry.name for entry in CATALOGUE)
    if words and words[0] in _HELP_WORDS:
        own = ", or a plan of yours, MODULE:NAME" if command == "graph" else ""
        print(f"usage: pipeflow {command} ALGORITHM ...\n\nalgorithms: {names}{own}\n")
        print(f"pipeflow {command} ALGORITHM --help lists the flags")
        return 0
    if command == "train" and any(word.partition("=")[0] == "--resume" for word in words[:1]):
        with deferred():
            from pipeflow.cli.train import train

        return train(None, words)
    if not words or words[0].startswith("-"):
        raise UsageError(
            f"{command} needs an algorithm first, as in pipeflow {command} ppo; there are: {names}"
        )
    name, rest = words[0], words[1:]
    # No algorithm has a name like a module's or a file's.
    if command == "graph" and set(name) & set(".:"):
        with deferred():
            from pipeflow.cli.graph import show_graphs

        return show_graphs(name, rest)
    try:
        entry_of(name)
    except UnknownAlgorithm as error:
        own = "; name a plan of yours as MODULE:NAME" if command == "graph" else ""
        raise UsageError(f"{error}{own}") from error
    if command == "graph":
        with deferred():
            from pipeflow.cli.graph import show_graph

        return show_graph(name, rest)
    with deferred():
        from pipeflow.cli.train import train

    return train(name, rest)
