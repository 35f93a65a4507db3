"""Parameters: values that stand where a query has ``$name``, as if they had been written there."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan, remembered_plan
from uncertain_cep.query import parse, query_of, values_of
from uncertain_cep.query.syntax import Untyped
from uncertain_cep.timeline.durations import parse_duration

MODEL = {"type": pa.string(), "id": pa.int64(), "lower": pa.int64(), "upper": pa.int64()}
SCHEMA = pa.schema(
    MODEL | {"n": pa.int64(), "x": pa.float64(), "s": pa.string(), "b": pa.bool_(), "at": pa.timestamp("us")}
)
EVENTS = pa.table(
    {
        "type": ["A", "A", "B", "B"], "id": [1, 2, 3, 4], "lower": [0, 1, 4, 5], "upper": [2, 3, 6, 9],
        "n": [1, 2, 3, None], "x": [0.5, 1.5, 2.5, None], "s": ["u", "v' OR TRUE --", "u", None],
        "b": [True, False, True, None], "at": pa.array([0, 10**6, 2 * 10**6, None], pa.timestamp("us")),
    }
)  # fmt: skip
ALL = (
    "PATTERN SEQ(A a, B b) WHERE {} WITHIN {} HAVING CONFIDENCE >= {} RETURN a.n + {} AS more "
    "ORDER BY CONFIDENCE DESC LIMIT {}"
)
COMPARED = {
    "n": st.sampled_from([-1, 1, 2, 1.5, 2**62]),
    "x": st.sampled_from([0.5, 1, -1e300]),
    "s": st.sampled_from(["u", "v' OR TRUE --", "$s", "", "2"]),
    "b": st.booleans(),
    "at": st.sampled_from(["1970-01-01", "1970-01-01T00:00:01"]),
}
DAY: Final = 86_400 * 10**9


def planned(text: str, values: dict[str, Any]) -> EvaluationPlan:
    return remembered_plan(text, SCHEMA, MatchOptions(parameters=values_of(values)))


def literal(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


@given(st.data())
def test_a_value_is_as_if_it_were_written(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(COMPARED)))
    sign = data.draw(st.sampled_from(["=", "!="] + ([] if name == "b" else ["<", ">="])))
    value = data.draw(COMPARED[name])
    window, threshold, limit = data.draw(st.sampled_from([3, 9])), data.draw(st.sampled_from([0, 0.4, 1])), 2
    values = {"v": value, "w": window, "c": threshold, "k": limit}
    query = ALL.format(f"a.{name} {sign} $v", "$w", "$c", "$k", "$k")
    written = ALL.format(f"a.{name} {sign} {literal(value)}", window, threshold, limit, limit)
    matches = uc.match(EVENTS, query, parameters=values)
    assert matches.equals(uc.match(EVENTS, written))
    assert matches.equals(uc.match(EVENTS, uc.parse(query), parameters=values))
    # From the command line every value is text.
    typed = tuple(sorted((one, Untyped(text_value)) for one, text_value in values.items()))
    assert matches.equals(uc.match(EVENTS, query_of(query, typed)))


@given(st.lists(st.tuples(*(COMPARED[name] for name in ("n", "s", "at"))), min_size=1, max_size=4))
def test_a_remembered_plan_is_that_of_its_values(drawn: list[tuple[Any, ...]]) -> None:
    text = "PATTERN SEQ(A a, B b) WHERE a.n > $n AND a.s = $s AND b.at > $at AND b.x + $n > a.x WITHIN 5"
    for drawn_values in drawn:
        values = dict(zip(("n", "s", "at"), drawn_values, strict=True))
        query = query_of(text, values_of(values))
        assert planned(text, values) == make_plan(query, SCHEMA)
        assert dict(planned(text, values).query.values) == values


def test_plans_are_remembered_across_values() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE a.n > $n WITHIN $w"
    one, other = planned(text, {"n": 1, "w": 5}), planned(text, {"n": 2, "w": 5})
    assert one.bound.components is other.bound.components
    assert one != other
    assert planned(text, {"n": 1, "w": 5}) == one
    assert planned(text, {"n": 1, "w": 6}).window == 6
    with pytest.raises(uc.QueryError, match=r"a\.n is a whole number and 'u' a string: they"):
        planned(text, {"n": "u", "w": 5})
    for wrong, said in ((2**63, "does not fit in 64 bits"), (dt.timedelta(1), "a length of time")):
        with pytest.raises(uc.QueryError, match=said):
            planned(text, {"n": wrong, "w": 5})
    late = "PATTERN SEQ(A a) WHERE a.at > $t WITHIN 5"
    planned(late, {"t": "2026-01-05"})
    with pytest.raises(uc.QueryError, match="'noon' is no time"):
        planned(late, {"t": "noon"})


@pytest.mark.parametrize(
    "time",
    [
        dt.datetime(2026, 1, 5, 8), dt.datetime(2026, 1, 5, 9, tzinfo=dt.timezone(dt.timedelta(hours=1))),
        pd.Timestamp("2026-01-05 08:00"), np.datetime64("2026-01-05T08"), "2026-01-05T08:00:00Z",
    ],
)  # fmt: skip
def test_times(time: Any) -> None:
    query = "PATTERN SEQ(A a) WHERE a.at = $t WITHIN 5"
    written = "PATTERN SEQ(A a) WHERE a.at = '2026-01-05T08:00:00' WITHIN 5"
    predicate = planned(query, {"t": time}).components[0].local[0]
    assert repr(predicate).replace("parameter='t'", "parameter=None") == repr(
        make_plan(uc.parse(written), SCHEMA).components[0].local[0]
    )


@pytest.mark.parametrize(
    ("length", "nanoseconds"),
    [
        (np.timedelta64(3, ("ns", 10)), 30), (np.timedelta64(7_000, "ps"), 7),
        (np.timedelta64(2, "W"), 14 * DAY),
        (np.timedelta64(2**53 + 1, "ns"), 2**53 + 1), (np.timedelta64(3, "h"), DAY // 8),
        (np.timedelta64(1, "M"), None), (np.timedelta64(1, "Y"), None), (np.timedelta64(5), None),
        (np.timedelta64("NaT", "s"), None), (np.timedelta64(1, "ps"), None),
    ],
)  # fmt: skip
def test_lengths_of_numpy(length: Any, nanoseconds: int | None) -> None:
    """Months, years and numbers without a unit are no lengths; they were nanoseconds."""
    if nanoseconds is not None:
        assert parse_duration(length) == nanoseconds
        return
    with pytest.raises(uc.OptionError):
        parse_duration(length)


@pytest.mark.parametrize("length", ["15 s", "15000ms", dt.timedelta(seconds=15), np.timedelta64(15, "s"), 15])
def test_lengths(length: Any) -> None:
    clause, more = ("WITHIN $w s", "EVERY $e s") if isinstance(length, int) else ("WITHIN $w", "EVERY $e")
    query = query_of(
        f"PATTERN SEQ(A a) {clause} RETURN EXPECTED COUNT {more}", values_of({"w": length, "e": length})
    )
    assert query.window is not None
    assert query.expected_count is not None
    assert query.expected_count.every is not None
    assert query.window.nanoseconds == query.expected_count.every.nanoseconds == 15 * 10**9
    assert (
        query_of("PATTERN SEQ(A a) WITHIN $w", (("w", Untyped("15 s")),)).window
        == query_of("PATTERN SEQ(A a) WITHIN $w", values_of({"w": "15 s"})).window
    )


@pytest.mark.parametrize(
    ("clauses", "values", "said"),
    [
        (
            "WHERE a.n > $n WITHIN 5",
            {},
            r"no value for \$n: give parameters=\{\"n\": ...\}, or --param n=...",
        ),
        ("WHERE a.n > $limit WITHIN 5", {"limti": 5, "limit": 5}, r"no \$limti: did you mean \$limit\?"),
        ("WITHIN 5", {"n": 5}, r"no \$n \(it has none\)"),
        ("WITHIN $w", {"w": True}, r"\$w: True is no number"),
        ("WITHIN $w", {"w": -3}, r"\$w: -3 is below 0"),
        ("WITHIN $w", {"w": 0}, "a window of 0 holds no event"),
        ("WITHIN $w", {"w": "soon"}, "is not a length of time"),
        ("WITHIN $w seconds", {"w": "5"}, r"'5' is no number of seconds"),
        ("WITHIN $w ns", {"w": 0.5}, "is not a whole number of nanoseconds"),
        ("WITHIN 5 LIMIT $k", {"k": 1.5}, "LIMIT takes a whole number"),
        ("WITHIN 5 LIMIT $k", {"k": 0}, "LIMIT must be from 1"),
        ("WITHIN 5 HAVING CONFIDENCE >= $c", {"c": 1.5}, "a confidence lies between 0 and 1"),
        ("WITHIN 5 HAVING CONFIDENCE >= $c", {"c": "u"}, r"\$c: 'u' is no number"),
        ("WITHIN 5 RETURN EXPECTED COUNT LIMIT $k", {"k": 1}, "chooses among matches"),
    ],
)
def test_what_is_refused(clauses: str, values: dict[str, Any], said: str) -> None:
    text = f"PATTERN SEQ(A a) {clauses}"
    with pytest.raises((uc.OptionError, uc.QueryError), match=said):
        uc.match(EVENTS, text, parameters=values)


def test_no_value_is_read_as_a_query() -> None:
    matches = uc.match(
        EVENTS, "PATTERN SEQ(A a) WHERE a.s = $s WITHIN 5 RETURN $s AS s", parameters={"s": "v' OR TRUE --"}
    )
    assert matches.select(["a", "s"]).to_pylist() == [{"a": 2, "s": "v' OR TRUE --"}]


def test_null_is_never_equal() -> None:
    for nothing in (None, pd.NaT, np.datetime64("NaT", "ns")):
        query = "PATTERN SEQ(A a) WHERE a.n = $n WITHIN 5"
        assert uc.match(EVENTS, query, parameters={"n": nothing}).num_rows == 0


def test_every_function_takes_parameters() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE a.n >= $n WITHIN 9"
    values = {"n": 2}
    matches = uc.match(EVENTS, query, parameters=values)
    assert matches.num_rows == 2
    assert pa.Table.from_batches(uc.iter_matches(EVENTS, query, parameters=values)).equals(matches)
    assert "a.n >= 2" in uc.explain(query, EVENTS, parameters=values)
    assert "$n = 2" in str(uc.report(EVENTS, query, parameters=values))
    assert uc.events_of(matches, EVENTS, query, parameters=values).num_rows == 4
    assert uc.posteriors(matches, EVENTS, query, parameters=values).num_rows == 4
    assert uc.validate(EVENTS, query=query, parameters=values) == []
    matcher = uc.IncrementalMatcher(query, EVENTS.schema, parameters=values)
    assert matcher.push(EVENTS).num_rows + matcher.close().num_rows == 2


def test_the_text_with_values_tells_kinds_apart() -> None:
    query = parse("PATTERN SEQ(A a) WHERE $x IS NULL WITHIN 10")
    length = dt.timedelta(seconds=5)
    values = [
        5, "5", 5.5, True, "True", None, "None", dt.datetime(1970, 1, 1), "x\n-- $y = 5", length,
    ]  # fmt: skip
    texts = [query_of(query, values_of({"x": value})).text_with_values for value in values]
    assert [text.partition("$x = ")[2] for text in texts] == [
        "5", "'5'", "5.5", "True", "'True'", "None", "'None'", "TIMESTAMP '1970-01-01T00:00:00'",
        r"'x\n-- $y = 5'", "0:00:05",
    ]  # fmt: skip
    assert query_of(query, (("x", Untyped("5")),)).text_with_values == texts[0]


@given(st.lists(st.sampled_from([1, 2, 3, 7]), max_size=3), st.booleans())
def test_a_list_is_as_if_it_were_written(values: list[int], negated: bool) -> None:
    sign = "NOT IN" if negated else "IN"
    query = f"PATTERN SEQ(A a, B b) WHERE b.n {sign} $many WITHIN 9"
    written = f"b.n {sign} ({', '.join(map(str, values))})" if values else str(negated).upper()
    expected = uc.match(EVENTS, f"PATTERN SEQ(A a, B b) WHERE {written} WITHIN 9")
    for given_ in (values, tuple(values), np.array(values, dtype=np.int64), pa.array(values, pa.int64())):
        assert uc.match(EVENTS, query, parameters={"many": given_}).equals(expected)
    if values:
        typed = (("many", Untyped(", ".join(map(str, values)))),)
        assert uc.match(EVENTS, query_of(query, typed)).equals(expected)


def test_lists_of_text_and_sets() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE a.s IN $names WITHIN 9"
    expected = uc.match(EVENTS, "PATTERN SEQ(A a, B b) WHERE a.s IN ('u', 'w') WITHIN 9")
    assert expected.num_rows
    assert uc.match(EVENTS, query, parameters={"names": {"w", "u"}}).equals(expected)
    assert "('u', 'w')" in query_of(query, values_of({"names": {"w", "u"}})).text_with_values


@pytest.mark.parametrize(
    ("condition", "value", "message"),
    [
        ("b.n IN $v", 3, r"IN \$v takes a list, and IN \(\$v\) one value"),
        ("b.n = $v", [3], "a list of values stands behind IN alone"),
        ("b.n IN ($v)", [3], "a list of values stands behind IN alone"),
        ("b.n IN $v", ["u"], "IN needs values of one kind"),
        ("b.n IN $v", [[3]], "or for IN a list of such"),
    ],
)
def test_wrong_lists_are_refused(condition: str, value: Any, message: str) -> None:
    with pytest.raises(uc.UncertainCepError, match=message):
        uc.match(EVENTS, f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 9", parameters={"v": value})


def test_ticks_count_times_and_nothing_else() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE TIME(b) - TIME(a) <= {} WITHIN 9"
    assert uc.match(EVENTS, query.format("3 ticks")).equals(uc.match(EVENTS, query.format("3")))
    assert uc.match(EVENTS, query.format("a.n + 1 tick")).equals(uc.match(EVENTS, query.format("a.n + 1")))
    with pytest.raises(uc.QueryError, match="ticks count times"):
        uc.match(EVENTS, "PATTERN SEQ(A a, B b) WHERE a.n < 3 ticks WITHIN 9")
    with pytest.raises(uc.QuerySyntaxError, match="whole numbers"):
        uc.match(EVENTS, query.format("2.5 ticks"))
