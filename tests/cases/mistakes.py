"""Bad queries, options, columns and events, and the words in which every engine refuses each."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

import uncertain_cep as uc

__all__ = ["COLUMNS", "EVENTS", "FAULTS", "PLAIN", "QUERIES", "events_of", "lines_of", "without_rows"]

PLAIN: Final = "PATTERN SEQ(A a, B b) WITHIN 9"

_COLUMNS: Final[dict[str, Any]] = {
    "type": ["A", "B", "A", "B"],
    "id": [1, 2, 3, 4],
    "lower": [0, 2, 5, 8],
    "upper": [3, 5, 6, 12],
    "k": ["x", "x", "y", None],
    "v": [1.0, 2.5, None, 4.0],
    "code": ["1", "2", "n/a", "3"],
    "codes": ["1", "-", "n/a", "3"],
    "flag": [True, False, True, None],
    "when": pa.array([0, 1, 2, 3], pa.timestamp("us", "UTC")),
    "l": pa.array([[1], [2], [], None], pa.list_(pa.int64())),
}

_CLOCKS: Final[dict[str, Any]] = {
    "source": ["s", "s", None, "u"],
    "offset_lower": [-1, -1, None, -2],
    "offset_upper": [1, 1, None, 2],
}

_ORDERED: Final = {**_CLOCKS, "ordered": [True] * 4}


def events_of(**columns: Any) -> pa.Table:
    """Return four events, with these columns instead of theirs; None leaves one out."""
    changed = {**_COLUMNS, **columns}
    return pa.table({name: values for name, values in changed.items() if values is not None})


EVENTS: Final = events_of()

_TYPES: Final = "type, id, lower, upper, k, v, code, codes, flag, when, l"
_LIST: Final = "attribute l is a list (list of int64): ask for its elements, x IN a.l or SHARES(a.l, b.l)"
_UNIT: Final = (
    "the times of this trace are plain ticks of unknown length: give the tick, such as tick='1ms', or"
)

QUERIES: Final[list[tuple[str, dict[str, Any], list[str]]]] = [
    ("SEQ(A a, B b) WITHIN 9", {}, ["line 1, column 1: unexpected 'SEQ'"]),
    ("PATTERN SEQ(A a, B b WITHIN 9", {}, ["line 1, column 22: unexpected 'WITHIN'"]),
    (
        "PATTERN SEQ(A a, B b)",
        {},
        ["line 1, column 9: WITHIN is missing: say how long a match may last, such as WITHIN 15 seconds"],
    ),
    (
        "PATTERN SEQ(A a, B b) WITHIN 0",
        {},
        ["line 1, column 30: a window of 0 holds no event: WITHIN must be at least one tick"],
    ),
    (
        "PATTERN SEQ(A a, B b) WITHIN 9 s",
        {},
        [f"line 1, column 30: {_UNIT} write WITHIN in ticks, such as WITHIN 9"],
    ),
    (
        "PATTERN SEQ(A a, B b) WHERE a.nosuch > 1 AND b.v > 'x' WITHIN 9",
        {},
        [
            f"line 1, column 29: unknown attribute nosuch: the trace has {_TYPES}",
            "line 1, column 50: b.v is a number and 'x' a string: they cannot be compared",
        ],
    ),
    (
        "PATTERN SEQ(A a, B b) WHERE a.k = x WITHIN 9",
        {},
        [
            "line 1, column 35: x is no variable of the pattern: text stands in quotes, 'x'; an "
            "attribute needs a "
            "variable, such as a.x"
        ],
    ),
    (
        "PATTERN SEQ(A a, B b) WHERE a.k > 1 WITHIN 9",
        {},
        ["line 1, column 33: a.k is a string and 1 a whole number: they cannot be compared, write '1'"],
    ),
    ("PATTERN SEQ(A a, B b) WHERE [l] WITHIN 9", {}, [f"line 1, column 30: {_LIST}"]),
    ("PATTERN SEQ(A a, B b) WITHIN 9 RETURN a.l", {}, [f"line 1, column 39: {_LIST}"]),
    (
        "PATTERN SEQ(A a, B b) WHERE a.when > 'yesterday' WITHIN 9",
        {},
        [
            "line 1, column 38: 'yesterday' is no time: write ISO 8601, such as '2024-05-01T12:00:00Z' or "
            "'2024-05-01'"
        ],
    ),
    (
        "PATTERN SEQ(A a, B b) WHERE TIME(b) + TIME(a) <= 5 WITHIN 9",
        {},
        [
            "line 1, column 47: a sum of times has no meaning: compare one time, or a difference such as "
            "TIME(b) - "
            "TIME(a)"
        ],
    ),
    (
        "PATTERN AND(A a, B b) WHERE skip_till_next_match(a, b) WITHIN 9",
        {},
        ["line 1, column 9: AND(...) is defined for skip_till_any_match only, not for skip_till_next_match"],
    ),
    (
        "PATTERN SEQ(A a, B b) WITHIN 9 HAVING x > 3",
        {},
        [
            "line 1, column 39: x is no column of the result: it has a, b, range_lower, range_upper, "
            "confidence, or "
            "add it to RETURN"
        ],
    ),
    (
        "PATTERN SEQ(A a, B b) WITHIN 9 RETURN a.v AS x, b.v AS x",
        {},
        ["line 1, column 49: two output columns are named x: name one with AS"],
    ),
    (
        "PATTERN SEQ(A a, B b) WITHIN 9 RETURN EXPECTED COUNT BY k",
        {},
        [
            "line 1, column 39: BY k: the events of a match need not agree on k, so it has no one group; "
            "equate it "
            "across all components, by [k] in WHERE"
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WITHIN 9 RETURN PROBABILITY BY a",
        {},
        [
            "line 1, column 57: BY a: a is several events, and a match has one group: name a variable of "
            "one event"
        ],
    ),
    (
        "PATTERN SEQ(A a, B b) WHERE a.v > $x WITHIN 9",
        {"parameters": {}},
        ['line 1, column 35: no value for $x: give parameters={"x": ...}, or --param x=..., a value'],
    ),
    (
        "PATTERN SEQ(A a, B b) WHERE a.v > $x WITHIN 9",
        {"parameters": {"x": "q"}},
        ["line 1, column 33: a.v is a number and 'q' a string: they cannot be compared"],
    ),
    # A few values make a column of numbers one of text.
    (
        "PATTERN SEQ(A a, B b) WHERE a.code > 1 WITHIN 9",
        {},
        [
            "line 1, column 36: code is text, as one row holds no number (row 3: 'n/a'), while 3 do: "
            "mend it, or "
            "leave it empty"
        ],
    ),
    (
        "PATTERN SEQ(A+ a[], B b) WHERE sum(a[].codes) > 1 WITHIN 9",
        {},
        [
            "line 1, column 32: codes is text, as 2 rows hold no number (the first: row 2: '-'), while 2 "
            "do: mend "
            "them, or leave them empty"
        ],
    ),
    # Options.
    (
        PLAIN,
        {"tick": "3 parsecs"},
        [
            "tick '3 parsecs' is not a length of time: write a number and one of ns, us, ms, s, min, h, "
            "d, w, such "
            "as 500ms, 15s or 1min 30s, or give a timedelta"
        ],
    ),
    (
        PLAIN,
        {"names": {"lower": "begin"}},
        [
            f"column 'begin': there is no such column; the trace has {_TYPES}. Name the interval columns "
            f"lower and "
            "upper, map them, or make them with to_intervals or a schema file"
        ],
    ),
    (
        PLAIN,
        {"evaluation": "fast"},
        ["evaluation='fast' is unknown: use one of auto, query_order, any_state, selectivity, point"],
    ),
    (
        PLAIN,
        {"known_until": "soon"},
        [
            "known_until='soon': it must be a time, such as '2026-01-05T08:00:00Z', or, where times are "
            "ticks, a "
            "whole number"
        ],
    ),
    (
        PLAIN,
        {"known_until": datetime(2026, 1, 1)},
        [
            "known_until='2026-01-01T00:00:00': the times of these events are whole numbers: give a "
            "number of ticks"
        ],
    ),
    (PLAIN, {"approximate": 2.0}, ["approximate: the standard error is 2.0: it must be between 0 and 1"]),
    (PLAIN, {"kleene": "some"}, ["kleene='some' is unknown: use matches or compressed"]),
    (
        PLAIN,
        {"latency_weight": -1.0},
        ["latency_weight=-1.0: it must be a finite number, at least 0, such as 2.5"],
    ),
]
"""Queries on `EVENTS`, options, and the lines of the error."""

_FLOATS: Final = (
    "Where a value is missing, pandas makes floats of whole numbers: "
    'frame[{}].astype("Int64") keeps them whole'
)

COLUMNS: Final[list[tuple[dict[str, Any], list[str]]]] = [
    (
        {"lower": None, "upper": None, "l": None, "when": None},
        [
            "column 'lower': there is no such column",
            "column 'upper': there is no such column; the trace has type, id, k, v, code, codes, flag. "
            "Name the "
            "interval columns lower and upper, map them, or make them with to_intervals or a schema file",
        ],
    ),
    (
        {"lower": ["0", "2", "5", "8"]},
        ["column 'upper': its type is int64, but column 'lower' is string: give both one type"],
    ),
    (
        {"lower": [0.0, 2.0, 5.0, 8.0]},
        [
            "column 'upper': its type is int64, but column 'lower' is double: give both one type. "
            + _FLOATS.format("'lower'")
        ],
    ),
    ({"type": [1, 2, 3, 4]}, ["column 'type': its type is int64: the type of an event is text"]),
    (
        {"id": [1.0, 2.0, 3.0, 4.0]},
        ["column 'id': its type is double: an id is a whole number or text. " + _FLOATS.format("'id'")],
    ),
    (
        {"id": [[1], [2], [3], [4]]},
        ["column 'id': its type is list of int64: an id is a whole number or text"],
    ),
    ({"pmf": ["a"] * 4}, ["column 'pmf': its type is string: a pmf is a list of numbers, one for each tick"]),
    (
        {"probability": ["a"] * 4},
        [
            "column 'probability': its type is string: the probability that an event happened is a "
            "number from 0 to "
            '1. Rename the column, or map names={"probability": "..."}, to use an attribute of that name'
        ],
    ),
    (
        {**_CLOCKS, "offset_lower": ["a"] * 4},
        ["column 'offset_lower': its type is string: an offset is a duration, or int64 ticks"],
    ),
    (
        {**_CLOCKS, "sequence": ["a"] * 4},
        [
            "column 'sequence': its type is string: a sequence is a whole number. Rename the column, or map "
            'names={"sequence": "..."}, to use an attribute of that name'
        ],
    ),
    (
        {**_ORDERED, "ordered": ["a"] * 4, "sequence": [1, 2, 3, 4]},
        ["column 'ordered': its type is string: it is true or false"],
    ),
    (
        {
            "tick": ["1 foo"] * 4,
            "lower": pa.array([0, 2, 5, 8], pa.timestamp("us", "UTC")),
            "upper": pa.array([3, 5, 6, 12], pa.timestamp("us", "UTC")),
        },
        [
            "column 'tick', value 1 foo: it says how long a tick is, such as 100ms, and this is no such "
            "length: an "
            'attribute of that name has to be renamed, or the column mapped, names={"tick": "..."}'
        ],
    ),
]
"""Columns beside, or instead of, those of `EVENTS`, and the lines of the error."""

_FOR_ALL: Final = "an offset counts for all events of a source, so an epoch of a clock is a source of its own"
_QUANTITY: Final = (
    "the probability that an event happened is a number from 0 to 1. Rename the column, or map "
    'names={"probability": "..."}, to use an attribute of that name'
)

FAULTS: Final[list[tuple[dict[str, Any], list[str]]]] = [
    (
        {
            "type": ["A", "B", None, "B"],
            "id": [1, 2, 3, None],
            "lower": [None, 2, 5, 8],
            "upper": [3, 1, 2**62, 12],
        },
        [
            "row 3, column 'type', value null: an event needs a type: fill it in, or leave the row out",
            "row 4, column 'id', value null: an event needs an id: fill it in, or leave the row out",
            "row 1, column 'lower', value null: an event needs a time: fill it in, or leave the row out",
            "row 2, column 'lower', value 2: the interval ends before it begins: upper is 1",
            "row 3, column 'upper', value 4611686018427387904: beyond 2,305,843,009,213,693,952 ticks, "
            "the most that "
            "can be computed with: is its unit right?",
        ],
    ),
    (
        {
            "upper": [1, 3, 6, 9],
            "pmf": [[1.0], [1.5, -0.5], [0.5, 0.6], [float("nan"), 1.0]],
            "probability": [1.5, -0.5, float("nan"), 1],
        },
        [
            f"row 1, column 'probability', value 1.5: {_QUANTITY}",
            f"row 2, column 'probability', value -0.5: {_QUANTITY}",
            f"row 3, column 'probability', value nan: {_QUANTITY}",
            "row 1, column 'pmf', value [1.0]: the pmf has 1 probabilities for an interval of 2 ticks: "
            "give one for "
            "each tick",
            "row 2, column 'pmf', value [1.5, -0.5]: a probability must be a number of at least 0: "
            "correct the pmf",
            "row 4, column 'pmf', value [nan, 1.0]: a probability must be a number of at least 0: "
            "correct the pmf",
            "row 3, column 'pmf', value [0.5, 0.6]: the pmf sums to 1.1 instead of 1: scale it",
        ],
    ),
    (
        {**_CLOCKS, "offset_lower": [-1, None, None, -2], "offset_upper": [1, None, None, 2]},
        [
            "row 2, column 'offset_lower', value 's': the event names a clock, and this bound of its "
            "offset is missing",
            "row 2, column 'offset_upper', value 's': the event names a clock, and this bound of its "
            "offset is missing",
        ],
    ),
    (
        {**_CLOCKS, "offset_lower": [-1, -1, None, 3], "upper": [1, 5, 6, 12]},
        [
            "row 4, column 'offset_lower': the bounds of the offset are in the wrong order",
            "row 1, column 'lower': the interval is shorter than what the offset of the clock allows: no "
            "time by the "
            "clock is left",
        ],
    ),
    (
        {**_CLOCKS, "offset_lower": [-1, 0, None, -2]},
        [f"row 2, column 'source', value 's': the clock has other bounds in row 1: {_FOR_ALL}"],
    ),
    (
        {**_CLOCKS, "offset_pmf": [[0.2, 0.3, 0.5], [0.5, 0.3, 0.2], None, None]},
        [f"row 2, column 'offset_pmf', value 's': the clock has another pmf in row 1: {_FOR_ALL}"],
    ),
    (
        {**_ORDERED, "ordered": [True, False, True, True], "sequence": [1, 2, None, 1]},
        [
            "row 1, column 'ordered', value 's': the source is ordered by some of its rows and not by "
            "others: it is "
            "for all events"
        ],
    ),
    (
        {**_ORDERED, "sequence": [7, 7, None, 1]},
        [
            "row 2, column 'sequence', value 7: another event of the ordered source has this sequence: "
            "give each its "
            "own, or none"
        ],
    ),
    (
        {**_ORDERED, "sequence": [2, 1, None, 1], "lower": [0, 8, 5, 8], "upper": [3, 11, 6, 12]},
        [
            "row 2, column 'sequence': by the order of the source row 1 comes later, and its time leaves "
            "none for "
            "that"
        ],
    ),
    (
        {"id": [1, 2, 1, 4]},
        ["row 3, column 'id', value 1: an earlier event has this id: give each event one of its own"],
    ),
]
"""Columns instead of those of `EVENTS`, with events at fault, and the lines of the error of `PLAIN`."""


def lines_of(error: uc.UncertainCepError) -> list[str]:
    """Return the lines of an error but for those that show a query."""
    return [line for line in str(error).splitlines() if not line.startswith(" ")]


def without_rows(lines: list[str]) -> list[str]:
    """Return the lines of an engine that knows no rows."""
    texts = [re.sub(r"^row \d+, ", "", line) for line in lines]
    texts = [re.sub(r"in row \d+: an offset", "in other rows: an offset", text) for text in texts]
    # Instead of two rows it names the source.
    texts = [
        re.sub(
            r"'sequence': (by the order of the source) row \d+ ",
            r"'sequence', value 's': \1 another event ",
            text,
        )
        for text in texts
    ]
    return [re.sub(r"\((?:the first: )?row \d+: ('.*?')\)", r"(\1)", text) for text in texts]
