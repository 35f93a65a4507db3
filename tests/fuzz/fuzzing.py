"""The loop of a fuzzer: cases from printed seeds, each within bounds, failures made as small as they get."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from benchmarks.resident import forget_peak, is_told, peak, resident
from uncertain_cep.errors import InternalError, UncertainCepError, UncertainCepWarning

__all__ = ["Fuzzer", "allowed", "mutated", "pieces_left_out"]

CaseT = TypeVar("CaseT")

MOST_SECONDS: Final = 600.0
"""Of processor time, for one case on a slow machine; the first of a process also compiles kernels."""

MOST_BYTES: Final = 600 * 2**20
"""That one case may hold at most, besides what the process held before; minded where the system tells."""


class FuzzError(AssertionError):
    """A case that fails, as small as it got."""


def allowed(call: Callable[[], object]) -> None:
    """Call a function that may end with an error of ours; an internal one is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UncertainCepWarning)
        try:
            call()
        except InternalError:
            raise
        except UncertainCepError as error:
            if not str(error).strip():
                raise FuzzError("an error without a message") from error


@dataclass(frozen=True)
class Fuzzer(Generic[CaseT]):
    """Draws cases and checks each.

    Attributes
    ----------
    draw : callable
        Makes a case from a source of random numbers.
    check : callable
        Raises if a case fails.
    smaller : callable
        Yields cases that are a little smaller, the smallest first.
    """

    draw: Callable[[random.Random], CaseT]
    check: Callable[[CaseT], None]
    smaller: Callable[[CaseT], Iterator[CaseT]]

    def run(self, cases: int, seed: int | None = None) -> None:
        """Check so many cases; a case alone is run again by its own seed and ``cases=1``.

        Raises
        ------
        FuzzError
            With the seed and the smallest case found that fails in the same way.
        """
        first = random.SystemRandom().randrange(2**48) if seed is None else seed
        print(f"{cases:,} cases from seed {first}")
        for number in range(first, first + cases):
            case = self.draw(random.Random(number))
            error = self.failure(case)
            if error is not None:
                small, said = self.shrunk(case, error)
                text = f"{type(said).__name__}: {said}\nseed {number}, made as small as it gets: {small!r}"
                raise FuzzError(text) from said

    def failure(self, case: CaseT) -> BaseException | None:
        """Return how a case fails; None if it does not."""
        before = 0
        if is_told():
            forget_peak()
            before = resident()
        started = time.process_time()
        try:
            self.check(case)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return error
        took = time.process_time() - started
        grown = peak() - before if is_told() else 0
        if took > MOST_SECONDS:
            return FuzzError(f"it took {took:.0f} s of processor time")
        return FuzzError(f"it held {grown:,} bytes of memory") if grown > MOST_BYTES else None

    def shrunk(self, case: CaseT, error: BaseException) -> tuple[CaseT, BaseException]:
        """Return the smallest case found that fails with the same kind of error, and that error."""
        tried = 0
        while True:
            for candidate in self.smaller(case):
                tried += 1
                failure = self.failure(candidate)
                if type(failure) is type(error) and failure is not None:
                    case, error = candidate, failure
                    break
                if tried > 2000:
                    return case, error
            else:
                return case, error


PartsT = TypeVar("PartsT", str, bytes)


def pieces_left_out(parts: PartsT) -> Iterator[PartsT]:
    """Yield a text or bytes without one piece of it, large pieces first."""
    size = len(parts)
    while size:
        size //= 2
        step = max(1, size)
        for start in range(0, len(parts), step):
            if step < len(parts) or not start:
                yield parts[:start] + parts[start + step :]


def mutated(draw: random.Random, original: PartsT, parts: Sequence[PartsT]) -> PartsT:
    """Return a text or bytes with some pieces replaced, doubled, moved or left out."""
    for _ in range(draw.choice((0, 1, 1, 1, 2, 2, 3, 6))):
        start = draw.randrange(len(original) + 1)
        end = min(len(original), start + draw.choice((0, 0, 1, 1, 2, 4, 8, 40)))
        kind = draw.randrange(5)
        if kind < 3:
            new = draw.choice(parts)
        elif kind == 3:
            new = original[start:end] * 2
        else:
            place = draw.randrange(len(original) + 1)
            new = original[place : place + draw.choice((1, 3, 10, 60))]
        original = original[:start] + new + original[end:]
    return original
