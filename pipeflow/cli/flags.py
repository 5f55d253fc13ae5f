"""The command line's flags, made by tyro from dataclasses, and its complaints, on one line.

Apart from the commands, which only name the dataclasses. A configuration needs to know nothing of flags: what
an environment is on the command line (`--env`, `--env-kwargs`, `--frame-stack`) is said here.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
from collections.abc import Generator, Sequence
from dataclasses import fields, is_dataclass, make_dataclass
from functools import partial
from typing import Any, TypeVar

import tyro
from tyro.constructors import ConstructorRegistry, StructConstructorSpec, StructFieldSpec, StructTypeInfo

from pipeflow.algorithms.catalogue import Configuration
from pipeflow.cli.errors import UsageError

Options = TypeVar("Options")
C = TypeVar("C", bound=Configuration)


def parse(options: type[Options], words: Sequence[str], program: str, description: str) -> Options:
    """The options that the words of a command line give; every field of the dataclass is a flag.

    Raises UsageError for words that do not fit, SystemExit after printing the help where that was asked for.
    """
    parsed: Options = _parse(options, words, program, description)
    return parsed


def parse_with_configuration(
    options: type[Options],
    configuration: type[C],
    words: Sequence[str],
    program: str,
    description: str,
    defaults: tuple[Options, C] | None = None,
) -> tuple[Options, C]:
    """As `parse`, with the fields of an algorithm's configuration among the flags, without a prefix.

    defaults: of what no flag is given for; None takes those of the dataclasses.
    """
    # The names become the headings of the help.
    both = make_dataclass("Arguments", [("command", options), ("algorithm", configuration)])
    parsed = _parse(both, words, program, description, None if defaults is None else both(*defaults))
    return parsed.command, parsed.algorithm


# `Any`: the class is put together at run time.
def _parse(kind: type[Any], words: Sequence[str], program: str, description: str, default: Any = None) -> Any:
    call = partial(
        tyro.cli,
        kind,
        prog=program,
        description=description,
        args=list(words),
        config=(tyro.conf.OmitArgPrefixes,),
        registry=_registry(),
        **({} if default is None else {"default": default}),
    )
    if {"-h", "--help"} & set(words):
        return call()
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint), _unwrapped():
            parsed = call()
    except SystemExit as stop:
        if not stop.code:
            raise
        raise UsageError(_complaint(complaint.getvalue(), program)) from None
    _refuse_nan(parsed)
    return parsed


# `Any`: a dataclass of whatever fields.
def _refuse_nan(options: Any) -> None:
    """A float that is no number fits its field's type and is in no range, but passes many a check of one."""
    for field in fields(options):
        value = getattr(options, field.name)
        if is_dataclass(value):
            _refuse_nan(value)
        elif isinstance(value, float) and math.isnan(value):
            raise UsageError(f"--{field.name.replace('_', '-')} must be a number, got nan")


def _registry() -> ConstructorRegistry:
    from pipeflow.rl.environments import EnvSpec
    from pipeflow.rl.multi_agent.environments import MultiAgentEnvSpec

    registry = ConstructorRegistry()

    def environment(info: StructTypeInfo) -> StructConstructorSpec | None:
        if info.type is not EnvSpec:
            return None
        frames = StructFieldSpec(
            "frame_stack", int, info.default.frame_stack, "How many of the latest observations make one."
        )
        what = "A registered id, or module:id with the module that registers it."

        def make(env: str, env_kwargs: tuple[str, ...], frame_stack: int) -> EnvSpec:
            return EnvSpec(env, _keywords(env_kwargs), frame_stack)

        return StructConstructorSpec(
            instantiate=make,
            fields=(*_named_environment(info, what), frames),
        )

    def multi_agent_environment(info: StructTypeInfo) -> StructConstructorSpec | None:
        if info.type is not MultiAgentEnvSpec:
            return None
        what = "module:name of what makes it, or a module of PettingZoo's."

        def make(env: str, env_kwargs: tuple[str, ...]) -> MultiAgentEnvSpec:
            return MultiAgentEnvSpec(env, _keywords(env_kwargs))

        return StructConstructorSpec(
            instantiate=make,
            fields=_named_environment(info, what),
        )

    registry.struct_rule(environment)
    registry.struct_rule(multi_agent_environment)
    return registry


def _named_environment(info: StructTypeInfo, what: str) -> tuple[StructFieldSpec, StructFieldSpec]:
    """The flags that say which environment, and with which arguments."""
    return (
        StructFieldSpec("env", str, info.default.env, what),
        StructFieldSpec(
            "env_kwargs",
            tuple[str, ...],
            tuple(f"{key}={json.dumps(value)}" for key, value in info.default.kwargs.items()),
            "Arguments of the environment, as key=value; values are JSON, or else text.",
        ),
    )


def _keywords(words: tuple[str, ...]) -> dict[str, object]:
    return dict(map(_keyword, words))


def _keyword(word: str) -> tuple[str, object]:
    key, equals, value = word.partition("=")
    if not equals or not key.isidentifier():
        raise ValueError(f"--env-kwargs takes key=value, such as gravity=9.8, got {word!r}")
    try:
        return key, json.loads(value)
    except (ValueError, RecursionError):
        return key, value


@contextlib.contextmanager
def _unwrapped() -> Generator[None]:
    """Let tyro believe in a terminal so wide that no message is wrapped, which might cut words."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "10000"
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def _complaint(box: str, program: str) -> str:
    """One line of what tyro says in a box: a title, the message, a rule, hints, with rules between them."""
    lines = [line.strip("│╭╮╰╯ ") for line in box.splitlines()]
    # Where the output is not UTF-8, the title stands on a rule of hyphens rather than in the frame.
    framed = box.startswith("╭")
    sections: list[list[str]] = [[]]
    for line in lines[1 if framed else 2 :]:
        if line.strip("─-"):
            sections[-1].append(line)
        else:
            sections.append([])
    message = re.sub(r"^Error parsing (?=--)", "", " ".join(sections[0]))
    refusal = re.sub(r"^Error parsing \S+: ", "", message)
    if refusal != message:
        return refusal  # a dataclass refused its fields' values, and says what to change
    meant = [
        found[0]
        for section in sections
        if section and section[0].startswith("Perhaps you meant")
        for line in section
        if (found := re.findall(r"^--[\w-]+", line))
    ]
    hint = f"; did you mean {' or '.join(meant)}?" if meant else ";"
    return f"{message.rstrip('.')}{hint} {program} --help lists the flags"
