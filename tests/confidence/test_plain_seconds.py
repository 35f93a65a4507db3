"""Plain kernels count the time of their threads, and not the time that these waited for each other."""

from __future__ import annotations

import time

import pytest

from confidence.kernel import NEVER_COMPILED, kernel, plain_for, seconds_plain


@kernel
def _waits(seconds: float) -> None:
    time.sleep(seconds)


@kernel
def _works(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.mark.skipif(NEVER_COMPILED, reason="kernels are functions")
def test_waiting_is_not_spent() -> None:
    begin = seconds_plain()
    with plain_for(1e9):
        _works(0.02)
        worked = seconds_plain()
        _waits(0.4)
    assert worked - begin >= 0.02
    assert seconds_plain() - worked < 0.2
