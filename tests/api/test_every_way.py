"""Times between events, existence, options, strategies of gaps by every way: the answer, or one error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import pyarrow as pa
import pytest

import uncertain_cep as uc
from uncertain_cep.plan import EVALUATIONS, PLANNERS

EVENTS: Final = pa.table(
    {
        "type": ["A", "B", "N", "B", "C", "A", "C"],
        "id": list(range(7)),
        "lower": [0, 2, 3, 4, 7, 8, 11],
        "upper": [2, 5, 5, 6, 9, 10, 13],
        "wait": [6] * 7,
        "k": [0] * 7,
        "items": [["x"], ["x", "y"], ["y"], [], ["y"], None, ["x", None]],
    }
)
DOUBTFUL: Final = EVENTS.append_column("probability", pa.array([1.0, 0.5, 0.5, 1.0, 0.75, 1.0, 0.25]))

_ENDS: Final = {
    "begin_lower": [0, 2, 3, None, None, 8, 11], "begin_upper": [0, 4, 4, None, None, 9, 12],
    "end_lower": [1, 3, 3, None, None, 9, 11], "end_upper": [2, 5, 5, None, None, 10, 13],
}  # fmt: skip
LASTING: Final = pa.table({**{name: EVENTS[name] for name in EVENTS.column_names}, **_ENDS})
"""Spans, and points."""

MANY: Final = ", ".join(f"D? d{number}" for number in range(9))
CONSTRUCTS: Final[Mapping[str, str]] = {
    "neighbours": "SEQ(A a, B b, C c) WHERE TIME(b) - TIME(a) <= 4 AND TIME(c) - TIME(b) BETWEEN 2 AND 6",
    "ends": "SEQ(A a, B b, C c) WHERE TIME(c) - TIME(a) <= a.wait AND TIME(a) >= 1",
    "times of a list": """SEQ(A a, B+ b[], C c)
        WHERE TIME(b[i]) - TIME(b[i-1]) <= 2 AND TIME(b[1]) - TIME(a) <= 4""",
    "times of what is forbidden": "SEQ(A a, !N n, C c) WHERE TIME(n) - TIME(a) <= 3",
    "times of what is next": """SEQ(A a, B b, C c)
        WHERE skip_till_next_match(a, b, c) AND TIME(b) - TIME(a) >= 2 AND TIME(c) - TIME(b) <= 6""",
    "times of a set": "SEQ(A a, AND(B b, N n), C c) WHERE TIME(b) - TIME(n) <= 2 AND TIME(c) - TIME(a) <= 9",
    "times of alternatives": """SEQ(A a, OR(B b, N n), C c)
        WHERE TIME(b) - TIME(a) <= 4 AND TIME(c) - TIME(n) <= 4""",
    "existence": "SEQ(A a, B b, C c) WHERE b.k = a.k",
    "existence of what is forbidden": "SEQ(A a, !N n, C c)",
    "existence of what is next": "SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c)",
    "existence in a list": "SEQ(A a, B+ b[], C c)",
    "an option": "SEQ(A a, B? b, C c)",
    "an option with times": """SEQ(A a, B? b, !N n, C c)
        WHERE TIME(b) - TIME(a) <= 4 AND TIME(n) - TIME(a) <= 4""",
    "an optional group": "SEQ(A a, SEQ(B b, !N n)?, C c) WHERE TIME(b) - TIME(a) <= 5",
    "existence in an optional group": "SEQ(A a, SEQ(B b, N n)?, C c)",
    "repetition": "SEQ(A a, B{1,2} b[], C* c[])",
    "a repeated group": """SEQ(A a, SEQ(B b[], N? n[])+, C c)
        WHERE TIME(b[i]) - TIME(b[i-1]) <= 4 AND TIME(b[1]) - TIME(a) <= 6""",
    "a repeated group with negations": "SEQ(A a, SEQ(!N n, OR(B b[], C d[])){1,2}, C c) WHERE b[i].k = n.k",
    "a repeated group of what is next": """SEQ(A a, SEQ(B b[])*, C c)
        WHERE skip_till_next_match(a, b[], c) AND b[b.LEN].k = a.k""",
    "until": "SEQ(A a, B b, C c) UNTIL N n WHERE TIME(n) - TIME(a) <= 3",
    "until the next": """SEQ(A a, B b, C c) UNTIL N n
        WHERE skip_till_next_match(a, b, c) AND TIME(n) - TIME(a) <= 3""",
    "a negated group": "SEQ(A a, !SEQ(N n, B m), C c) WHERE TIME(m) - TIME(a) <= 5",
    "a negated group of one key": """SEQ(A a, !SEQ(B n, N m), B? b, C c)
        WHERE n.k = m.k AND skip_till_next_match(a, b, c)""",
    "a negated group in a repeated one": "SEQ(A a, SEQ(B b[], !SEQ(N n, B m))+, C c)",
    "attributes that are lists": "SEQ(A a, B b, C c) WHERE 'x' IN b.items AND SHARES(a.items, b.items)",
    "lists of what is forbidden": "SEQ(A a, !N n, C c) WHERE SHARES(n.items, c.items)",
    "many options": f"SEQ(A a, {MANY}, B? b, C c)",
    "spans in order": "SEQ(A a, B b, C c) WHERE DURATION(b) <= 2 AND TIME(c.begin) - TIME(a.end) <= 9",
    "spans in relation": "AND(A a, B b, C c) WHERE a BEFORE b AND NOT (b OVERLAPS c) AND a.k = c.k",
    "spans that are forbidden": "SEQ(A a, !N n, C c) WHERE DURATION(n) <= 1",
    "spans forbidden beside a set": "AND(B b, C c, !N n) WHERE n OVERLAPS b AND b BEFORE c",
    "spans in options": "SEQ(A a, B? b, C c) WHERE DURATION(b) >= 1",
    "spans in alternatives": "SEQ(A a, OR(B b, N n), C c) WHERE TIME(n.end) - TIME(a.begin) <= 5",
    "spans until": "SEQ(A a, B b, C c) UNTIL N n WHERE DURATION(n) <= 1",
    "gaps": "SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b) AND strict_contiguity(b, c)",
    "gaps with times": "SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b) AND TIME(c) - TIME(a) <= 8",
}  # fmt: skip

Rows = dict[tuple[str, ...], tuple[int, int, float]]
Way = Callable[[pa.Table, str], Rows]


def rows(table: pa.Table) -> Rows:
    kept = {}
    for row in table.to_pylist():
        ids = tuple(str(value) for name, value in row.items() if len(name) < 3)
        kept[ids] = row["range_lower"], row["range_upper"], round(row["confidence"], 9)
    return kept


def matched(**options: Any) -> Way:
    return lambda table, query: rows(uc.match(table, query, **options))


def streamed(evaluation: str) -> Way:
    def found(table: pa.Table, query: str) -> Rows:
        matcher = uc.IncrementalMatcher(query, table.schema, evaluation=evaluation)
        parts = [matcher.push(table.slice(row, 1)) for row in range(table.num_rows)]
        return rows(pa.Table.from_batches([*parts, matcher.close()]))

    return found


def counted(ending: str) -> Way:
    def found(table: pa.Table, query: str) -> Rows:
        whole = rows(uc.match(table, query))
        counts = uc.match(table, f"{query} RETURN EXPECTED COUNT{ending}")["expected_count"].to_pylist()
        assert sum(counts) == pytest.approx(sum(confidence for *_, confidence in whole.values()))
        return whole

    return found


def happened(table: pa.Table, query: str) -> Rows:
    """Return the whole answer, if probabilities are within bounds, and those of streams the same."""
    whole = rows(uc.match(table, query))
    (row,) = uc.match(table, f"{query} RETURN PROBABILITY").to_pylist() or [{"probability": 0.0}]
    confidences = [confidence for *_, confidence in whole.values()]
    assert max(confidences, default=0.0) - 1e-9 <= row["probability"] <= min(sum(confidences), 1.0) + 1e-9
    by_time = f"{query} RETURN PROBABILITY EVERY 3"
    matcher = uc.IncrementalMatcher(by_time, table.schema, largest_interval=4)
    parts = [matcher.push(table.slice(row, 1)) for row in range(table.num_rows)]
    buckets = pa.Table.from_batches([*parts, matcher.close()])
    assert buckets.to_pylist() == [pytest.approx(row) for row in uc.match(table, by_time).to_pylist()]
    return whole


def looked_at(table: pa.Table, query: str) -> Rows:
    matches = uc.match(table, query)
    laws = uc.posteriors(matches, table, query)
    if "time" in laws.column_names:
        # What lasts has one of its begin, and one of its end.
        laws = laws.filter([time != "end" for time in laws["time"].to_pylist()])
    assert laws.num_rows == uc.events_of(matches, table, query).num_rows
    return rows(matches)


def explained(table: pa.Table, query: str) -> Rows:
    assert uc.explain(query, table, analyze=True)
    assert uc.explain(query, table, format="json")
    assert str(uc.report(table, query))
    return rows(uc.match(table, query))


def compressed(table: pa.Table, query: str) -> Rows:
    """Return the whole answer where the compressed one has the same events beside the list."""
    matches = uc.match(table, query, kleene="compressed")
    whole = rows(uc.match(table, query))
    singles = {(ids[0], *ids[2:]) for ids in whole}
    assert {(str(row["a"]), str(row["c"])) for row in matches.to_pylist()} == singles
    return whole


STREAMS: Final = ("auto", "sliced", "any_state", "selectivity", "query_order", "point")
WAYS: Final[Mapping[str, Way]] = {
    **{f"evaluation={name}": matched(evaluation=name) for name in EVALUATIONS},
    **{f"planner={name}": matched(planner=name) for name in PLANNERS},
    "a tree": matched(planner="((c a) b)"),
    "threads": matched(threads=3),
    "approximate": matched(approximate=0.01),
    "compressed": compressed,
    **{f"stream, {name}": streamed(name) for name in STREAMS},
    "expected count": counted(""),
    "expected count by time": counted(" EVERY 3"),
    "did it happen": happened,
    "events and laws": looked_at,
    "explanations and reports": explained,
}

LISTS: Final = ("times of a list", "existence in a list", "repetition")
FORBIDDEN: Final = (
    "times of what is forbidden", "existence of what is forbidden", "an option with times",
    "an optional group", "a negated group", "lists of what is forbidden",
    "a negated group of one key", "a negated group in a repeated one",
)  # fmt: skip
ATTRIBUTE: Final = "attributes that are lists"
NEXT: Final = ("times of what is next", "existence of what is next")
GAPS: Final = ("gaps", "gaps with times")
SETS: Final = ("times of a set", "until", "until the next")
GROUPS: Final = (
    "a repeated group", "a repeated group with negations", "a repeated group of what is next",
)  # fmt: skip
SEVERAL: Final = (
    "times of alternatives", "an option", "an option with times", "an optional group",
    "existence in an optional group", "repetition", "many options", *FORBIDDEN[-2:], *GROUPS,
)  # fmt: skip

BESIDE: Final = ("spans forbidden beside a set",)
SPANS: Final = tuple(name for name in CONSTRUCTS if name.startswith("spans"))

Refusals = Mapping[str, tuple[str, ...]]

RUNS: Final[Refusals] = {
    "support Kleene": LISTS, "support negation": (*FORBIDDEN, GROUPS[1]), "support event sets": SETS,
    "support strategies of single gaps": GAPS, "the events last": SPANS,
}  # fmt: skip
RUNS_OF_A_STREAM: Final[Refusals] = {
    **RUNS, "under skip_till_next_match over": NEXT, "alternative patterns": (SEVERAL[0], GROUPS[1]),
    "optional components": SEVERAL[1:8], "repeated groups": (FORBIDDEN[-1], GROUPS[0], GROUPS[2]),
    "events that last over": SPANS,
}  # fmt: skip
REFUSED: Final[Mapping[str, Refusals]] = {
    "evaluation=any_state": RUNS,
    "evaluation=selectivity": RUNS,
    "evaluation=point": {"support event sets": SETS, "the events last": SPANS},
    **{f"stream, {name}": RUNS_OF_A_STREAM for name in ("any_state", "selectivity", "query_order")},
    "stream, point": {"support event sets": SETS, "the events last": SPANS},
    "a tree": {
        "no variable of a component that takes one event": (
            *LISTS[:2], *FORBIDDEN[:2], *FORBIDDEN[4:6], "spans that are forbidden", *BESIDE,
        ),
        "n is missing": SETS[:1],
        "a tree is for one pattern": (*SEVERAL, "spans in options", "spans in alternatives"),
    },
    "compressed": {
        "one Kleene component": (
            "neighbours", "ends", "existence", *FORBIDDEN[:2], *FORBIDDEN[4:6], *NEXT, *GAPS,
            ATTRIBUTE,
        ),
        "alone: a set": LISTS[:1], "without AND": SETS, "without OR": SEVERAL, "the events last": SPANS,
    },
}  # fmt: skip
"""What each way does not take, and what its error says; where two say it, the later one does."""


@pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")
@pytest.mark.parametrize("way", WAYS)
def test_every_way_takes_every_construct_or_says_at_once_that_it_does_not(way: str) -> None:
    refused = {name: said for said, names in REFUSED.get(way, {}).items() for name in names}
    for construct, pattern in CONSTRUCTS.items():
        table = table_of(construct)
        query = f"PATTERN {pattern} WITHIN 14"
        if construct not in refused:
            assert WAYS[way](table, query) == answer(construct), construct
            continue
        with pytest.raises(uc.OptionError, match=refused[construct]):
            # No event is needed to say so.
            WAYS[way](table.slice(0, 0), query)


def table_of(construct: str) -> pa.Table:
    """Return the events that a construct is asked of."""
    if construct.startswith("spans"):
        return LASTING
    return DOUBTFUL if construct.startswith("existence") else EVENTS


@cache
def answer(construct: str) -> Rows:
    table = table_of(construct)
    answer_rows = rows(uc.match(table, f"PATTERN {CONSTRUCTS[construct]} WITHIN 14"))
    assert len(answer_rows) > 1
    return answer_rows
