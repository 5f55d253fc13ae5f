"""Whatever words the command is given: it does what they ask for, or says in one line why not."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeflow.algorithms.catalogue import CATALOGUE, entry_of
from pipeflow.cli.configuration import from_json, to_json
from pipeflow.cli.evaluate import EvalOptions
from pipeflow.cli.simulate import SimulateOptions
from pipeflow.cli.training import TrainOptions
from pipeflow.state.values import Json
from tests.cli.small import COMMAND, ENVIRONMENT
from tests.reliability.spoken import SECONDS, Said, said

COMMANDS = ("train", "eval", "graph", "list", "simulate")
ALGORITHMS = [entry.name for entry in CATALOGUE]
# What no number, name, path or JSON should be, or only just is.
STRANGE = [
    "", "-", "--", "---", "=", "--=", "-1", "0", "1", "2.5", "1e400", "-1e-400", "nan", "-inf", "None", "none",
    "True", "1_000", "0x10", "9" * 40, "9" * 5000, "[]", "{}", "[[", '{"a": ', "a=", "=a", "a=b=c", "a=NaN",
    "a=" + "[" * 2000, ".", "..", "/", "/dev/null", "/proc/self/mem", "~", "%s", "{0}", "$HOME", "*", "é", "日本",
    "🎉", "\udcff", "\x1b[31m", "\n", "a\nb", "\t", " ", "\r", "a" * 10_000, ":", "a:", ":a", "a.b:c", "..:a",
    ".a:b", "json:loads", "math:pi", "sys:path", "nowhere:X-v0", "CartPole-v1", "CartPole-v99", "ALE/Pong-v5",
    "--help=1", "-h1", "--version", "ppo", "PPO", "train",
]  # fmt: skip


def flags_of(*kinds: Any) -> list[str]:
    """What the fields of dataclasses are called on the command line."""
    names = [field.name for kind in kinds for field in dataclasses.fields(kind)]
    return [f"--{name.replace('_', '-')}" for name in names]


FLAGS = sorted(
    {
        *flags_of(TrainOptions, EvalOptions, SimulateOptions),
        *(flag for name in ALGORITHMS for flag in flags_of(entry_of(name).load().configuration)),
        "--env-kwargs", "--mermaid",
    }
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A flag with a letter too many, too few, or another."""
    word = draw(st.sampled_from(FLAGS))
    place = draw(st.integers(0, len(word) - 1))
    letter = draw(st.sampled_from(["", "-", "=", "x", word[place] * 2, "é", " "]))
    return word[:place] + letter + word[place + 1 :]


def word() -> st.SearchStrategy[str]:
    flags = st.sampled_from(FLAGS)
    # No process can be given a zero character.
    text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
    values = st.one_of(st.sampled_from(STRANGE), text, st.integers().map(str), st.floats().map(str))
    return st.one_of(flags, values, mutated(), st.builds("{}={}".format, flags, values))


def words() -> st.SearchStrategy[list[str]]:
    return st.lists(word(), max_size=6)


few = settings(max_examples=30, deadline=None, derandomize=True)
many = settings(max_examples=1_000, deadline=None)


@pytest.fixture(scope="module", autouse=True)
def _elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder with another that is occupied, so that what would be a good run has no place."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "occupied").mkdir()
    (folder / "occupied" / "file").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield


def speak(command: str, name: str, rest: Sequence[str]) -> None:
    end = ("--logdir", "occupied") if command == "train" else ()
    said([command, name, *rest, *end]).check()


@few
@given(st.lists(st.one_of(word(), st.sampled_from(["eval", "list", "simulate"])), max_size=3))
def test_any_words_at_all(found: list[str]) -> None:
    # What begins like these may be a training, which has its own test.
    if found[:1] not in (["train"], ["graph"]):
        said(found).check()


@few
@given(st.sampled_from(["train", "graph"]), st.sampled_from(ALGORITHMS), words())
def test_words_behind_an_algorithm(command: str, name: str, rest: list[str]) -> None:
    speak(command, name, rest)


