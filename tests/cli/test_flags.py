"""The flags give the configuration that they say, each field by one flag of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

import pytest

from pipeflow.algorithms.ppo import PPOConfig
from pipeflow.cli.errors import UsageError
from pipeflow.cli.flags import parse_with_configuration
from pipeflow.rl.environments import EnvSpec

LONG = "take another, " + ", ".join(["however long this line becomes"] * 9)


@dataclass(frozen=True)
class Options:
    """What the command adds."""

    goal: float | None = None
    """A number that may be negative."""
    quiet: bool = False
    """A switch."""

    def __post_init__(self) -> None:
        if self.goal == 13:
            raise ValueError(f"the goal must not be {self.goal:g}; {LONG}")


def parsed(*words: str) -> tuple[Options, PPOConfig]:
    return parse_with_configuration(Options, PPOConfig, words, "pipeflow try", "Try it.")


def test_without_words_everything_has_its_default() -> None:
    assert parsed() == (Options(), PPOConfig())


def test_words_set_options_and_fields_alike() -> None:
    options, config = parsed(
        *("--goal", "-100.5", "--quiet", "--hidden", "32", "16", "--anneal-steps", "5000"),
        *("--shared-trunk", "--activation", "relu", "--max-grad-norm", "None", "--lr", "1e-4"),
    )
    assert options == Options(goal=-100.5, quiet=True)
    assert config == PPOConfig(
        hidden=(32, 16), anneal_steps=5000, shared_trunk=True, activation="relu", max_grad_norm=None, lr=1e-4
    )


def test_an_environment_is_a_name_its_arguments_and_a_number_of_frames() -> None:
    arguments = (
        "gravity=9.8",
        "full=true",
        'map=["SF","FG"]',
        "render_mode=rgb_array",
        "text=a=b",
        "none=null",
    )
    _, config = parsed("--env", "tests.somewhere:Some-v0", "--frame-stack", "4", "--env-kwargs", *arguments)
    assert config.env == EnvSpec(
        "tests.somewhere:Some-v0",
        {
            "gravity": 9.8,
            "full": True,
            "map": ["SF", "FG"],
            "render_mode": "rgb_array",
            "text": "a=b",
            "none": None,
        },
        frame_stack=4,
    )


def test_the_help_has_every_field_once_with_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parsed("--help")
    assert not stop.value.code
    text = capsys.readouterr().out
    flags = re.findall(r"^\W*?(--[a-z][\w-]*)", text, re.MULTILINE)
    names = {field.name for field in (*fields(Options), *fields(PPOConfig))}
    expected = {f"--{name.replace('_', '-')}" for name in names} | {"--env-kwargs", "--frame-stack"}
    assert sorted(flags) == sorted(expected)
    assert "Lambda of GAE" in text
    assert "A number that may be negative." in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--workers", "0"), "workers must be at least 1, got 0"),
        (("--frame-stack", "0"), "frame_stack must be at least 1, got 0"),
        (("--env-kwargs", "=1"), "--env-kwargs takes key=value, such as gravity=9.8, got '=1'"),
        (
            ("--wokers", "1"),
            "Unrecognized options: --wokers, 1; did you mean --workers? pipeflow try --help lists the flags",
        ),
        (("surplus",), "Unrecognized options: surplus; pipeflow try --help lists the flags"),
        (("--goal", "13"), f"the goal must not be 13; {LONG}"),
    ],
)
def test_a_complaint_is_one_line(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError) as caught:
        parsed(*words)
    assert str(caught.value) == message
    assert capsys.readouterr().err == ""
