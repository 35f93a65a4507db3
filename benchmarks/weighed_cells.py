"""Run as a script, with a checkout first on the path of imports: time a match in cells of a grid of patterns.

A line of JSON on standard input names a cell and a number of events; the answer is a line of JSON with the
matches and the processor time of one call. Of the project only public names are used, so one script measures
any two checkouts in turns.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

__all__ = ["GRID", "KINDS", "Cell", "events_of", "query_of"]

Columns = dict[str, Any]
Extra = Callable[[np.random.Generator, "Cell", Columns], Columns]

_SECONDS: Final = 10.0
"""A call ends after this long."""


class Cell(NamedTuple):
    """One pattern on one stream."""

    kind: str
    """A key of `KINDS`."""
    length: int
    """Positive components."""
    ticks: int
    """Of an interval."""
    density: int
    """Events of each type in an interval's length."""


class Kind(NamedTuple):
    """A pattern of any length, and what its events have besides their intervals."""

    pattern: Callable[[int], str]
    extra: Extra | None = None


def _sequence(*behind_first: str, where: str = "") -> Callable[[int], str]:
    """Return a function that makes SEQ of so many components, with others behind the first."""

    def pattern(length: int) -> str:
        items = [f"T{j} v{j}" for j in range(length)]
        items[1:1] = behind_first
        return f"SEQ({', '.join(items)})" + (f" WHERE {where}" if where else "")

    return pattern


def _strategy(name: str) -> Callable[[int], str]:
    def pattern(length: int) -> str:
        return f"{_sequence()(length)} WHERE {name}({', '.join(f'v{j}' for j in range(length))})"

    return pattern


def _distances(length: int) -> str:
    conditions = (f"TIME(v{j}) - TIME(v{j - 1}) BETWEEN $least AND $most" for j in range(1, length))
    return f"{_sequence()(length)} WHERE {' AND '.join(conditions)}"


def _set(length: int) -> str:
    return f"AND({', '.join(f'T{j} v{j}' for j in range(length))})"


def _set_at_distance(length: int) -> str:
    return f"{_set(length)} WHERE TIME(v1) - TIME(v0) >= $least"


def _kleene(length: int) -> str:
    items = ["T0 v0", "T1+ v1[]", *(f"T{j} v{j}" for j in range(2, length))]
    names = ", ".join(("v0", "v1[]", *(f"v{j}" for j in range(2, length))))
    return f"SEQ({', '.join(items)}) WHERE skip_till_next_match({names})"


def _pmfs(rng: np.random.Generator, cell: Cell, columns: Columns) -> Columns:
    weights = rng.random((len(columns["id"]), cell.ticks))
    return {"pmf": pa.array(list(weights / weights.sum(axis=1)[:, None]))}


def _existence(rng: np.random.Generator, _: Cell, columns: Columns) -> Columns:
    return {"probability": rng.random(len(columns["id"]))}


def _clocks(jitter: bool) -> Extra:
    """Return a function that adds two clocks; with jitter half of an interval is an event's own."""

    def extra(rng: np.random.Generator, cell: Cell, columns: Columns) -> Columns:
        count = len(columns["id"])
        shared = max((cell.ticks - 1) // 2, 1) if jitter else cell.ticks - 1
        return {
            "source": pa.array(rng.choice(["h", "g"], count)),
            "offset_lower": np.zeros(count, np.int64),
            "offset_upper": np.full(count, shared),
        }

    return extra


def _records(_: np.random.Generator, __: Cell, columns: Columns) -> Columns:
    """Add one ordered source without offset."""
    count = len(columns["id"])
    zeros = np.zeros(count, np.int64)
    return {
        "source": pa.array(["log"] * count),
        "offset_lower": zeros,
        "offset_upper": zeros,
        "sequence": np.arange(count),
        "ordered": np.ones(count, np.bool_),
    }


_NEGATION: Final = _sequence("!N n")

KINDS: Final = {
    "chain": Kind(_sequence()),
    "chain, pmfs": Kind(_sequence(), _pmfs),
    "distances": Kind(_distances),
    "distances, pmfs": Kind(_distances, _pmfs),
    "negation": Kind(_NEGATION),
    "negation, pmfs": Kind(_NEGATION, _pmfs),
    "negation, existence": Kind(_NEGATION, _existence),
    "negation, TIME": Kind(_sequence("!N n", where="TIME(n) - TIME(v0) <= $most")),
    "two negations": Kind(_sequence("!N n", "!N m", where="TIME(n) - TIME(v0) <= $most")),
    "until": Kind(lambda length: f"{_sequence()(length)} UNTIL N n"),
    "skip till next": Kind(_strategy("skip_till_next_match")),
    "strict contiguity": Kind(_strategy("strict_contiguity")),
    "Kleene, next": Kind(_kleene),
    "set": Kind(_set),
    "set, TIME": Kind(_set_at_distance),
    "clocks": Kind(_sequence(), _clocks(jitter=False)),
    "clocks, jitter": Kind(_sequence(), _clocks(jitter=True)),
    "clocks, negation": Kind(_NEGATION, _clocks(jitter=False)),
    "ordered records": Kind(_sequence(), _records),
    "ordered records, negation": Kind(_NEGATION, _records),
}
"""What the confidence of a match depends on, by name."""

GRID: Final = tuple(
    Cell(kind, length, ticks, density)
    for kind in KINDS
    for length in (2, 3, 5)
    for ticks in (10, 100, 1000)
    for density in (1, 4)
)


def query_of(cell: Cell) -> str:
    """Return the query of a cell; its window holds about an event of each component."""
    window = cell.ticks + cell.length * cell.ticks // cell.density
    values = {"$least": max(cell.ticks // 5, 1), "$most": cell.ticks}
    text = f"PATTERN {KINDS[cell.kind].pattern(cell.length)} WITHIN {window}"
    for name, value in values.items():
        text = text.replace(name, str(value))
    return text


def events_of(cell: Cell, count: int) -> pa.Table:
    """Return so many events of a cell's stream."""
    rng = np.random.default_rng(50)
    types = [f"T{j}" for j in range(cell.length)] + ["N"]
    rate = cell.density * len(types) / cell.ticks
    lower = np.sort(rng.integers(0, max(int(count / rate), 1), count))
    columns: Columns = {
        "type": pa.array(rng.choice(types, count)),
        "id": np.arange(count),
        "lower": lower,
        "upper": lower + cell.ticks - 1,
    }
    extra = KINDS[cell.kind].extra
    return pa.table(columns if extra is None else columns | extra(rng, cell, columns))


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    """Time one call; an error of the project is an answer, too."""
    import uncertain_cep as uc

    cell = Cell(**request["cell"])
    events, query = events_of(cell, request["events"]), query_of(cell)
    started = time.process_time()
    try:
        matches = 0
        for batch in uc.iter_matches(events, query, threads=1, timeout=_SECONDS):
            matches += batch.num_rows
    except uc.UncertainCepError as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}
    return {"matches": matches, "seconds": time.process_time() - started}


def main() -> None:
    """Answer requests until there are no more."""
    from uncertain_cep import config

    # A checkout may be of before the numbers stood in modules of their own.
    numbers: Any = import_module("uncertain_cep.config.tuning") if hasattr(config, "__path__") else config
    # Compiled kernels, however few the events are.
    numbers.FEW_EVENTS = 0
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