@few
@given(st.sampled_from(["eval", "simulate"]), words())
def test_words_behind_a_command(command: str, rest: list[str]) -> None:
    said([command, *rest]).check()


@st.composite
def settled(draw: st.DrawFn) -> tuple[str, str, str]:
    """An algorithm, one of its flags, and a value that may be of another type, too large, or no value at all."""
    name = draw(st.sampled_from(ALGORITHMS))
    # A frame stack takes as much memory as it is told to.
    flags = {*flags_of(TrainOptions, entry_of(name).load().configuration), "--env-kwargs"} - {"--frame-stack"}
    return name, draw(st.sampled_from(sorted(flags))), draw(word())


@few
@given(settled())
def test_a_value_that_a_flag_may_not_have(found: tuple[str, str, str]) -> None:
    name, flag, value = found
    speak("train", name, [flag, value])


@pytest.mark.parametrize("value", ["nan", "-nan", "NaN"])
@pytest.mark.parametrize("flag", ["--lr", "--gamma", "--clip", "--until-return", "--checkpoint-minutes"])
def test_a_setting_that_is_no_number_is_refused(flag: str, value: str) -> None:
    answer = said(["train", "ppo", f"{flag}={value}"])
    assert answer.code == 2
    assert f"{flag.removeprefix('--')} must be" in answer.err


@pytest.mark.slow
@many
@given(st.sampled_from(["train", "graph"]), st.sampled_from(ALGORITHMS), words())
def test_many_words_behind_an_algorithm(command: str, name: str, rest: list[str]) -> None:
    speak(command, name, rest)


@pytest.mark.slow
@many
@given(settled())
def test_many_values_that_a_flag_may_not_have(found: tuple[str, str, str]) -> None:
    name, flag, value = found
    speak("train", name, [flag, value])
    speak("graph", name, [flag, value])


# What a process is started with is bytes, which need not be text.
PROCESSES = [
    [b"\xff"],
    ["simulate", b"\xff:x"],
    ["train", "ppo", "--env-kwargs", "a=" + "[" * 100_000, "--env", b"\xff"],
]


@pytest.mark.parametrize("given_words", PROCESSES, ids=range(len(PROCESSES)))
def test_processes_of_their_own_end_alike(given_words: list[str | bytes]) -> None:
    done = subprocess.run(
        [*COMMAND, *given_words], capture_output=True, env=ENVIRONMENT, timeout=SECONDS, check=False
    )
    Said(done.returncode, done.stdout.decode(), done.stderr.decode()).check()
    assert done.returncode == 2


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just(10**400)),
    lambda parts: st.one_of(
        st.lists(parts, max_size=3), st.dictionaries(st.text(max_size=5), parts, max_size=3)
    ),
    max_leaves=8,
)


@few
@given(st.sampled_from(ALGORITHMS), st.data())
def test_a_configuration_of_any_json_is_one_or_refused(name: str, data: st.DataObject) -> None:
    kind = entry_of(name).load().configuration
    values = to_json(kind())
    field = data.draw(st.sampled_from(sorted(values)))
    values[field] = data.draw(JSON)
    with contextlib.suppress(ValueError):  # which any other error is not
        assert isinstance(from_json(kind, values), kind)


@pytest.mark.parametrize(
    "env", [{}, {"env": None}, {"env": "CartPole-v1", "frames": 2}, {"env": "x", "kwargs": []}]
)
def test_an_environment_that_json_describes_badly_is_refused(env: dict[str, Json]) -> None:
    kind = entry_of("ppo").load().configuration
    with pytest.raises(ValueError, match=r"EnvSpec (needs|has no) |env.* is .*, which is no "):
        from_json(kind, {**to_json(kind()), "env": env})


@pytest.mark.parametrize("rate", [10**400, math.nan, True, "fast", None, [1e-3]])
def test_a_number_that_json_gives_badly_is_refused(rate: Json) -> None:
    kind = entry_of("ppo").load().configuration
    with pytest.raises(ValueError, match=r"^lr is .*, which is no float$"):
        from_json(kind, {**to_json(kind()), "lr": rate})
