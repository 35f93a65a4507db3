"""Any program of public calls: each ends with a result or an error of ours, whatever was called before."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.fuzz.fuzzing import Fuzzer, allowed

PATTERNS: Final = (
    *(("SEQ(A a, B b)", "a, b"), ("SEQ(A a, !C n, B b)", "a, n, b"), ("SEQ(A a, B+ c[])", "a, c[]")),
    *(("AND(A a, B b)", "a, b"), ("SEQ(A a, OR(B b, C c))", "a, b, c"), ("SEQ(A a)", "a")),
    *(("SEQ(ANY a, ANY b, ANY c)", "a, b, c"), ("SEQ((A|B) a, C c)", "a, c")),
    ("SEQ(A a, B+ c[], C d)", "a, c[], d"),
)
STRATEGIES: Final = ("", "", "skip_till_any_match", "skip_till_next_match", "partition_contiguity")
ENDINGS: Final = (
    *(
        "",
        "",
        "HAVING CONFIDENCE >= 0.3",
        "ORDER BY CONFIDENCE DESC LIMIT 2",
        "LIMIT 0",
        "OUTPUT NON OVERLAPPING",
    ),
    *(
        "RETURN EXPECTED COUNT",
        "RETURN EXPECTED COUNT BY k",
        "RETURN EXPECTED COUNT EVERY 3",
        "RETURN a.x AS y",
    ),
)
OPTIONS: Final[dict[str, tuple[Any, ...]]] = {
    "evaluation": ("auto", "query_order", "any_state", "selectivity", "point", "sliced", None, 3),
    "planner": ("auto", "dp_bushy", "zstream", "(a b)", "(b a)", "((", "(a z)", ""),
    "confidence": (True, False, None),
    "approximate": (None, 0.1, 0.0, uc.Approximation(0.2, seed=1)),
    "max_matches": (None, 0, 3, -1, 2.5),
    "kleene": ("matches", "compressed", "x"),
    "latency_weight": (0.0, 2, math.inf, -1.0),
    "known_until": (0, "2026-01-01", -7, "soon"),
    "timeout": (None, 100, 1e-9, math.nan),
    "tick": (None, "1s", "0s", "1 fortnight"),
    "batch_rows": (1, 8192, 0),
    "largest_interval": (None, 3, 0, -1),
    "slice_length": (None, 1, 7, 0, "x"),
    "analyze": (True, False),
    "format": ("text", "json", "yaml"),
}
_TAKEN: Final = {
    "match": ("evaluation", "planner", "confidence", "approximate", "max_matches", "kleene", "latency_weight",
              "known_until", "timeout", "tick"),
    "iter_matches": ("evaluation", "planner", "confidence", "batch_rows", "kleene", "known_until", "timeout",
                     "tick"),
    "explain": ("evaluation", "planner", "latency_weight", "timeout", "tick", "analyze", "format"),
    "IncrementalMatcher": ("evaluation", "confidence", "approximate", "timeout", "tick", "largest_interval",
                           "slice_length"),
}  # fmt: skip


@dataclass(frozen=True)
class Program:
    """Events, a query, and calls with their options or arguments."""

    events: tuple[tuple[Any, ...], ...]
    query: str
    calls: tuple[tuple[str, Any], ...]

    def table(self, start: int = 0, stop: int | None = None) -> pa.Table:
        """Return some of the events."""
        names = ("type", "id", "lower", "upper", "x", "k")
        columns = list(zip(*self.events[start:stop], strict=True)) or [()] * len(names)
        types = (pa.string(), *(pa.int64(),) * 3, pa.float64(), pa.int64())
        return pa.table(
            [pa.array(list(values), kind) for values, kind in zip(columns, types, strict=True)], names
        )


def program(draw: random.Random) -> Program:
    """Return a program most of whose calls are sound."""
    events = []
    for number in range(draw.choice((0, 1, 3, 6, 9))):
        lower = draw.randrange(12)
        x, k = draw.choice((None, 0.0, 1.0, 2.5)), draw.randrange(2)
        events.append((draw.choice("ABC"), number, lower, lower + draw.choice((0, 0, 2, 5)), x, k))
    pattern, variables = draw.choice(PATTERNS)
    strategy = draw.choice(STRATEGIES)
    where = draw.choice(("", "", "[k]", "a.x <= 1", "a.x < b.x", "[x] AND a.k = 1"))
    if strategy:
        where = f"WHERE {strategy}({variables}) {{ {where} }}"
    elif where:
        where = f"WHERE {where}"
    window = draw.choice(("1", "4", "9", "5 seconds", str(2**60)))
    text = f"PATTERN {pattern} {where} WITHIN {window} {draw.choice(ENDINGS)}"
    return Program(tuple(events), text, tuple(_calls(draw)))


def _calls(draw: random.Random) -> Iterator[tuple[str, Any]]:
    for _ in range(draw.choice((1, 2, 4))):
        name = draw.choice(tuple(_TAKEN))
        taken = draw.sample(_TAKEN[name], k=draw.choice((0, 1, 1, 2)))
        yield name, {option: draw.choice(OPTIONS[option]) for option in taken}
        if name != "IncrementalMatcher":
            continue
        for _ in range(draw.choice((1, 3, 6))):
            step = draw.choice(("push", "push", "push", "heartbeat", "close", "take_late", "strange"))
            yield step, draw.randrange(10)


def performed(case: Program) -> None:
    """Make every call."""
    matcher: Any = None
    pushed = 0
    for name, argument in case.calls:
        if name == "IncrementalMatcher":
            schema, pushed = case.table().schema, 0
            matcher = _result(lambda: uc.IncrementalMatcher(case.query, schema, **argument))  # noqa: B023
        elif name in _TAKEN:
            order = (case.query, case.table()) if name == "explain" else (case.table(), case.query)
            _result(lambda: _used(getattr(uc, name)(*order, **argument)))  # noqa: B023
        elif matcher is not None:
            events: Any = case.table(pushed, pushed + argument)
            pushed += argument if name == "push" else 0
            strange = ({"type": "A"}, 3, None, events.drop(["id"]))[argument % 4]
            arguments = {"push": (events,), "strange": (strange,), "heartbeat": (argument,)}.get(name, ())
            method = "push" if name == "strange" else name
            _result(lambda: getattr(matcher, method)(*arguments))  # noqa: B023


def _result(call: Callable[[], object]) -> Any:
    """Return the result of a call; None if it ends with an error of ours."""
    results: list[object] = []
    allowed(lambda: results.append(call()))
    return results[0] if results else None


def _used(result: object) -> None:
    if isinstance(result, Iterator):
        for _ in result:
            pass


def smaller(case: Program) -> Iterator[Program]:
    """Yield the program with fewer calls, options or events."""
    for number in range(len(case.calls)):
        yield replace(case, calls=case.calls[:number] + case.calls[number + 1 :])
    for number, (name, argument) in enumerate(case.calls):
        for option in argument if isinstance(argument, dict) else ():
            less = {other: value for other, value in argument.items() if other != option}
            yield replace(case, calls=(*case.calls[:number], (name, less), *case.calls[number + 1 :]))
    for number in range(len(case.events)):
        yield replace(case, events=case.events[:number] + case.events[number + 1 :])


PROGRAMS = Fuzzer(program, performed, smaller)


def test_a_sample_of_programs() -> None:
    PROGRAMS.run(40, seed=1)


@pytest.mark.thorough
def test_programs() -> None:
    PROGRAMS.run(20_000)
