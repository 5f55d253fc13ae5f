"""The first signal is a note, the second an exception, and whoever had the signals before has them after."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from pipeflow.cli.interrupts import Interrupts, deferred


@pytest.fixture(autouse=True)
def started_from_a_terminal(handlers: Callable[[signal.Signals, Any], None]) -> None:
    """The handlers of such a process; with nohup, or behind `&`, some are ignored."""
    handlers(signal.SIGINT, signal.default_int_handler)
    handlers(signal.SIGTERM, signal.SIG_DFL)
    handlers(signal.SIGHUP, signal.SIG_DFL)


class Clock:
    """Stands still unless told otherwise."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_the_first_signal_is_a_note(
    number: signal.Signals, code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with Interrupts() as interrupts:
        signal.raise_signal(number)
    assert interrupts.received == number
    assert interrupts.exit_code == code
    assert "stopping after this update; once more stops at once" in capfd.readouterr().err


def test_the_second_raises() -> None:
    clock = Clock()
    with Interrupts(clock) as interrupts:
        signal.raise_signal(signal.SIGTERM)
        clock.now = 0.6
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert interrupts.exit_code == 143  # the first one says why


def test_the_same_ctrl_c_passed_on_by_a_launcher_is_no_second() -> None:
    clock = Clock()
    with Interrupts(clock) as interrupts:
        signal.raise_signal(signal.SIGINT)
        clock.now = 0.1
        signal.raise_signal(signal.SIGINT)
    assert interrupts.received == signal.SIGINT


def test_nothing_cuts_a_held_section_short() -> None:
    clock = Clock()
    with Interrupts(clock) as interrupts:
        with interrupts.held():
            signal.raise_signal(signal.SIGINT)
            clock.now = 0.6
            signal.raise_signal(signal.SIGINT)
            finished = True
        assert interrupts.received == signal.SIGINT
    assert finished


def test_a_section_that_may_be_cut_short_is() -> None:
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt), interrupts.at_once():
            signal.raise_signal(signal.SIGINT)
        assert interrupts.received == signal.SIGINT


def test_such_a_section_does_not_start_after_a_signal() -> None:
    started = False
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), interrupts.at_once():
            started = True
    assert not started


def test_ctrl_c_during_imports_comes_when_they_are_done() -> None:
    done: list[str] = []

    def imports() -> None:
        with deferred():
            signal.raise_signal(signal.SIGINT)
            done.append("numpy, whole")

    with pytest.raises(KeyboardInterrupt):
        imports()
    assert done == ["numpy, whole"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_handlers_are_given_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_signals_that_were_taken_over_are_taken_again(
    handlers: Callable[[signal.Signals, Any], None],
) -> None:
    def rays(number: int, frame: FrameType | None) -> None:
        raise SystemExit(1)

    with Interrupts() as interrupts:
        handlers(signal.SIGTERM, rays)
        interrupts.install()
        signal.raise_signal(signal.SIGTERM)
        assert interrupts.received == signal.SIGTERM


def test_under_nohup_the_end_of_the_terminal_is_ignored(
    handlers: Callable[[signal.Signals, Any], None],
) -> None:
    handlers(signal.SIGHUP, signal.SIG_IGN)
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGHUP)
        assert interrupts.received is None


@pytest.fixture
def handlers(request: pytest.FixtureRequest) -> Callable[[signal.Signals, Any], None]:
    """Sets a handler, which is given back when the test is over."""

    def install(number: signal.Signals, handler: Any) -> None:
        before = signal.signal(number, handler)
        request.addfinalizer(lambda: signal.signal(number, before))

    return install
