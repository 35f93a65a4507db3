"""Medians of several rounds in one process after a warm-up, contenders taking turns."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from statistics import median
from typing import Final, Literal

import pyarrow as pa

__all__ = ["Timing", "pin_to_one_core", "take_turns"]


SETTLING: Final = 0.25
"""Seconds after which all cores run as fast as they do when there is more to do."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The rounds of one contender.

    Attributes
    ----------
    rows : int
        Number of matches it found, the same in every round.
    wall, cpu : tuple of float
        Seconds on the clock, and seconds the process ran.
    """

    rows: int
    wall: tuple[float, ...]
    cpu: tuple[float, ...]

    def rounds(self, clock: Literal["wall", "cpu"] = "wall") -> tuple[float, ...]:
        """Return the seconds of each round."""
        return self.wall if clock == "wall" else self.cpu

    def seconds(self, clock: Literal["wall", "cpu"] = "wall") -> float:
        """Return the median of the rounds."""
        return median(self.rounds(clock))


def take_turns(
    contenders: Mapping[str, Callable[[], Sized | int]], rounds: int, *, settled: bool = False
) -> dict[str, Timing]:
    """Time contenders in turns, so that what else the machine does hits all of them alike.

    Parameters
    ----------
    contenders : mapping of str to callable
        Each returns its matches or their number.
    rounds : int
        Rounds after one round of warm-up.
    settled : bool
        Whether each run that is timed follows others of the same contender that are not, for `SETTLING`
        seconds. After cores had nothing to do, a run of two threads takes up to half as long again, the next
        one a fifth longer, and the third about as long as all that follow.

    Returns
    -------
    dict of str to Timing

    Raises
    ------
    RuntimeError
        If a contender finds another number of matches in another round.
    """
    wall: dict[str, list[float]] = {name: [] for name in contenders}
    cpu: dict[str, list[float]] = {name: [] for name in contenders}
    rows: dict[str, int] = {}
    for turn in range(rounds + 1):
        for name, contender in contenders.items():
            gc.collect()
            began = time.perf_counter()
            while settled and time.perf_counter() - began < SETTLING:
                contender()
            started, ran = time.perf_counter(), time.process_time()
            result = contender()
            ran, elapsed = time.process_time() - ran, time.perf_counter() - started
            # Giving the memory of an answer back is not part of finding it.
            count = result if isinstance(result, int) else len(result)
            del result
            if rows.setdefault(name, count) != count:
                raise RuntimeError(f"{name} found {rows[name]:,} matches, then {count:,}")
            if turn:
                wall[name].append(elapsed)
                cpu[name].append(ran)
    return {name: Timing(rows[name], tuple(wall[name]), tuple(cpu[name])) for name in contenders}


def pin_to_one_core(core: int | None) -> None:
    """Keep this process, and Arrow's thread pools, to one core."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
