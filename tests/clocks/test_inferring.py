"""Bounds of clocks from events, against every choice of offsets and own times."""

from __future__ import annotations

import datetime as dt
import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc

MOST = 3
CLOCKS = ("g", "h", None)
EVENT = st.fixed_dictionaries(
    {
        "type": st.sampled_from("AB"),
        "source": st.sampled_from(CLOCKS),
        "k": st.sampled_from([0, 1, None]),
        "lower": st.integers(0, 6),
        "width": st.sampled_from([0, 0, 1, 2]),
    }
)
PAIRS = uc.causal("SEQ(A a, B b) WHERE a.k = b.k")
LATER = uc.causal("SEQ(B a, A b) WHERE a.k < b.k", delay=1)
GROUPS = uc.all_before("A", "B", by="k", delay=2)
SOON = uc.causal("SEQ(A a, B b) WHERE a.k = b.k", delay=(1, 3))
ONE_MOMENT = uc.causal("SEQ(A a, B b) WHERE a.k = b.k", delay=(-1, 1))
NOT_LONG_BEFORE = uc.causal("SEQ(A a, B b) WHERE a.k = b.k", delay=-2)
MEANING: dict[Any, tuple[str, str, int, int]] = {
    PAIRS: ("A", "B", 0, 99),
    LATER: ("B", "A", 1, 99),
    GROUPS: ("A", "B", 2, 99),
    SOON: ("A", "B", 1, 3),
    ONE_MOMENT: ("A", "B", -1, 1),
    NOT_LONG_BEFORE: ("A", "B", -2, 99),
}
"""The types of the earlier and the later events, and the least and the largest distance of their times."""


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    events = [{**row, "upper": row["lower"] + row["width"]} for row in rows]
    texts, numbers = ("type", "source"), ("k", "lower", "upper")
    schema = [(name, pa.string()) for name in texts] + [(name, pa.int64()) for name in numbers]
    return pa.Table.from_pylist(events, pa.schema(schema))


