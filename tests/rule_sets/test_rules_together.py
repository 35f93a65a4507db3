"""Rules asked together have the answers that each has alone."""

from __future__ import annotations

import warnings
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uncertain_cep as uc

QUERIES: Final = {
    "two": "PATTERN SEQ(A a, B b) WITHIN 8",
    "joined": "PATTERN SEQ(A a, B b) WHERE b.v > a.v WITHIN 8 RETURN a.v AS v",
    "keyed": "PATTERN SEQ(A a, B b, C c) WHERE [k] AND a.v < 3 WITHIN 12 HAVING CONFIDENCE >= 0.3",
    "negated": "PATTERN SEQ(A a, !C n, B b) WHERE n.v > a.v WITHIN 8",
    "absent": "PATTERN SEQ(A a, !B n) WITHIN 4",
    "list": "PATTERN SEQ(A a, B+ b[]) WHERE b[i].v >= b[i-1].v WITHIN 6 RETURN sum(b[].v) AS total",
    "set": "PATTERN AND(A a, D d) WITHIN 5",
    "either": "PATTERN OR(SEQ(A a, B b), SEQ(C c, D d)) WITHIN 6",
    "option": "PATTERN SEQ(A a, B? b, D d) WITHIN 7",
    "next": "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) WITHIN 8",
    "strict": "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) WITHIN 8",
    "any": "PATTERN SEQ(A a, ANY x) WHERE x.v = 2 WITHIN 5",
    "timed": "PATTERN SEQ(A a, C c) WHERE TIME(c) - TIME(a) >= 2 WITHIN 9",
    "best": "PATTERN SEQ(A a, B b) WITHIN 8 ORDER BY CONFIDENCE DESC LIMIT 2",
    "apart": "PATTERN SEQ(A a, B b) WITHIN 8 OUTPUT NON OVERLAPPING",
    "counted": "PATTERN SEQ(A a, B b) WITHIN 8 RETURN EXPECTED COUNT BY k",
    "likely": "PATTERN SEQ(A a, C c) WITHIN 8 RETURN PROBABILITY AS p BY k",
    "one": "PATTERN SEQ(E e) WHERE e.v > 1 WITHIN 3",
}


@st.composite
def traces(draw: st.DrawFn) -> pa.Table:
    """Draw events of few types, some with clocks, in order by sequences, or that may not have happened."""
    count = draw(st.integers(0, 10))

    def column(values: st.SearchStrategy[Any], dtype: pa.DataType) -> pa.Array:
        return pa.array(draw(st.lists(values, min_size=count, max_size=count)), dtype)

    begins = draw(st.lists(st.integers(0, 14), min_size=count, max_size=count))
    ends = [begin + draw(st.integers(0, 4)) for begin in begins]
    columns = {
        "type": column(st.sampled_from("AABBCDE"), pa.string()),
        "id": pa.array(range(count), pa.int64()),
        "lower": pa.array(begins, pa.int64()),
        "upper": pa.array(ends, pa.int64()),
        "v": column(st.integers(0, 4), pa.int64()),
        "k": column(st.sampled_from(["x", "y", None]), pa.string()),
    }  # fmt: skip
    kind = draw(st.sampled_from(["plain", "clocks", "sequence", "doubtful", "dictionary"]))
    if kind == "clocks":
        columns["source"] = column(st.sampled_from(["s", "t", None]), pa.string())
        columns |= {
            "offset_lower": pa.array([-1] * count, pa.int64()),
            "offset_upper": pa.array([1] * count, pa.int64()),
        }
    if kind == "sequence":
        columns |= {"source": pa.array(["s"] * count), "sequence": pa.array(range(count), pa.int64())}
    if kind == "doubtful":
        columns["probability"] = column(st.sampled_from([0.25, 0.5, 1.0, None]), pa.float64())
    if kind == "dictionary":
        columns["type"] = columns["type"].dictionary_encode()
    return pa.table(columns)


def answer(trace: pa.Table, query: str, **options: Any) -> list[tuple[Any, ...]] | str:
    """Return the sorted rows of a query's answer, or the kind of its error."""
    try:
        table = uc.match(trace, query, **options)
    except uc.UncertainCepError as error:
        return type(error).__name__
    return comparable(table)


def comparable(table: pa.Table, *, unpacked: bool = False) -> list[tuple[Any, ...]]:
    """Return rows in an order of their own; lists of one, as other rules make them, as values."""

    def plain(value: Any) -> Any:
        if unpacked and isinstance(value, list):
            (value,) = value
        return round(value, 9) if isinstance(value, float) else value

    return sorted((tuple(map(plain, row.values())) for row in table.to_pylist()), key=repr)


