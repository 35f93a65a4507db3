"""The time of a match by what its confidence depends on: a grid of patterns, in one checkout or in two."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.figures import Options, Results, at_least
from benchmarks.isolated import ONE_THREAD
from benchmarks.timing import pin_to_one_core
from benchmarks.weighed_cells import GRID, KINDS, Cell

__all__ = ["measure"]

_HERE: Final = Path(__file__).resolve().parent
_FIRST_EVENTS: Final = 50
_MOST_EVENTS: Final = 20_000
_LONG_ENOUGH: Final = 0.05
"""Seconds of one call from which on its time is taken."""
_BESIDE: Final = at_least(0.9)
"""The time in the other checkout over the time in this one."""


class _Checkout:
    """A process that times cells with the code of one checkout."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def time(self, cell: Cell, events: int) -> dict[str, Any]:
        """Return the matches and seconds of one call, or its error.

        Raises
        ------
        RuntimeError
            If the process has ended.
        """
        request, answer = self._process.stdin, self._process.stdout
        assert request is not None
        assert answer is not None
        request.write(json.dumps({"cell": cell._asdict(), "events": events}) + "\n")
        request.flush()
        line = answer.readline()
        if not line:
            raise RuntimeError(f"the process that measures {cell} has ended")
        reply: dict[str, Any] = json.loads(line)
        return reply


@contextmanager
def _checkout(root: Path) -> Iterator[_Checkout]:
    """Start a process whose imports come from a checkout, and end it."""
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(root)}
    command = [sys.executable, str(_HERE / "weighed_cells.py")]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    )
    try:
        yield _Checkout(process)
    finally:
        process.kill()
        process.communicate()


def _enough(checkout: _Checkout, cell: Cell) -> tuple[int, dict[str, Any]]:
    """Return how many events make a call long enough, and the answer for them."""
    events = _FIRST_EVENTS
    # The first call compiles.
    reply = checkout.time(cell, events)
    while True:
        reply = checkout.time(cell, events)
        if "error" in reply or reply["seconds"] >= _LONG_ENOUGH or events >= _MOST_EVENTS:
            return events, reply
        events *= 2


def measure(options: Options, beside: str | None = None, kinds: Sequence[str] = ()) -> Results:
    """Time a match in each cell, in turns with another checkout if one is given.

    Parameters
    ----------
    options : Options
        Times are of the processor, whatever the clock.
    beside : str, optional
        The root of another checkout, whose compiled kernels are in the same cache.
    kinds : sequence of str
        Names of :data:`~benchmarks.weighed_cells.KINDS`; none: all.
    """
    pin_to_one_core(options.core)
    results = Results()
    with ExitStack() as stack:
        roots = {"": _HERE.parent} | ({} if beside is None else {"beside": Path(beside).resolve()})
        checkouts = {name: stack.enter_context(_checkout(root)) for name, root in roots.items()}
        for cell in GRID:
            if cell.kind in (kinds or KINDS):
                _add(cell, checkouts, options.rounds, results)
    return results


def _add(cell: Cell, checkouts: dict[str, _Checkout], rounds: int, results: Results) -> None:
    """Add one cell: us a match, and how much less that is than in the other checkout."""
    name = f"{cell.kind}, l={cell.length}, {cell.ticks:,} ticks, density {cell.density}"
    events, first = _enough(checkouts[""], cell)
    if "error" in first:
        results.failures.append(f"{name}: {first['error']}")
        return
    taken: dict[str, list[float]] = {key: [] for key in checkouts}
    for turn in range(rounds + 1):
        for key, checkout in checkouts.items():
            reply = checkout.time(cell, events)
            if reply.get("matches") != first["matches"]:
                results.failures.append(f"{name}, {key or 'here'}: {first} became {reply}")
                return
            if turn:
                taken[key].append(reply["seconds"])
    each = 1e6 * median(taken[""]) / max(first["matches"], 1)
    note = f"{first['matches']:,} matches of {events:,} events"
    results.add(name, each, "us", None, tuple(taken[""]), note)
    if "beside" in taken:
        ratio = median(taken["beside"]) / median(taken[""])
        results.add(f"{name}, beside", ratio, "x", _BESIDE, tuple(taken["beside"]), note)
