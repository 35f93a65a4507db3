"""Queries that would take hours, or more memory than there is, with limits and where there is no more.

``python -m tests.fuzz.bombs [NAME...]`` prints a line of JSON for each call, see :class:`Ending`.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import uncertain_cep as uc
from benchmarks.resident import address_space, forget_peak, peak, resident
from confidence.kernel import always_compiled
from uncertain_cep.errors import InternalError, UncertainCepError
from uncertain_cep.running import resource_limits

__all__ = ["BOMBS", "Bomb", "Ending", "exploded", "main"]

ROOM: Final = 16 * 10**9
"""Bytes of address space, so that a limit that is not held does not take the machine with it."""

SECONDS: Final = 1.0
"""Of processor time, of the first call."""

SECONDS_FOR_MEMORY: Final = 2.0

MEBIBYTES: Final = 256
"""That the second call may hold more than the events."""

MUCH: Final = 4096
"""That the first one may hold more than the events."""

STARVED: Final = 64
"""Mebibytes of address space that there are for the third call."""

FEW: Final = 24
"""Events over which everything is compiled first."""

MEBIBYTE: Final = 2**20

Events = Callable[[int], pa.Table]


@dataclass(frozen=True)
class Bomb:
    """A query, how many events of which kind, and options.

    Attributes
    ----------
    query : str or callable
        Its text, or what makes it.
    events : callable
        From a number of events to them.
    count : int
    few : int
        Events over which the same query ends soon.
    options : dict
    call : {"match", "iterate", "explain", "push"}
    """

    query: str | Callable[[], str]
    events: Events
    count: int
    options: dict[str, Any] = field(default_factory=dict)
    few: int = FEW
    call: str = "match"


@dataclass(frozen=True)
class Ending:
    """How a call ended.

    Attributes
    ----------
    name : str
        Of the bomb.
    end : str
        The kind of error, or "answer".
    said : str
    late : float
        Seconds of processor time that it took beyond its limit.
    beyond : int
        Bytes that the process held beyond its limit.
    """

    name: str
    end: str
    said: str
    late: float
    beyond: int


def trace(
    count: int, *, types: str = "ABCD", length: int = 20, gap: float = 2.0, keys: int = 1, seed: int = 1
) -> pa.Table:
    """Return events whose intervals have up to ``length`` ticks, ``gap`` ticks from one to the next."""
    rng = np.random.default_rng(seed)
    lower = (gap * np.arange(count)).astype(np.int64)
    return pa.table(
        {
            "type": pa.array(np.array(list(types))[rng.integers(0, len(types), count)]),
            "id": np.arange(count),
            "lower": lower,
            "upper": lower + rng.integers(0, length, count),
            "x": rng.integers(0, 100, count),
            "k": np.arange(count) // 4 % keys,
        }
    )


def of(**options: Any) -> Events:
    """Return a function that makes events of a kind."""
    return lambda count: trace(count, **options)


def in_turn(types: str, length: int = 5) -> Events:
    """Return a function that makes events of some types one after the other."""

    def made(count: int) -> pa.Table:
        kinds = np.array(list(types))[np.arange(count) * len(types) // count]
        lower = 3 * np.arange(count)
        return pa.table(
            {"type": kinds, "id": np.arange(count), "lower": lower, "upper": lower + length, "x": lower % 7}
        )

    return made


def kinds(count: int) -> pa.Table:
    """Return events each of a type of its own, and one B."""
    lower = np.arange(count)
    names = pc.binary_join_element_wise("T", pa.array(lower).cast(pa.string()), "")
    names = pa.concat_arrays([names[:-1], pa.array(["B"])])
    return pa.table({"type": names, "id": lower, "lower": lower, "upper": lower + 3})


def with_pmfs(count: int) -> pa.Table:
    """Return events with 10,000,000 probabilities together."""
    ticks = 10_000_000 // count if count > FEW else 20
    pmf = pa.FixedSizeListArray.from_arrays(pa.array(np.full(count * ticks, 1.0 / ticks)), ticks)
    lower = np.arange(count)
    return pa.table(
        {
            "type": np.array(list("ABC"))[lower % 3],
            "id": lower,
            "lower": lower,
            "upper": lower + ticks - 1,
            "pmf": pmf.cast(pa.list_(pa.float64())),
        }
    )


def far_apart(count: int) -> pa.Table:
    """Return events from one end of time to the other."""
    lower = np.linspace(-(2.0**60), 2.0**60, count).astype(np.int64)
    types = np.array(list("ABC"))[np.arange(count) % 3]
    return pa.table({"type": types, "id": np.arange(count), "lower": lower, "upper": lower + 2**40})


def with_texts(count: int) -> pa.Table:
    """Return events with long texts."""
    text = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(count) % 2, pa.int32()), pa.array(["x" * 2**20, "y" * 2**20])
    )
    return trace(count).append_column("s", text)


FIVE: Final = "a.x + b.x + c.x + d.x + e.x < -1"
ANY_SET: Final = ", ".join(f"ANY v{number}" for number in range(10))


def sets_of_ten(mark: str) -> str:
    parts = ", ".join(f"{kind}{mark} v{kind}{'[]' if mark else ''}" for kind in "ABCDEFGHIJ")
    return f"PATTERN AND({parts}) WITHIN 1000000"


def nested(depth: int) -> str:
    return f"PATTERN SEQ(A a, B b) WHERE {'(' * depth}a.x < b.x{')' * depth} WITHIN 50"


def negated(depth: int) -> str:
    return f"PATTERN SEQ(A a, B b) WHERE {'NOT ' * depth} a.x < b.x WITHIN 50"


def terms(count: int, by: str) -> str:
    return f"PATTERN SEQ(A a, B b) WHERE {by.join(f'a.x + {n} < b.x' for n in range(count))} WITHIN 50"


def summed(count: int) -> str:
    return f"PATTERN SEQ(A a, B b) WHERE a.x {'+ b.x ' * count} < 0 WITHIN 50"


def returned(count: int) -> str:
    return f"PATTERN SEQ(A a, B b) WITHIN 5000 RETURN {', '.join(f'a.x + {n} AS r{n}' for n in range(count))}"


def branches(count: int) -> str:
    parts = ", ".join(f"SEQ(A a{n}, B b{n}, C c{n})" for n in range(count))
    return f"PATTERN OR({parts}) WITHIN 5000"


def long_sequence(count: int) -> str:
    return f"PATTERN SEQ({', '.join(f'ANY v{n}' for n in range(count))}) WITHIN 1000000"


DENSE: Final = "PATTERN SEQ(A a, B b, C c) WITHIN 1000000"

BOMBS: Final[dict[str, Bomb]] = {
    "dense": Bomb(DENSE, of(), 200_000),
    "dense, nothing found": Bomb(
        f"PATTERN SEQ(A a, B b, C c, D d, A e) WHERE {FIVE} WITHIN 1000000", of(), 200_000
    ),
    "dense, all held": Bomb(DENSE, of(), 200_000, {"max_matches": None}),
    "dense, iterated": Bomb(DENSE, of(), 200_000, call="iterate"),
    "dense, returned values": Bomb(
        f"{DENSE} RETURN a.x + b.x AS y, a.k", of(), 200_000, {"max_matches": None}
    ),
    "Kleene over 60 events": Bomb(
        "PATTERN SEQ(A a, B+ b[], C c) WITHIN 1000000", in_turn("A" + "B" * 60 + "C"), 62, few=9
    ),
    "Kleene, all held": Bomb(
        "PATTERN SEQ(A a, B+ b[], C c) WITHIN 1000000",
        in_turn("A" + "B" * 60 + "C"),
        62,
        {"max_matches": None},
        9,
    ),
    "Kleene, nothing found": Bomb(
        "PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].x > b[i-1].x - 100 AND a.x + c.x < -1 WITHIN 1000000",
        of(types="ABBBBC"),
        200_000,
        few=9,
    ),
    "three Kleenes": Bomb("PATTERN SEQ(A+ a[], B+ b[], A+ c[]) WITHIN 1000000", of(types="AB"), 2000, few=9),
    "Kleene, compressed": Bomb(
        "PATTERN SEQ(A a, B+ b[], C c) WITHIN 1000000", of(types="ABBBBC"), 200_000, {"kleene": "compressed"}
    ),
    "AND of ten": Bomb(sets_of_ten(""), of(types="ABCDEFGHIJ"), 20_000),
    "AND of ten, all held": Bomb(sets_of_ten(""), of(types="ABCDEFGHIJ"), 20_000, {"max_matches": None}),
    "AND of ten sets": Bomb(sets_of_ten("+"), of(types="ABCDEFGHIJ"), 20_000, few=10),
    "AND of ten of any type": Bomb(f"PATTERN AND({ANY_SET}) WITHIN 1000000", of(), 2000, few=10),
    "sequence of sets": Bomb(
        "PATTERN SEQ(AND(A a, B b, C c, D d), AND(A e, B f, C g, D h)) WITHIN 1000000",
        of(length=1000),
        20_000,
    ),
    "set, long intervals": Bomb(
        "PATTERN SEQ(AND(A a, B b), !C n, AND(C c, D d)) WITHIN 1000000", of(length=100_000), 20_000
    ),
    "negation": Bomb("PATTERN SEQ(A a, !C n, B b) WITHIN 1000000", of(length=500), 200_000),
    "coupled gaps": Bomb("PATTERN SEQ(A a, !C n, B b, !C m, D d) WITHIN 1000", of(length=120, gap=3), 20_000),
    "coupled gaps, long intervals": Bomb(
        "PATTERN SEQ(A a, !C n, B b, !C m, D d) WITHIN 1000000", of(length=20_000, gap=3), 20_000
    ),
    "coupled gaps, estimated": Bomb(
        "PATTERN SEQ(A a, !C n, B b, !C m, D d) WITHIN 100",
        of(length=50, gap=3),
        200_000,
        {"approximate": 1e-9},
    ),
    "skip till next": Bomb(
        "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c) WITHIN 1000000",
        of(length=1000),
        200_000,
    ),
    "skip till next, nothing found": Bomb(
        "PATTERN SEQ(A a, B b, C c, D d, A e) WHERE skip_till_next_match(a, b, c, d, e) { "
        f"{FIVE} }} WITHIN 1000000",
        of(length=1000),
        200_000,
    ),
    "strict contiguity": Bomb(
        "PATTERN SEQ(ANY a, ANY b, ANY c, ANY d) WHERE strict_contiguity(a, b, c, d) WITHIN 1000000",
        of(length=1000),
        200_000,
    ),
    "partition contiguity": Bomb(
        "PATTERN SEQ(A a, B b, C c) WHERE partition_contiguity(a, b, c) { [k] } WITHIN 1000000",
        of(length=1000, keys=50_000),
        200_000,
    ),
    "pmfs of 10,000,000 ticks": Bomb("PATTERN SEQ(A a, B b, C c) WITHIN 100000000", with_pmfs, 100),
    "one pmf of 10,000,000 ticks": Bomb("PATTERN SEQ(A a, B b, C c) WITHIN 100000000", with_pmfs, 3, few=3),
    "a window of 2^60 ticks": Bomb(f"PATTERN SEQ(A a, B b, C c) WITHIN {2**60}", far_apart, 200_000),
    "a window of 2^60, counted": Bomb(
        f"PATTERN SEQ(A a, B b, C c) WITHIN {2**60} RETURN EXPECTED COUNT EVERY 1", far_apart, 200_000
    ),
    "a million keys": Bomb(
        "PATTERN SEQ(A a, B b, C c) WHERE [k] WITHIN 1000000", of(keys=1_000_000), 4_000_000
    ),
    "a million keys, counted": Bomb(
        "PATTERN SEQ(A a, B b, C c) WHERE [k] WITHIN 1000000 RETURN EXPECTED COUNT BY k EVERY 1",
        of(keys=1_000_000),
        2_000_000,
    ),
    "10 million types": Bomb("PATTERN SEQ(ANY a, B b) WITHIN 10", kinds, 10_000_000),
    "a type that is not there, of 10 million": Bomb("PATTERN SEQ(Q a, B b) WITHIN 10", kinds, 10_000_000),
    "non-overlapping": Bomb(
        "PATTERN SEQ(A a, B b) WITHIN 1000000 OUTPUT NON OVERLAPPING",
        of(types="AB"),
        20_000,
        {"max_matches": None},
    ),
    "the best": Bomb(
        "PATTERN SEQ(A a, B b) WITHIN 1000000 ORDER BY CONFIDENCE DESC LIMIT 5", of(types="AB"), 40_000
    ),
    "the best of long ones": Bomb(f"{DENSE} ORDER BY CONFIDENCE DESC LIMIT 5", of(length=100_000), 200_000),
    "the best 10,000,000": Bomb(f"{DENSE} ORDER BY CONFIDENCE DESC LIMIT 10000000", of(), 200_000),
    "all in order": Bomb(f"{DENSE} ORDER BY CONFIDENCE DESC", of(), 200_000, {"max_matches": None}),
    "limited to many": Bomb(f"{DENSE} LIMIT 100000000", of(), 200_000),
    "hardly any confident": Bomb(f"{DENSE} HAVING CONFIDENCE >= 0.999999999", of(length=10**6), 200_000),
    "counted": Bomb(f"{DENSE} RETURN EXPECTED COUNT", of(length=100_000), 200_000),
    "counted by tick": Bomb(f"{DENSE} RETURN EXPECTED COUNT EVERY 1", of(length=1000, gap=50), 200_000),
    "counted with shared events": Bomb(
        "PATTERN SEQ(ANY a, ANY b, ANY c, ANY d, ANY e) WITHIN 1000 RETURN EXPECTED COUNT",
        of(length=100),
        200_000,
    ),
    "counted with few shared events": Bomb(
        "PATTERN SEQ(ANY a, ANY b, ANY c) WITHIN 20000 RETURN EXPECTED COUNT", of(length=200_000), 40
    ),
    "counted with conditions": Bomb(
        "PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 1000000 RETURN EXPECTED COUNT",
        of(keys=100),
        200_000,
    ),
    "a given tree": Bomb(DENSE, of(), 200_000, {"planner": "(a (b c))", "max_matches": None}),
    "a given tree, nothing found": Bomb(
        f"PATTERN SEQ(A a, B b, C c, D d, A e) WHERE {FIVE} WITHIN 1000000",
        of(),
        200_000,
        {"planner": "((a b) (c (d e)))"},
    ),
    "query order": Bomb(DENSE, of(), 200_000, {"evaluation": "query_order", "max_matches": None}),
    "any state": Bomb(DENSE, of(), 200_000, {"evaluation": "any_state", "max_matches": None}),
    "selectivity": Bomb(DENSE, of(), 200_000, {"evaluation": "selectivity", "max_matches": None}),
    "points": Bomb(DENSE, of(), 200_000, {"evaluation": "point", "max_matches": None}),
    "points of long intervals": Bomb(
        DENSE, of(length=900_000), 2_000, {"evaluation": "point", "max_matches": None}
    ),
    "OR of many": Bomb(lambda: branches(60), of(), 20_000),
    "a long sequence": Bomb(lambda: long_sequence(60), of(), 20_000),
    "a longer sequence": Bomb(lambda: long_sequence(199), of(), 20_000),
    "a long list to return": Bomb(lambda: returned(2000), of(), 200_000, {"max_matches": None}),
    "a query that is too long": Bomb(lambda: nested(100_000), of(), 1000),
    "parentheses": Bomb(lambda: nested(90_000), of(), 1000),
    "negated again and again": Bomb(lambda: negated(45_000), of(), 1000),
    "thousands of terms": Bomb(lambda: terms(8_000, " AND "), of(), 1000),
    "thousands of alternatives": Bomb(lambda: terms(8_000, " OR "), of(), 1000),
    "thousands of summands": Bomb(lambda: summed(30_000), of(), 1000),
    "a long text": Bomb(lambda: f"PATTERN SEQ(A a, B b) WHERE a.x = '{'x' * 190_000}' WITHIN 5", of(), 1000),
    "long values": Bomb(
        "PATTERN SEQ(A a, B b) WHERE a.s < b.s WITHIN 1000000 RETURN a.s, b.s",
        with_texts,
        2000,
        {"max_matches": None},
    ),
    "explained": Bomb(DENSE, of(), 200_000, {"analyze": True}, call="explain"),
    "a stream": Bomb(DENSE, of(), 200_000, call="push"),
    "a stream, any state": Bomb(DENSE, of(), 200_000, {"evaluation": "any_state"}, call="push"),
    "a stream, negation": Bomb(
        "PATTERN SEQ(A a, !C n, B b) WITHIN 1000000", of(length=500), 200_000, call="push"
    ),
}


def call_of(bomb: Bomb) -> Callable[..., int]:
    """Return the call; it takes events and limits, and returns the number of rows."""
    query = bomb.query if isinstance(bomb.query, str) else bomb.query()

    def call(events: pa.Table, **limits: Any) -> int:
        options = {**bomb.options, **limits}
        match bomb.call:
            case "match":
                return int(uc.match(events, query, **options).num_rows)
            case "iterate":
                return sum(batch.num_rows for batch in uc.iter_matches(events, query, **options))
            case "explain":
                return len(uc.explain(query, events, **options))
            case _:
                matcher = uc.IncrementalMatcher(query, events.schema, **options)
                return int(matcher.push(events).num_rows) + int(matcher.close().num_rows)

    return call


def ended(name: str, call: Callable[..., int], events: pa.Table, mebibytes: int, seconds: float) -> Ending:
    """Make a call that may hold so much more than is held now, for so long, and return how it ended."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    forget_peak()
    limit = resident() + mebibytes * MEBIBYTE
    began = time.process_time()
    try:
        rows = call(events, timeout=seconds, memory_limit=limit)
        end, said = "answer", f"{rows:,} rows"
    except InternalError:
        raise
    except UncertainCepError as error:
        end, said = type(error).__name__, str(error)
    return Ending(name, end, said[:200], time.process_time() - began - seconds, peak() - limit)