@settings(deadline=None)
@given(
    trace=traces(),
    names=st.lists(st.sampled_from(sorted(QUERIES)), min_size=1, max_size=6, unique=True),
    threads=st.sampled_from([1, 2, 3]),
    end=st.sampled_from([None, 12]),
)
def test_together_as_alone(trace: pa.Table, names: list[str], threads: int, end: int | None) -> None:
    rules = uc.rules({name: QUERIES[name] for name in names})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", uc.UncertainCepWarning)
        alone = {name: answer(trace, QUERIES[name], known_until=end) for name in names}
        errors = {said for said in alone.values() if isinstance(said, str)}
        if errors:
            with pytest.raises(uc.UncertainCepError) as caught:
                uc.match(trace, rules, threads=threads, known_until=end)
            assert type(caught.value).__name__ in errors
            return
        together = uc.match(trace, rules, threads=threads, known_until=end)
    assert together.column_names[0] == "rule"
    for name in names:
        columns = uc.match(trace.slice(0, 0), QUERIES[name]).column_names
        part = together.filter(
            pa.array([rule == name for rule in together.column("rule").to_pylist()], pa.bool_())
        )
        assert comparable(part.select(columns), unpacked=name != "list") == alone[name]
        left = [column for column in together.column_names[1:] if column not in columns]
        assert all(part.column(column).null_count == part.num_rows for column in left)


EVENTS: Final = pa.table(
    {
        "type": ["A", "B", "A", "B"],
        "id": [1, 2, 3, 4],
        "lower": [0, 2, 10, 12],
        "upper": [3, 5, 11, 12],
        "v": [1, 2, 3, 4],
    }
)


def test_frames_are_those_that_were_given() -> None:
    pandas = pytest.importorskip("pandas")
    rules = uc.rules({"two": "PATTERN SEQ(A a, B b) WITHIN 8"})
    frame = uc.match(EVENTS.to_pandas(), rules)
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["rule"]) == ["two", "two"]


def test_faults_of_all_rules_are_told_at_once() -> None:
    rules = uc.rules(
        {
            "x": "PATTERN SEQ(A a, B b) WHERE a.nosuch > 1 WITHIN 8",
            "y": "PATTERN SEQ(A a) WHERE a.w = 1 WITHIN 3",
        }
    )
    with pytest.raises(uc.QueryError) as caught:
        uc.match(EVENTS, rules)
    assert {fault.message.split(":")[0] for fault in caught.value.faults} == {"rule 'x'", "rule 'y'"}


def test_columns_of_one_name_have_values_of_one_kind() -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 8 RETURN {} AS x"
    numbers = uc.rules({"x": query.format("a.v"), "y": query.format("a.v / 2")})
    assert uc.match(EVENTS, numbers).column("x").to_pylist() == [1.0, 3.0, 0.5, 1.5]
    wide = EVENTS.append_column("u", pa.array([2**64 - 1] * EVENTS.num_rows, pa.uint64()))
    both = uc.rules({"x": query.format("a.v"), "y": query.format("a.u")})
    assert uc.match(wide, both).column("x").to_pylist() == [1.0, 3.0, 2.0**64, 2.0**64]
    narrow = EVENTS.append_column("u", EVENTS.column("v").cast(pa.int32()))
    exact = uc.match(narrow, uc.rules({"x": query.format("a.v"), "y": query.format("a.u")})).column("x")
    assert (exact.type, exact.to_pylist()) == (pa.int64(), [1, 3, 1, 3])
    mixed = uc.rules({"x": query.format("a.v"), "y": query.format("UPPER('m')")})
    with pytest.raises(uc.OptionError, match="rules 'x' and 'y' return x as int64 and"):
        uc.match(EVENTS, mixed)


def test_columns_are_not_called_as_that_of_the_names_of_rules() -> None:
    queries = {"a": "PATTERN SEQ(A rule) WITHIN 2", "b": "PATTERN SEQ(A a) WITHIN 2 RETURN a.id AS rule"}
    table = pa.table({"type": ["A"], "id": [1], "lower": [1], "upper": [1]})
    for call in (uc.match, lambda events, rules: uc.validate(events, query=rules)):
        with pytest.raises(uc.OptionError, match=r"(?s)rule 'a' returns a column rule.*rule 'b' returns"):
            call(table, uc.rules(queries))
    with pytest.raises(uc.OptionError, match="rule 'a' returns a column rule"):
        uc.RuleMatcher(uc.rules(queries), table.schema, largest_interval=0)


def test_types_that_no_event_has_are_told_in_one_line() -> None:
    rules = uc.rules({f"r{number}": f"PATTERN SEQ(A a, X{number} x) WITHIN 8" for number in range(9)})
    with pytest.warns(uc.UncertainCepWarning, match="9 types that no event has: X0 \\(rule 'r0'\\)") as said:
        assert uc.match(EVENTS, rules).num_rows == 0
    assert len(said) == 1


def test_limits_hold_for_all_rules_together() -> None:
    rules = uc.rules(dict.fromkeys("xyz", "PATTERN SEQ(A a, B b) WITHIN 20"))
    with pytest.raises(uc.MatchLimitError):
        uc.match(EVENTS, rules, max_matches=7)
    assert uc.match(EVENTS, rules, max_matches=9).num_rows == 9


@pytest.mark.parametrize("option", [{"parameters": {"x": 1}}, {"largest_interval": 3}], ids=str)
def test_options_of_single_queries_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(uc.OptionError, match="rule"):
        uc.match(EVENTS, uc.rules({"x": "PATTERN SEQ(A a, B b) WITHIN 8"}), **option)
