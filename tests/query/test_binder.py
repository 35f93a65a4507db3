"""A query meets the columns of a trace."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from tests.query.dump import dump_bound, dump_typed
from tests.query.golden import Case, cases, compare
from uncertain_cep.errors import QueryError, UncertainCepWarning
from uncertain_cep.query import bind, bind_row_condition, parse, parse_row_condition
from uncertain_cep.query.binder import BoundQuery
from uncertain_cep.query.typed import Column, Kind, format_time, kind_of, parse_time
from uncertain_cep.timeline.domain import Names, TimeDomain

SCHEMA = pa.schema(
    {
        "type": pa.string(),
        "id": pa.int64(),
        "lower": pa.int64(),
        "upper": pa.int64(),
        "pmf": pa.list_(pa.float64()),
        "nodeId": pa.string(),
        "taskId": pa.int32(),
        "value": pa.float64(),
        "failed": pa.bool_(),
        "started": pa.timestamp("ms", "Europe/Berlin"),
        "day": pa.date32(),
        "nothing": pa.null(),
        "tags": pa.list_(pa.string()),
        "CpuUsageRate(%)": pa.float32(),
    }
)
TICKS = TimeDomain.of(SCHEMA)


def bound(text: str, schema: pa.Schema = SCHEMA, names: Names = Names(), **tick: str) -> BoundQuery:  # noqa: B008
    return bind(parse(text), schema, names, TimeDomain.of(schema, names, **tick))


@pytest.mark.parametrize("case", cases("bound.txt"), ids=lambda case: case.name)
def test_bound(case: Case) -> None:
    compare("bound.txt", case, lambda text: dump_bound(bound(text)))


@pytest.mark.parametrize("case", cases("binding_errors.txt"), ids=lambda case: case.name)
def test_binding_error(case: Case) -> None:
    def refusal(text: str) -> str:
        with pytest.raises(QueryError) as caught:
            bound(text)
        return str(caught.value)

    compare("binding_errors.txt", case, refusal)


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        *((integer, "int") for integer in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
        *((integer, "int") for integer in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
        *((number, "float") for number in (pa.float32(), pa.float64())),
        *((number, "float") for number in (pa.decimal128(9, 2), pa.decimal256(40, 2))),
        *((text, "string") for text in (pa.string(), pa.large_string(), pa.string_view())),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.dictionary(pa.int32(), pa.int64()), "int"),
        (pa.bool_(), "bool"),
        *((time, "time") for time in (pa.timestamp("s"), pa.timestamp("ns", "UTC"))),
        *((time, "time") for time in (pa.date32(), pa.date64())),
        (pa.null(), "null"),
        *((other, None) for other in (pa.time32("s"), pa.binary(), pa.binary(16))),
        *((other, None) for other in (pa.list_(pa.int64()), pa.struct({"x": pa.int64()}))),
        (pa.dictionary(pa.int8(), pa.binary()), None),
        # Arrow has kernels for neither.
        (pa.float16(), None),
        (pa.run_end_encoded(pa.int32(), pa.large_string()), None),
    ],
    ids=str,
)
def test_kind_of_every_arrow_type(type_: pa.DataType, kind: Kind | None) -> None:
    assert kind_of(type_) == kind


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1970-01-01", "1970-01-01T00:00:00"),
        ("2024-02-29T12:34", "2024-02-29T12:34:00"),
        ("2024-02-29 12:34:56", "2024-02-29T12:34:56"),
        ("2024-02-29T12:34:56.5", "2024-02-29T12:34:56.5"),
        ("2024-02-29T12:34:56.123456789Z", "2024-02-29T12:34:56.123456789"),
        ("2024-02-29T12:34:56+02:00", "2024-02-29T10:34:56"),
        ("2024-02-29T12:34:56-0330", "2024-02-29T16:04:56"),
        ("2024-02-29t00:34:56+01", "2024-02-28T23:34:56"),
        (" 1969-12-31T23:59:59.999999999 ", "1969-12-31T23:59:59.999999999"),
        ("1678-01-01", "1678-01-01T00:00:00"),
    ],
)
def test_times_are_read_to_the_nanosecond(text: str, shown: str) -> None:
    nanoseconds = parse_time(text)
    assert nanoseconds is not None
    assert format_time(nanoseconds) == shown
    assert parse_time(shown) == nanoseconds


def test_the_epoch_is_zero() -> None:
    assert parse_time("1970-01-01T00:00:00Z") == 0
    assert parse_time("1970-01-02") == 86_400 * 10**9
    assert parse_time("1969-12-31T23:59:59.5") == -5 * 10**8


@pytest.mark.parametrize(
    "text",
    [
        *("", "yesterday", "12:00", "2024-01-01T12", "2024-01-01Z"),
        *("2023-02-29", "2024-13-01", "2024-01-01T25:00", "2024-01-01T12:00+99:00"),
        *("1500-01-01", "2300-01-01", "0000-01-01", "0001-01-01T00:00+01:00"),
    ],
)
def test_what_is_no_time(text: str) -> None:
    assert parse_time(text) is None


@pytest.mark.parametrize(
    ("window", "tick", "ticks"),
    [
        ("15 seconds", "1s", 15),
        ("15 seconds", "100ms", 150),
        ("0.5 s", "100ms", 5),
        ("1.5 hours", "1min", 90),
        ("2 weeks", "1d", 14),
        ("100", "1s", 100),
        ("100 ticks", "1s", 100),
        ("1 day", "24h", 1),
        ("1 ms", "1us", 1_000),
    ],
)
def test_windows_become_ticks(window: str, tick: str, ticks: int) -> None:
    assert bound(f"PATTERN SEQ(ANY a) WITHIN {window}", tick=tick).window == ticks


def test_the_tick_of_timestamps_is_a_microsecond_unless_given() -> None:
    times = pa.schema(
        {"type": pa.string(), "id": pa.string(), "lower": pa.timestamp("us"), "upper": pa.timestamp("us")}
    )
    assert bound("PATTERN SEQ(ANY a) WITHIN 2 ms", times).window == 2_000
    assert bound("PATTERN SEQ(ANY a) WITHIN 2 ms", times, tick="1ms").window == 2
    assert bound("PATTERN SEQ(ANY a) WITHIN 2", times, tick="1ms").window == 2
    with pytest.warns(UncertainCepWarning, match="WITHIN 2 counts ticks of 1us here, which is 2us: write a"):
        assert bound("PATTERN SEQ(ANY a) WITHIN 2", times).window == 2
    (condition,) = bound("PATTERN SEQ(ANY a) WHERE a.lower >= '2024-01-01' WITHIN 2us", times).predicates
    assert dump_typed(condition) == "(greater_equal a.lower:time 1704067200000000000:time):bool"


@pytest.mark.parametrize(
    ("window", "tick", "message"),
    [
        ("1500 ms", "1s", "1500ms is not a whole number of ticks of 1s"),
        ("10 us", "1ms", "10us is not a whole number of ticks of 1ms"),
        ("1 us", "1s", "finer tick"),
        ("1e15 weeks", "1ns", "the window is longer than"),
    ],
)
def test_windows_that_fit_no_ticks(window: str, tick: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        bound(f"PATTERN SEQ(ANY a) WITHIN {window}", tick=tick)


def test_parts_of_an_event_are_found_by_their_usual_names() -> None:
    schema = pa.schema({"kind": pa.string(), "key": pa.int64(), "lo": pa.int64(), "hi": pa.int64()})
    names = Names(type="kind", id="key", lower="lo", upper="hi")
    query = bound(
        "PATTERN SEQ(ANY a) WHERE a.type = a.kind AND a.id < a.upper - a.lower WITHIN 1", schema, names
    )
    assert [dump_typed(predicate) for predicate in query.predicates] == [
        "(equal a.kind:string a.kind:string):bool",
        "(less a.key:int (subtract a.hi:int a.lo:int):int):bool",
    ]


def test_a_column_of_the_usual_name_comes_first() -> None:
    schema = pa.schema({"kind": pa.string(), "type": pa.float64(), "lower": pa.int64(), "upper": pa.int64()})
    query = bound("PATTERN SEQ(ANY a) WHERE a.type > 1 WITHIN 1", schema, Names(type="kind"))
    assert dump_typed(query.predicates[0]) == "(greater a.type:float 1:int):bool"


def test_columns_of_one_name_are_ambiguous() -> None:
    schema = pa.schema([("lower", pa.int64()), ("upper", pa.int64()), ("x", pa.int64()), ("x", pa.string())])
    with pytest.raises(QueryError, match="several columns named x"):
        bound("PATTERN SEQ(ANY a) WHERE a.x = 1 WITHIN 1", schema)


def test_a_wide_trace_is_not_listed_in_full() -> None:
    schema = pa.schema(
        [("lower", pa.int64()), ("upper", pa.int64())] + [(f"c{i}", pa.int64()) for i in range(90)]
    )
    with pytest.raises(QueryError, match=r"the trace has lower, upper, c0, .*, c17 and 72 more"):
        bound("PATTERN SEQ(ANY a) WHERE a.zzz = 1 WITHIN 1", schema)


def test_binding_checks_what_was_never_parsed() -> None:
    query = parse("PATTERN SEQ(A a) WITHIN 1")
    object.__setattr__(query, "window", None)
    with pytest.raises(QueryError, match="WITHIN is missing"):
        bind(query, SCHEMA, Names(), TICKS)


def test_a_bound_query_is_a_value() -> None:
    query = bound("PATTERN SEQ(A a, B b) WHERE a.nodeId = b.nodeId AND [taskId] WITHIN 1 RETURN a, b.value")
    assert pickle.loads(pickle.dumps(query)) == query
    assert hash(query)


def test_row_conditions_name_columns_alone() -> None:
    condition = bind_row_condition(parse_row_condition("nodeId = 'n1' AND `CpuUsageRate(%)` > 95%"), SCHEMA)
    assert dump_typed(condition) == (
        "(and (equal .nodeId:string 'n1':string):bool (greater .CpuUsageRate(%):float 0.95:float):bool):bool"
    )
    assert bind_row_condition(parse_row_condition("failed"), SCHEMA) == Column("", "failed", "bool")


def test_row_conditions_tell_all_their_faults() -> None:
    text = "nodeID = 'n1' AND value > 'high' AND tags = 1"
    with pytest.raises(QueryError) as caught:
        bind_row_condition(parse_row_condition(text), SCHEMA, text=text)
    assert [fault.column for fault in caught.value.faults] == [1, 25, 38]
    assert "did you mean nodeId?" in str(caught.value)
    with pytest.raises(QueryError, match="taskId is a whole number, not a condition"):
        bind_row_condition(parse_row_condition("taskId"), SCHEMA)
