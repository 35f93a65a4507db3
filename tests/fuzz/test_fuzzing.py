"""The loop of the fuzzers itself: it finds what fails, makes it small, and minds time and memory."""

from __future__ import annotations

import random

import pytest

from benchmarks.resident import is_told
from tests.fuzz import fuzzing
from tests.fuzz.fuzzing import Fuzzer, FuzzError, allowed, mutated, pieces_left_out
from tests.needs import is_demanded
from uncertain_cep.errors import InternalError, OptionError


def word(draw: random.Random) -> str:
    return "".join(draw.choices("abcx", k=40))


def no_x_after_a(text: str) -> None:
    if "a" in text and "x" in text[text.index("a") :]:
        raise ValueError("x after a")


def test_a_failure_is_found_and_made_small() -> None:
    with pytest.raises(FuzzError, match=r"x after a\nseed \d+, made as small as it gets: 'ax'"):
        Fuzzer(word, no_x_after_a, pieces_left_out).run(1000, seed=1)


def test_the_seed_of_a_failure_gives_it_again() -> None:
    drawn = [word(random.Random(seed)) for seed in (7, 7)]
    assert drawn[0] == drawn[1]


def hold(size: int) -> None:
    assert len(b"x" * size) == size


@pytest.mark.skipif(not is_told() and not is_demanded("proc"), reason="needs Linux' /proc")
def test_memory_is_minded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing, "MOST_BYTES", 2**24)
    # Neither that more was held before nor that it is held for a moment makes a difference.
    hold(2**28)
    with pytest.raises(FuzzError, match="bytes of memory"):
        Fuzzer(word, lambda _: hold(2**27), lambda _: iter(())).run(1)
    Fuzzer(word, lambda _: hold(2**20), lambda _: iter(())).run(1)


def test_time_is_minded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing, "MOST_SECONDS", -1.0)
    with pytest.raises(FuzzError, match="of processor time"):
        Fuzzer(word, lambda _: None, lambda _: iter(())).run(1)


def test_only_our_errors_are_allowed() -> None:
    def fail(error: Exception) -> None:
        raise error

    allowed(lambda: fail(OptionError("say what")))
    for error in (OptionError(" "), InternalError("a mistake"), KeyError("x"), DeprecationWarning("old")):
        with pytest.raises((AssertionError, type(error))):
            allowed(lambda error=error: fail(error))  # type: ignore[misc]


def test_pieces() -> None:
    assert set(pieces_left_out("abc")) >= {"bc", "ac", "ab"}
    assert list(pieces_left_out("")) == []
    assert all(isinstance(mutated(random.Random(n), b"abc", [b"z"]), bytes) for n in range(50))
