"""Ctrl-C where nobody can catch what it raises: in callbacks from C."""

from __future__ import annotations

import ctypes
import signal
import sys
import time
from collections.abc import Callable
from threading import enumerate as enumerate_threads

import pytest

from tests.cli.conftest import Invoke
from uncertain_cep.cli import interrupts, main
from uncertain_cep.cli.interrupts import lasting_interrupts


def called_back(error: type[BaseException]) -> None:
    """Have C code call a function that raises."""

    def fail() -> None:
        raise error

    callback: Callable[[], None] = ctypes.CFUNCTYPE(None)(fail)
    callback()


def command(steps: list[str]) -> None:
    with lasting_interrupts():
        # It waits until this is done, however long that takes.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        called_back(KeyboardInterrupt)
        steps.append("went on")
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        until = time.monotonic() + 600
        while time.monotonic() < until:
            time.sleep(0.01)
        steps.append("was not interrupted")


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_in_a_callback_comes_again_and_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    before, steps = sys.unraisablehook, list[str]()
    with pytest.raises(KeyboardInterrupt):
        command(steps)
    assert steps == ["went on"]
    assert sys.unraisablehook is before
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("interruptible")
def test_no_interrupt_comes_after_the_command_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "AGAIN", 3600.0)
    before = set(enumerate_threads())
    with lasting_interrupts():
        called_back(KeyboardInterrupt)
        (timer,) = set(enumerate_threads()) - before
    timer.join(1800.0)
    assert not timer.is_alive()


def test_other_errors_are_shown_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: seen.append(unraisable.exc_type))
    with lasting_interrupts():
        called_back(ValueError)
    assert seen == [ValueError]


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_other_signals_end_a_command_in_order(
    monkeypatch: pytest.MonkeyPatch, invoke: Invoke, number: signal.Signals, code: int
) -> None:
    ended: list[str] = []

    def wait(*_: object, **__: object) -> None:
        try:
            callback: Callable[[], None] = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(number))
            callback()
            time.sleep(600)
        finally:
            ended.append("in order")

    # Who started the tests may have had it ignored.
    before = signal.signal(number, signal.SIG_DFL)
    try:
        monkeypatch.setattr(main.commands["validate"], "callback", wait)
        done = invoke("validate", "anything")
        assert done.exit_code == code
        assert done.stderr == f"Ended by {number.name}.\n"
        assert ended == ["in order"]
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_a_signal_that_is_ignored_goes_on_to_be(monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    """As SIGHUP is under nohup."""

    def hang_up(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGHUP)

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        monkeypatch.setattr(main.commands["validate"], "callback", hang_up)
        assert invoke("validate", "anything").exit_code == 0
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_that_became_another_error_ends_the_command_as_one(
    monkeypatch: pytest.MonkeyPatch, invoke: Invoke
) -> None:
    def fail(*_: object, **__: object) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise AttributeError("partially initialized module") from None

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(main.commands["validate"], "callback", fail)
    done = invoke("validate", "anything")
    assert done.exit_code == 130
    assert done.stderr == "Aborted!\n"
    assert signal.getsignal(signal.SIGINT) is before