@contextmanager
def starving() -> Iterator[None]:
    """Have the system give this process hardly any more memory while the context lasts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (min(address_space() + STARVED * MEBIBYTE, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def exploded(name: str, bomb: Bomb) -> Iterator[Ending]:
    """Yield how a bomb ends: with little time, with little memory, and where the system gives no more."""
    call = call_of(bomb)
    try:
        with always_compiled():
            call(bomb.events(bomb.few), timeout=5.0)
    except UncertainCepError as error:
        print(f"{name}: {type(error).__name__} with few events: {str(error)[:200]}", file=sys.stderr)
    events = bomb.events(bomb.count)
    yield ended(name, call, events, MUCH, SECONDS)
    yield ended(name, call, events, MEBIBYTES, SECONDS_FOR_MEMORY)
    with starving():
        starved = ended(name, call, events, MUCH, SECONDS)
    yield starved


def main(names: list[str], bombs: Mapping[str, Bomb]) -> None:
    """Let bombs explode one after the other, on a clock that stands still while other processes run."""
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    resource_limits.time = SimpleNamespace(monotonic=time.process_time)  # type: ignore[attr-defined, assignment]
    for name in names or bombs:
        for ending in exploded(name, bombs[name]):
            print(json.dumps(asdict(ending)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:], BOMBS)