def is_claimed(constraint: Any, one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether a constraint says that one event is never after another."""
    first, then, *_ = MEANING[constraint]
    if (one["type"], other["type"]) != (first, then) or None in (one["k"], other["k"]):
        return False
    # Of certain times by one clock only groups are asked, since these are not taken apart.
    if one["source"] == other["source"] and one["width"] == other["width"] == 0 and constraint != GROUPS:
        return False
    return bool(one["k"] < other["k"] if constraint == LATER else one["k"] == other["k"])


def offsets_in_all_worlds(rows: list[dict[str, Any]], constraints: list[Any], reference: str | None) -> Any:
    """Return the offsets of g and h in every world that constraints leave, (w, 2)."""
    axes = [[0] if clock == reference else range(-MOST, MOST + 1) for clock in CLOCKS[:2]]
    axes += [range(row["lower"], row["lower"] + row["width"] + 1) for row in rows]
    worlds = np.array(list(itertools.product(*axes)))
    offsets = np.column_stack([worlds[:, :2], np.zeros(len(worlds), int)])
    times = [worlds[:, 2 + i] + offsets[:, CLOCKS.index(row["source"])] for i, row in enumerate(rows)]
    holds = np.ones(len(worlds), np.bool_)
    for constraint in constraints:
        for i, j in itertools.permutations(range(len(rows)), 2):
            if is_claimed(constraint, rows[i], rows[j]):
                nearest, farthest = MEANING[constraint][2:]
                holds &= (times[j] - times[i] >= nearest) & (times[j] - times[i] <= farthest)
    return offsets[holds][:, :2]


@given(
    st.lists(EVENT, min_size=1, max_size=5),
    st.lists(st.sampled_from(list(MEANING)), max_size=3, unique=True),
    st.sampled_from([None, "g"]),
)
def test_bounds_are_those_of_all_worlds(
    rows: list[dict[str, Any]], constraints: list[Any], reference: str | None
) -> None:
    clocks = sorted({row["source"] for row in rows if row["source"] is not None})
    if reference not in clocks:
        reference = None
    worlds = offsets_in_all_worlds(rows, constraints, reference)

    def inferred() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", uc.UncertainCepWarning)
            return uc.infer_offsets(table_of(rows), constraints, prior=MOST, reference=reference)

    if not len(worlds):
        with pytest.raises(uc.TraceError, match="contradict each other"):
            inferred()
        return
    columns = [CLOCKS.index(clock) for clock in clocks]
    bounds = inferred()
    assert bounds.column("source").to_pylist() == clocks
    assert bounds.column("offset_lo").to_pylist() == worlds.min(axis=0)[columns].tolist()
    assert bounds.column("offset_hi").to_pylist() == worlds.max(axis=0)[columns].tolist()


SPANS = pa.table(
    {
        "type": ["Start", "End", "Start", "End"],
        "span": ["p", "p", "c", "c"],
        "parent": [None, None, "p", "p"],
        "host": ["front", "front", "back", "back"],
        "lower": [100, 140, 300, 310],
        "upper": [100, 140, 300, 310],
    }
)
NESTED = uc.encloses(("Start", "End"), ("Start", "End"), by=("span", "parent"))


def timed(events: pa.Table, unit: str, zone: str | None = None) -> pa.Table:
    """Return events whose ticks are timestamps of a unit."""
    for name in ("lower", "upper"):
        place = events.column_names.index(name)
        events = events.set_column(place, name, events.column(name).cast(pa.timestamp(unit, zone)))
    return events


def stamped(events: pa.Table) -> pa.Table:
    """Return events with one column of stamps instead of certain intervals."""
    return events.append_column("at", events.column("lower")).drop_columns(["lower", "upper"])


def test_a_child_lies_in_its_parent() -> None:
    bounds = uc.infer_offsets(SPANS, [NESTED], prior=None, reference="front", source="host")
    assert bounds.to_pylist() == [
        {"host": "back", "offset_lo": -200, "offset_hi": -170},
        {"host": "front", "offset_lo": 0, "offset_hi": 0},
    ]


def test_what_was_inferred_is_a_table_of_clock_offsets() -> None:
    events = timed(SPANS, "ms")
    bounds = uc.infer_offsets(events, [NESTED], prior="10s", reference="front", source="host", tick="1ms")
    assert bounds.schema.field("offset_lo").type == pa.duration("ms")
    moved = uc.to_intervals(stamped(events), time="at", uncertainty=uc.clock_offset(bounds), tick="1ms")
    assert moved.column("lower").cast(pa.int64()).to_pylist() == [100, 140, 100, 110]
    assert moved.column("upper").cast(pa.int64()).to_pylist() == [100, 140, 130, 140]


def test_frames_of_other_libraries_come_back_as_such() -> None:
    bounds = uc.infer_offsets(SPANS.to_pandas(), [NESTED], prior=500, source="host")
    assert isinstance(bounds, pd.DataFrame)
    assert bounds["offset_lo"].tolist() == [-500, -330]


def test_a_prior_by_clock_is_widened_to_whole_ticks_and_may_be_unknown() -> None:
    prior = uc.clock_offset({"front": (-1500, 1500)})
    events = timed(SPANS, "s")
    bounds = uc.infer_offsets(events, [NESTED], prior=prior, source="host", tick="1s")
    assert [bound.total_seconds() for bound in bounds.column("offset_lo").to_pylist()] == [-202, -2]
    assert [bound.total_seconds() for bound in bounds.column("offset_hi").to_pylist()] == [-168, 2]
    alone = uc.infer_offsets(events, [], prior=prior, source="host", tick="1s")
    assert alone.column("offset_hi").is_null().to_pylist() == [True, False]


def calls(*rows: tuple[str, str | None, int]) -> pa.Table:
    """Return sends and gets of messages 0, 1, ...: which, by whose clock, and when by it."""
    times = [time for _, _, time in rows]
    return pa.table(
        {
            "type": [kind for kind, _, _ in rows],
            "message": [number // 2 for number in range(len(rows))],
            "source": pa.array([clock for _, clock, _ in rows], pa.string()),
            "lower": times,
            "upper": times,
        }
    )


SENT = uc.causal("SEQ(Send a, Get b) WHERE [message]")
SET_BACK = calls(
    ("Send", None, 10), ("Get", "h", 4), ("Send", "h", 20), ("Get", None, 31),
    ("Send", None, 50), ("Get", "h", 90), ("Send", "h", 93), ("Get", None, 55),
)  # fmt: skip


def test_contradictions_name_their_rows() -> None:
    with pytest.raises(uc.TraceError, match="contradict each other, or the prior, by 44 ticks") as caught:
        uc.infer_offsets(SET_BACK, [SENT], prior=100)
    assert [fault.row for fault in caught.value.faults] == [None, 1, 7]
    assert "it is not after row 8, by: SEQ(Send a, Get b) WHERE [message]" in str(caught.value)


def test_what_contradicts_what_stands_before_it_can_be_left_out() -> None:
    with pytest.warns(uc.UncertainCepWarning, match="1 of 4 pairs of the constraint .* rows 7 and 8"):
        bounds = uc.infer_offsets(SET_BACK, [SENT], prior=100, contradictions="drop")
    assert bounds.to_pylist() == [{"source": "h", "offset_lo": 6, "offset_hi": 11}]


def test_an_epoch_ends_where_a_clock_contradicts_itself() -> None:
    bounds = uc.infer_offsets(SET_BACK, [SENT], prior=100, epochs=True)
    assert bounds.to_pylist() == [
        {"source": "h", "from": None, "until": 93, "offset_lo": 6, "offset_hi": 11},
        {"source": "h", "from": 93, "until": None, "offset_lo": -100, "offset_hi": -38},
    ]


def test_epochs_do_not_help_where_the_events_are_of_one_time() -> None:
    events = calls(("Send", None, 10), ("Get", "h", 5), ("Send", "h", 5), ("Get", None, 9))
    with pytest.raises(uc.TraceError, match="by 1 ticks"):
        uc.infer_offsets(events, [SENT], prior=None, epochs=True)


def test_epochs_are_of_the_type_of_the_times() -> None:
    events = timed(SET_BACK, "s", "UTC")
    bounds = uc.infer_offsets(events, [SENT], prior="100s", epochs=True, tick="1s")
    assert bounds.schema.field("from").type == pa.timestamp("s", "UTC")
    assert bounds.column("until").cast(pa.int64()).to_pylist() == [93, None]
    rule = uc.clock_offset(bounds, host="source", epoch=("from", "until"))
    by_clock = stamped(events.filter(events.column("source").is_valid()))
    moved = uc.to_intervals(by_clock, time="at", uncertainty=rule, tick="1s")
    assert moved.column("upper").cast(pa.int64()).to_pylist() == [15, 31, 101, 55]


def test_causal_patterns_compare_any_attributes() -> None:
    events = pa.table(
        {
            "type": ["Fail", "Start", "Start", "Fail"],
            "task": ["t", "t", "t", None],
            "attempt": [0, 1, 2, 7],
            "source": ["g", "h", "h", "g"],
            "lower": [10, 3, 1, 0],
            "upper": [10, 3, 1, 0],
        }
    )
    retry = uc.causal("SEQ(Fail a, Start b) WHERE a.task = b.task AND b.attempt = a.attempt + 1", delay=2)
    bounds = uc.infer_offsets(events, [retry], prior=None, reference="g")
    assert bounds.to_pylist()[1] == {"source": "h", "offset_lo": 9, "offset_hi": None}
    anything = uc.causal("SEQ(Fail a, ANY b) WHERE a.attempt < b.attempt AND a.attempt < 1")
    bounds = uc.infer_offsets(events, [anything], prior=None, reference="g")
    assert bounds.to_pylist()[1]["offset_lo"] == 9


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"contradictions": "ignore"}, uc.OptionError, "write 'error' or 'drop'"),
    ({"epochs": 1}, uc.OptionError, "True or False"),
    ({"constraints": "SEQ(A a, B b)"}, uc.OptionError, "a list of what causal"),
    ({"constraints": ["SEQ(A a, B b)"]}, uc.OptionError, "a list of what causal"),
    ({"reference": "x"}, uc.OptionError, "no event has this clock; the clocks are g"),
    ({"source": "clock"}, uc.TraceError, "no such column"),
    ({"prior": "10s"}, uc.OptionError, "the times are plain ticks"),
    ({"prior": -1}, uc.OptionError, "at least 0"),
    (
        {"prior": uc.clock_offset({"g": (1, 2)}, unit="tick"), "reference": "g"},
        uc.OptionError,
        "is not right",
    ),
    ({"constraints": [uc.all_before("A", "B", by="x")]}, uc.TraceError, "no such column"),
    ({"constraints": [uc.causal("SEQ(A a, B b) WHERE a.x = b.x")]}, uc.QueryError, "unknown attribute x"),
]


@pytest.mark.parametrize(("wrong", "error", "said"), WRONG)
def test_wrong_calls(wrong: dict[str, Any], error: type[Exception], said: str) -> None:
    events = pa.table({"type": ["A"], "source": ["g"], "lower": [1], "upper": [1]})
    arguments: dict[str, Any] = {"constraints": [], "prior": None, **wrong}
    with pytest.raises(error, match=said):
        uc.infer_offsets(events, arguments.pop("constraints"), **arguments)


def test_wrong_times() -> None:
    for upper, said in ((0, "ends before it begins"), (None, "needs a time")):
        events = pa.table(
            {"type": ["A"], "source": ["g"], "lower": [1], "upper": pa.array([upper], pa.int64())}
        )
        with pytest.raises(uc.TraceError, match=said):
            uc.infer_offsets(events, [], prior=None)


def test_a_constraint_on_nothing_is_warned_of() -> None:
    events = pa.table({"type": ["A"], "k": [1], "source": ["g"], "lower": [1], "upper": [1]})
    with pytest.warns(
        uc.UncertainCepWarning, match="no two events fit the constraint all A before all B by k"
    ):
        uc.infer_offsets(events, [GROUPS], prior=1)


def test_no_events_have_no_clocks() -> None:
    events = pa.table({name: pa.array([], pa.string()) for name in ("type", "source")})
    for name in ("lower", "upper"):
        events = events.append_column(name, pa.array([], pa.int64()))
    assert uc.infer_offsets(events, [], prior=None).num_rows == 0
    assert uc.infer_offsets(events, [], prior=None, epochs=True).num_rows == 0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: uc.causal("SEQ(A a, B b, C c)"), "a sequence of two single events"),
        (lambda: uc.causal("SEQ(A a, !B b)"), "a sequence of two single events"),
        (lambda: uc.causal("AND(A a, B b)"), "a sequence of two single events"),
        (lambda: uc.causal("SEQ(A a, B b) WITHIN 5"), "without PATTERN and WITHIN"),
        (lambda: uc.causal("SEQ(A a"), "cannot be read"),
        (lambda: uc.causal("SEQ(A a, B b)", delay="soon"), "not a length of time"),
        (lambda: uc.causal("SEQ(A a, B b)", delay=("1 s", "0 s")), "the least is more than the most"),
        (lambda: uc.causal("SEQ(A a, B b)", delay=(1, "5 s")), "two lengths of time, or two numbers"),
        (lambda: uc.causal("SEQ(A a, B b)", delay=(1, 2, 3)), "the least and the most"),
        (lambda: uc.causal("SEQ(A a, B b)", delay="- soon"), "not a length of time"),
        (lambda: uc.encloses("ab", ("c", "d"), by="x"), "a pair of names"),
        (lambda: uc.encloses(("a", "b"), ("c", "d"), by=("x", "y", "z")), "a pair of names"),
        (lambda: uc.all_before("A", "A"), "no A is before itself"),
        (lambda: uc.all_before("A", "B", by=3), "a name, or several"),  # type: ignore[arg-type]
        (lambda: uc.all_before("A", "B", delay=-2), "at least 0"),
    ],
)
def test_wrong_constraints(make: Any, said: str) -> None:
    with pytest.raises(uc.OptionError, match=said):
        make()


def test_two_hosts_that_saw_one_thing() -> None:
    """The clock of h shows 100 s where that of g shows 130 s, within 60 s."""
    seen = pa.table(
        {"type": ["Logon"] * 2, "user": 2 * [7], "host": [*"gh"], "lower": [130, 100], "upper": [130, 100]}
    )
    pattern = "SEQ(Logon a, Logon b) WHERE a.user = b.user AND a.host != b.host"
    expected = [
        {"host": "g", "offset_lo": 0, "offset_hi": 0},
        {"host": "h", "offset_lo": -30, "offset_hi": 90},
    ]
    for delay in ((-60, 60), -60, [-60, 60]):
        # Both orders of the two are pairs of the pattern.
        bounds = uc.infer_offsets(
            seen, [uc.causal(pattern, delay=delay)], prior=None, reference="g", source="host"
        )
        assert bounds.to_pylist() == expected
    minute = dt.timedelta(minutes=1)
    lengths: Any
    for lengths in (("-60 s", "60 s"), (-minute, minute), (np.timedelta64(-1, "m"), pd.Timedelta("60 s"))):
        bounds = uc.infer_offsets(
            timed(seen, "s"), [uc.causal(pattern, delay=lengths)], prior=None, reference="g", source="host",
            tick="1s",
        )  # fmt: skip
        assert bounds["offset_hi"].cast(pa.int64()).to_pylist() == [0, 90]


def test_a_message_that_came_too_late_names_both_rows() -> None:
    sent = pa.table(
        {"type": ["Send", "Get"], "m": [1, 1], "host": ["g", "h"], "lower": [0, 20], "upper": [0, 20]}
    )
    received = uc.causal("SEQ(Send a, Get b) WHERE a.m = b.m", delay=(0, 5))
    with pytest.raises(uc.TraceError, match=r"row 2.*it is at most 5 ticks after row 1, by: SEQ"):
        uc.infer_offsets(sent, [received], prior=3, source="host")
    with pytest.warns(uc.UncertainCepWarning):
        kept = uc.infer_offsets(sent, [received], prior=3, source="host", contradictions="drop")
    assert kept["offset_lo"].to_pylist() == [-3, -3]


def test_two_sided_delays_in_a_schema(tmp_path: Path) -> None:
    schema = tmp_path / "schema.toml"
    text = 'tick = "1s"\n[[events]]\ntype_column = "type"\ntime = "at"\nuncertainty = { kind = "exact" }\n'
    text += '[[constraints]]\ncausal = "SEQ(Send a, Get b) WHERE a.m = b.m"\ndelay = '
    schema.write_text(text + '["0 s", "5 s"]')
    (constraint,) = uc.load_schema(schema).constraints
    assert constraint == uc.causal("SEQ(Send a, Get b) WHERE a.m = b.m", delay=("0 s", "5 s"))
    schema.write_text(text + '["5 s", "0 s"]')
    with pytest.raises(uc.TraceError, match="the least is more than the most"):
        uc.load_schema(schema)


def test_a_prior_may_have_a_default() -> None:
    events = pa.table({"type": ["A", "A"], "host": ["g", "h"], "lower": [0, 0], "upper": [0, 0]})
    prior = uc.clock_offset({"g": (-1, 2)}, unit="tick", default=7)
    bounds = uc.infer_offsets(events, [], prior=prior, source="host")
    assert bounds["offset_lo"].to_pylist() == [-1, -7]
    assert bounds["offset_hi"].to_pylist() == [2, 7]
    # Outward, where it is no whole number of ticks.
    prior = uc.clock_offset({"g": (-1500, 2500)}, default="1500ms")
    bounds = uc.infer_offsets(timed(events, "s"), [], prior=prior, source="host", tick="1s")
    assert bounds["offset_lo"].cast(pa.int64()).to_pylist() == [-2, -2]
    assert bounds["offset_hi"].cast(pa.int64()).to_pylist() == [3, 2]


def test_a_default_in_a_schema(tmp_path: Path) -> None:
    (tmp_path / "offsets.csv").write_text("host,offset_lo,offset_hi\ng,-1,2\n")
    (tmp_path / "log.csv").write_text("at,host\n1970-01-01 00:00:10,g\n1970-01-01 00:00:10,h\n")
    schema = tmp_path / "schema.toml"
    text = 'tick = "1ms"\n[[events]]\ntype = "A"\ntime = "at"\nuncertainty = { kind = "clock_offset", '
    text += 'table = "offsets.csv", key = "host", default = "5s" }\n'
    schema.write_text(text)
    events = uc.read_traces(tmp_path / "log.csv", schema)
    assert events["lower"].cast(pa.int64()).to_pylist() == [9_999, 5_000]
    assert events["upper"].cast(pa.int64()).to_pylist() == [10_002, 15_000]
    schema.write_text(text.replace('"5s"', '"5 parsec"'))
    with pytest.raises(uc.TraceError, match=r"uncertainty.default: .* is not a length of time"):
        uc.load_schema(schema)
