"""Java ends with the command that has started it: in order if it can, within a bound, and in silence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext, java_gateway
from pyspark.sql import SparkSession

from uncertain_cep.cli import spark_sessions
from uncertain_cep.cli.interrupts import ending_with, lasting_interrupts
from uncertain_cep.cli.spark_sessions import _Java
from uncertain_cep.errors import RuntimeEnvironmentError
from uncertain_cep.spark import session
from uncertain_cep.spark.jobs import within_seconds, without_java
from uncertain_cep.spark.undecided_counts import worker_errors

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no sessions of processes")

ORDERLY = "import sys; print('starts', file=sys.stderr); sys.stdin.read(); print('noise', file=sys.stderr)"
STUBBORN = "import sys, time; print('starts', file=sys.stderr); time.sleep(3600)"


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Java]:
    monkeypatch.setattr("socketserver.BaseServer.handle_error", None)
    made = _Java()
    yield made
    if made._process is not None and made._process.poll() is None:
        made._process.kill()


def start(java: _Java, program: str) -> subprocess.Popen[bytes]:
    """Start a program as Spark starts Java."""
    options: dict[str, Any] = dict(java.options)
    with java.starting():
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, start_new_session=True, **options
        )
        java.launched(process)
    return process


def heard(capfd: pytest.CaptureFixture[str], text: str) -> str:
    said = ""
    while text not in said:
        said += capfd.readouterr().err
        time.sleep(0.01)
    return said


@pytest.mark.parametrize("program", [ORDERLY, STUBBORN])
def test_java_ends_with_a_signal(
    program: str, java: _Java, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A slow machine takes its time to end in order.
    monkeypatch.setattr(spark_sessions, "END_SECONDS", 600.0 if program == ORDERLY else 0.1)
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        process = start(java, program)
        heard(capfd, "starts")
        with lasting_interrupts() as interrupts, pytest.raises(KeyboardInterrupt), java.ending():
            signal.raise_signal(signal.SIGTERM)
        assert interrupts.seen == signal.SIGTERM
        assert process.wait(600) == (0 if program == ORDERLY else -signal.SIGKILL)
        assert "noise" not in capfd.readouterr().err
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_java_says_of_failing_to_start_is_shown(java: _Java, capfd: pytest.CaptureFixture[str]) -> None:
    with java.ending(), java.starting():
        command = [sys.executable, "-c", "import sys; sys.exit('no such option')"]
        assert subprocess.run(command, **java.options, check=False).returncode == 1
    assert heard(capfd, "no such option") == "no such option\n"


@pytest.mark.usefixtures("interruptible")
def test_a_signal_that_a_library_has_taken_is_taken_back() -> None:
    ended: list[str] = []
    before = signal.getsignal(signal.SIGINT)
    with lasting_interrupts() as interrupts:
        signal.signal(signal.SIGINT, lambda *_: ended.append("library"))
        with pytest.raises(KeyboardInterrupt), ending_with(lambda: ended.append("ours")):
            signal.raise_signal(signal.SIGINT)
        assert interrupts.seen == signal.SIGINT
    assert ended == ["ours"]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    "error",
    [Py4JNetworkError("Answer from Java side is empty"), ConnectionRefusedError(), ConnectionResetError()],
)
def test_java_that_is_gone(error: Exception) -> None:
    for context in (without_java, worker_errors):
        with pytest.raises(RuntimeEnvironmentError, match="Spark's Java process has ended"), context():
            raise error


def test_the_reader_of_a_pipe_that_is_gone_is_not_java() -> None:
    with pytest.raises(BrokenPipeError), without_java():
        raise BrokenPipeError


def test_waiting_for_spark_has_a_bound() -> None:
    assert within_seconds(lambda: None, 600.0)

    def fails() -> None:
        raise Py4JNetworkError("Error while sending or receiving")

    assert within_seconds(fails, 600.0)
    assert not within_seconds(lambda: time.sleep(5.0), 0.01)


def test_java_that_was_to_start_is_killed_with_who_starts_it(
    java: _Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would wait for ever: nobody is left to whom it could say that it has started."""
    plain = java_gateway.Popen  # type: ignore[attr-defined]

    def launch(conf: object, options: dict[str, Any]) -> None:
        java_gateway.Popen([sys.executable, "-c", STUBBORN], stdin=subprocess.PIPE, **options)  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    monkeypatch.setattr(java_gateway, "launch_gateway", launch)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    with pytest.raises(KeyboardInterrupt), java.starting():
        session._start_java({"spark.app.name": "none"}, java)
    assert java._process is not None
    assert java._process.wait(600) == -signal.SIGKILL
    assert java_gateway.Popen is plain  # type: ignore[attr-defined]


@pytest.mark.parametrize("master", ["local[2,3]", "yarn"])
def test_java_is_started_for_its_master(master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[dict[str, str]] = []
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, sys.executable)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda self: None)
    monkeypatch.setattr(session, "check_startable", lambda master: None)
    monkeypatch.setattr(session, "_start_java", lambda settings, java: launched.append(dict(settings)))
    session.start_session(master, "mine", {"spark.driver.memory": "1g"})
    (settings,) = launched
    assert settings["spark.master"] == master
    assert settings["spark.app.name"] == "mine"
    assert settings["spark.driver.memory"] == "1g"
