"""The boundary takes all that callers have; else it raises an error of ours that says what to do."""

from __future__ import annotations

import ast
import datetime as dt
import errno
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

import uncertain_cep as uc
from tests.conftest import ROOT
from uncertain_cep.boundary import guarded, our_error, public
from uncertain_cep.errors import ignoring

QUERY: Final = "PATTERN SEQ(A a, B b) WITHIN 100"
COMPARED: Final = "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 100"
COLUMNS: Final[dict[str, Any]] = {"type": ["A", "B"], "id": [1, 2], "lower": [1, 3], "upper": [2, 5]}


def events(**columns: Any) -> pa.Table:
    return pa.table({**COLUMNS, **columns})


class Capsule:
    """Anything with the Arrow PyCapsule interface."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class Batch:
    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return events().to_batches()[0].__arrow_c_array__(requested_schema)


Derived: Any = type("Derived", (pd.DataFrame,), {"__module__": "geopandas"})

UNFIT: Final[tuple[tuple[str, Callable[[], object]], ...]] = (
    ("path= takes str or Path, not list", lambda: uc.load_schema([])),  # type: ignore[arg-type]
    ("'exact' is no rule", lambda: uc.by_value("x", {"a": "exact"})),  # type: ignore[dict-item]
    ("path= takes str or PathLike or None, not int", lambda: uc.report(events(), QUERY, 5)),  # type: ignore[arg-type]
    ("upper= takes str, not int", lambda: uc.columns("x", 3)),  # type: ignore[arg-type]
    ("pmf= takes str, not list", lambda: uc.histogram(["p"])),  # type: ignore[arg-type]
    ("lower= takes str or None, not float", lambda: uc.histogram("p", 1.5)),  # type: ignore[arg-type]
    ("rules= takes Mapping, not int", lambda: uc.by_value("x", 3)),  # type: ignore[arg-type]
    ("column= takes the name of a column, not Int64Array", lambda: uc.by_value(pa.array([1]), {})),
    ("values of 'x' are compared as texts: write '5'", lambda: uc.by_value("x", {5: uc.exact()})),  # type: ignore[dict-item]
    ("source= takes the name of a column, not list", lambda: uc.window("1s", ["host"])),  # type: ignore[arg-type]
    ("key= takes the name of a column, not list", lambda: uc.clock_offset({"h": (0, 1)}, key=["host"])),  # type: ignore[arg-type]
    ("schema= takes Schema, not NoneType", lambda: uc.IncrementalMatcher(QUERY, None)),
    ("batch_rows= takes int, not str", lambda: uc.iter_matches(events(), QUERY, batch_rows="9")),  # type: ignore[arg-type]
    ("standard error is None", lambda: uc.Approximation(None)),  # type: ignore[arg-type]
    ("seed is None", lambda: uc.Approximation(0.1, None)),  # type: ignore[arg-type]
    ("no valid Unicode", lambda: uc.with_matches(events(), uc.match(events(), QUERY), "\ud800")),
)


@pytest.mark.parametrize(("said", "call"), UNFIT)
def test_arguments_of_another_type(said: str, call: Callable[[], object]) -> None:
    with pytest.raises(uc.OptionError, match=said):
        call()


def test_a_batch_of_any_size() -> None:
    for query in (QUERY, f"{QUERY} ORDER BY CONFIDENCE DESC"):
        assert sum(batch.num_rows for batch in uc.iter_matches(events(), query, batch_rows=2**70)) == 1


FRAMES: Final[tuple[tuple[str, Callable[[], Any]], ...]] = (
    ("batch", lambda: events().to_batches()[0]),
    ("reader", lambda: events().to_reader()),
    ("dataset", lambda: ds.dataset(events())),
    ("scanner", lambda: ds.dataset(events()).scanner()),
    ("capsule", lambda: Capsule(events())),
    ("array capsule", Batch),
    ("polars", lambda: pl.DataFrame(COLUMNS)),
    ("lazy", lambda: pl.DataFrame(COLUMNS).lazy()),
    ("enum", lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("type").cast(pl.Enum(["A", "B"])))),
    ("derived", lambda: Derived(COLUMNS)),
)


@pytest.mark.parametrize("make", [make for _, make in FRAMES], ids=[name for name, _ in FRAMES])
def test_frames_that_are_taken(make: Callable[[], Any]) -> None:
    matches = uc.match(make(), QUERY)
    ids = [matches["a"][0], matches["b"][0]]
    assert [one.as_py() if isinstance(one, pa.Scalar) else one for one in ids] == [1, 2]
    assert sum(batch.num_rows for batch in uc.iter_matches(make(), QUERY)) == 1
    assert "1 estimated" in uc.explain(QUERY, make())
    assert uc.validate(make()) == []


def test_a_duckdb_relation_is_taken() -> None:
    import duckdb

    table = events()
    matches: Any = uc.match(duckdb.arrow(table), QUERY)
    assert matches.num_rows == 1


WHOLE: Final = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.decimal128(10, 0), pa.decimal256(40, 0)),
)


@pytest.mark.parametrize("dtype", WHOLE, ids=str)
def test_times_of_any_exact_type(dtype: pa.DataType) -> None:
    def column(*values: int) -> pa.Array:
        exact = [Decimal(value) for value in values] if pa.types.is_decimal(dtype) else list(values)
        return pa.array(exact, dtype)

    matches = uc.match(events(lower=column(1, 3), upper=column(2, 5), id=column(7, 8)), QUERY)
    plain = uc.match(events(id=[7, 8]), QUERY)
    assert matches.select(["range_lower", "range_upper", "confidence"]).equals(
        plain.select(["range_lower", "range_upper", "confidence"])
    )
    assert matches.column("a").cast(pa.int64()).to_pylist() == [7]


def test_a_time_beyond_int64_is_told() -> None:
    with pytest.raises(uc.TraceError, match=r"row 2, column 'upper', value 18446744073709551615"):
        uc.match(events(upper=pa.array([2, 2**64 - 1], pa.uint64())), QUERY)


TEXTS: Final = (pa.string_view(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()))


@pytest.mark.parametrize("dtype", TEXTS, ids=str)
def test_texts_of_any_layout(dtype: pa.DataType) -> None:
    table = events(
        type=pa.array(["A", "B"]).cast(dtype),
        id=pa.array(["x", "y"]).cast(dtype),
        k=pa.array(["k", "k"]).cast(dtype),
    )
    matches = uc.match(table, "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 100 RETURN a.k AS k1")
    assert [matches["a"][0].as_py(), matches["k1"][0].as_py()] == ["x", "k"]


@pytest.mark.parametrize(
    "tick", ["1s", dt.timedelta(seconds=1), pd.Timedelta("1s"), np.timedelta64(1, "s")], ids=repr
)
def test_lengths_as_text_and_as_timedelta(tick: Any) -> None:
    assert uc.match(events(), "PATTERN SEQ(A a, B b) WITHIN 100 seconds", tick=tick).num_rows == 1
    stamped = pa.table({"type": ["A"], "id": [1], "ts": pa.array([10], pa.timestamp("s"))})
    made = [
        uc.to_intervals(stamped, time="ts", uncertainty=rule, tick=tick, names={"lower": "begin"})
        for rule in (uc.plus_minus(tick), uc.plus_minus("1s"), "plus_minus:1s")
    ]
    assert made[0] == made[1] == made[2]
    assert [made[0]["begin"][0].as_py().second, made[0]["tick"][0].as_py()] == [9, "1s"]


@pytest.mark.parametrize("dtype", WHOLE, ids=str)
def test_stamps_of_any_exact_type(dtype: pa.DataType) -> None:
    def made(stamps: pa.Array) -> pa.Table:
        table = pa.table({"type": ["A", "B"], "id": [1, 2], "at": stamps})
        return uc.to_intervals(table, time="at", uncertainty="plus_minus:1s", unit="s", tick="1s")

    stamps = pa.array([5, None, 7]).drop_null()
    exact = pa.array([Decimal(5), Decimal(7)], dtype) if pa.types.is_decimal(dtype) else stamps.cast(dtype)
    assert made(exact).drop(["at"]) == made(stamps).drop(["at"])


def test_files_with_times_and_ids_of_any_exact_type(tmp_path: Path) -> None:
    file = tmp_path / "trace.parquet"
    for dtype in WHOLE:
        if pa.types.is_decimal256(dtype):
            continue
        numbers = {
            name: events()[name].cast(pa.decimal128(19, 0)).cast(dtype) for name in ("id", "lower", "upper")
        }
        pq.write_table(events(type=pa.array(["A", "B"], pa.string_view()), **numbers), file)
        assert uc.read_traces(file).equals(events().replace_schema_metadata(None)), dtype


def calls(frame: Callable[[], Any], **options: Any) -> Iterator[Any]:
    """Yield the result of every function for a frame."""
    tick = {name: value for name, value in options.items() if name == "tick"}
    names = {name: value for name, value in options.items() if name == "names"}
    yield uc.match(frame(), QUERY, **options)
    yield list(uc.iter_matches(frame(), QUERY, **options))
    yield uc.explain(QUERY, frame(), **options)
    column_names = {"lower": "from", "upper": "to"}
    yield uc.to_intervals(
        frame(), time="upper", uncertainty="plus_minus:1s", unit="s", tick="1s", names=column_names
    )
    yield uc.with_matches(frame(), uc.match(frame(), QUERY, **options), "C", **names)
    yield uc.to_events(uc.match(frame(), QUERY, **options), "C", **names)
    yield uc.IncrementalMatcher(QUERY, renamed(names).schema, **options).push(frame())
    yield uc.validate(frame(), **tick)


def renamed(options: dict[str, Any]) -> pa.Table:
    names = options.get("names", {})
    return events().rename_columns([names.get(name, name) for name in COLUMNS])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"names": {"lower": "begin"}},
        {"tick": dt.timedelta(seconds=1)},
        {"names": {"id": "n"}, "tick": "1s"},
    ],
)
def test_every_function_takes_lazy_frames_names_and_ticks(options: dict[str, Any]) -> None:
    table = renamed(options)
    lazy = list(calls(lambda: pl.DataFrame(table).lazy(), **options))
    plain = list(calls(lambda: table, **options))
    assert lazy[0].to_dicts() == plain[0].to_pylist()
    assert lazy[3].shape == plain[3].shape
    assert lazy[4].shape == plain[4].shape
    assert [*lazy[1], lazy[2]] == [*plain[1], plain[2]]
    assert [fault.message for fault in lazy[7]] == [fault.message for fault in plain[7]]
    assert bool(lazy[7]) == ("names" in options)


def ask(frame: Any, query: Any = QUERY, **options: Any) -> Any:
    return uc.match(frame, query, **options)


def pandas(**columns: Any) -> Any:
    return pd.DataFrame(COLUMNS).assign(**columns)


def run_end_encoded(values: list[Any]) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), values)


def twice() -> pa.Table:
    return pa.Table.from_arrays([*events().columns, events()["id"]], [*COLUMNS, "lower"])


HALVES = np.array([1, 2], np.float16)
SURROGATE = "PATTERN SEQ(A a) WHERE a.x = '\ud800'"
INT128 = pl.col("lower").cast(pl.Int128)


def test_intervals_of_every_kind_of_frame() -> None:
    rows = {"type": ["A"], "at": [10]}
    for frame in (
        *(
            pa.table(rows),
            pa.table(rows).to_batches()[0],
            pa.table(rows).to_reader(),
            ds.dataset(pa.table(rows)),
        ),
        *(Capsule(pa.table(rows)), pd.DataFrame(rows), pl.DataFrame(rows), pl.DataFrame(rows).lazy()),
    ):
        made: Any = uc.to_intervals(frame, time="at", uncertainty=uc.plus_minus(2))
        bounds = [made[name][0] for name in ("lower", "upper")]
        assert [one.as_py() if isinstance(one, pa.Scalar) else one for one in bounds] == [8, 12]


REFUSED: Final[dict[str, tuple[Callable[[], Any], str]]] = {
    "no id": (
        lambda: ask(events().drop(["id"])),
        r"column 'id': there is no such column.*Number the events.*names=\{.id",
    ),
    "no type": (
        lambda: ask(events().drop(["type"])),
        r"column 'type': there is no such column.*Say of each event which type.*names=\{.type",
    ),
    "tick 100": (lambda: ask(events(), tick=100), "tick 100 is not a length of time"),
    "long tick": (lambda: ask(events(), tick="99999w"), "less than 292 years"),
    "no query": (lambda: ask(events(), None), "a query is text"),
    "bytes": (lambda: ask(events(), b"PATTERN"), "a query is text"),
    "list": (lambda: ask(events(), ["PATTERN"]), "a query is text"),
    "surrogate": (lambda: uc.parse(SURROGATE), r"line 1, column 31: '.ud800' is half"),
    "pandas twice": (
        lambda: ask(pd.concat([pandas(), pandas()], axis=1)),
        "there are several columns of this",
    ),
    "Arrow twice": (lambda: ask(twice()), "column 'lower': there are several columns of this name"),
    "float16 time": (
        lambda: ask(events(lower=HALVES, upper=HALVES)),
        "'lower': its type is halffloat",
    ),
    "float16 attribute": (lambda: ask(events(x=HALVES), COMPARED), "halffloat"),
    "sparse": (
        lambda: ask(pandas(x=pd.arrays.SparseArray([1, 2])), COMPARED),
        "'x': Arrow has no Sparse",
    ),
    "complex": (lambda: ask(pandas(x=[1j, 2j])), "column 'x': Arrow has no complex128"),
    "mixed": (lambda: ask(pandas(type=["A", 3])), "column 'type': it holds values of different types"),
    "Int128": (
        lambda: ask(pl.DataFrame(COLUMNS).with_columns(INT128)),
        "'lower': Arrow has no Int128",
    ),
    "Series": (lambda: ask(pd.Series([1])), "a Series is no frame of rows"),
    "Polars Series": (lambda: ask(pl.Series([1])), "a Series is no frame of rows"),
    "nothing": (lambda: ask(None), "a NoneType is no frame of rows"),
    "a dict": (lambda: ask(COLUMNS), "a dict is no frame of rows"),
    "a file": (lambda: ask("events.csv"), "a str is no frame of rows: read_traces makes one"),
    "a path": (lambda: ask(Path("events.csv")), "a PosixPath is no frame of rows: read_traces makes one"),
    "no such stamps": (
        lambda: uc.to_intervals(pandas(), time="at", uncertainty="exact"),
        "column 'at': there is no such column; the trace has type, id",
    ),
    "no such stamps in Polars": (
        lambda: uc.to_intervals(pl.DataFrame({"a": [1], "b": [2]}), time="at", uncertainty="exact"),
        "column 'at': there is no such column; the trace has a, b",
    ),
    "times as text": (
        lambda: ask(pandas().astype({"lower": str, "upper": str})),
        r'ticks or timestamps: have to_intervals make them, with uncertainty=columns."lower", "upper".',
    ),
    "missing id": (lambda: ask(pandas().astype({"id": float})), 'astype."Int64".'),
    "no kind of uncertainty": (
        lambda: intervals("15s"),
        'not .15s.; its values stand behind a colon, such as "',
    ),
    "no length": (lambda: intervals("window"), "uncertainty='window': length is missing: .* as in"),
    "names 5": (lambda: ask(events(), names=5), "names=5: it maps parts of the model"),
    "names of no text": (lambda: ask(events(), names={"id": 5}), "the column of id is 5"),
    "confidence": (lambda: ask(events(), confidence="no"), "confidence='no'"),
    "max_matches": (lambda: ask(events(), max_matches=-1), "max_matches=-1"),
    "memory": (lambda: ask(events(), memory_limit="much"), "memory_limit='much': it must be a size"),
    "kind of rule": (lambda: intervals("about:1s"), "uncertainty"),
    "length of rule": (lambda: intervals("plus_minus:long"), "uncertainty"),
    "Series of stamps": (
        lambda: uc.to_intervals(pd.Series([1]), uncertainty="exact", time="at"),
        "a Series is no",
    ),
    "no rule": (lambda: intervals(5), "uncertainty=5: write a rule"),
    "no path": (lambda: uc.read_traces(Decimal(5)), "paths="),  # type: ignore[arg-type]
}


def intervals(rule: Any) -> Any:
    return uc.to_intervals(events(), time="lower", uncertainty=rule)


@pytest.mark.parametrize(("call", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_and_how(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(uc.UncertainCepError, match=said) as raised:
        call()
    assert not isinstance(raised.value, uc.InternalError)


def test_run_end_encoded_columns_are_those_that_they_stand_for() -> None:
    plain = events(x=[1, 2])
    encoded = events(type=run_end_encoded(plain["type"].to_pylist()), x=run_end_encoded([1, 2]))
    for query in (QUERY, COMPARED):
        assert ask(encoded, query).equals(ask(plain, query))
    assert ask(encoded).num_rows


@pytest.mark.parametrize(("number", "unit"), [(2**62, "s"), (-(2**62), "s"), (2**62, "us")])
def test_stamps_out_of_range_are_told(number: int, unit: str) -> None:
    far = pa.array([number, number], pa.int64()).cast(pa.timestamp(unit))
    with pytest.raises(uc.TraceError, match=f"row 1, column 'lower', value {number} {unit}: beyond"):
        uc.match(events(lower=far, upper=far), f"{QUERY} seconds")


PanicException: Any = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (pa.ArrowInvalid("bad"), uc.TraceError),
        (OverflowError("too large"), uc.TraceError),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), uc.OptionError),
        (pl.exceptions.ComputeError("bad"), uc.TraceError),
        (FileNotFoundError(2, "No such file", "x.csv"), uc.TraceError),
        (ModuleNotFoundError("No module named 'polars'"), uc.RuntimeEnvironmentError),
        (RecursionError("deep"), uc.OptionError),
        (MemoryError(), uc.MemoryLimitError),
        (pa.ArrowMemoryError("malloc of size 8 failed"), uc.MemoryLimitError),
        (OSError(errno.ENOMEM, "Cannot allocate memory", "x.parquet"), uc.MemoryLimitError),
        (KeyError("x"), uc.InternalError),
        (PanicException("a decimal of no width"), uc.TraceError),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_foreign_errors_become_ours(error: BaseException, kind: type[uc.UncertainCepError]) -> None:
    @public
    def fail() -> None:
        raise error

    with pytest.raises(kind) as raised:
        fail()
    assert type(raised.value) is kind
    assert raised.value.__cause__ is error
    assert str(our_error(error)) == str(raised.value)

    def items() -> Iterator[int]:
        yield 1
        raise error

    items_seen = guarded(items())
    assert next(items_seen) == 1
    with pytest.raises(kind):
        next(items_seen)


def test_out_of_memory_says_what_to_do() -> None:
    """NumPy raises it here as it does in the middle of a match."""

    @public
    def fail() -> object:
        return np.empty(2**60, dtype=np.int8)

    said = r"\(Unable to allocate 1\.00 EiB .* Ask for less"
    with pytest.raises(uc.MemoryLimitError, match=said) as raised:
        fail()
    assert isinstance(raised.value, MemoryError)
    assert raised.value.limit is None
    assert raised.value.held > 2**20


def _takes_memory_errors(handler: ast.ExceptHandler, names: Mapping[str, ast.expr]) -> bool:
    """Return whether a handler takes errors of Arrow, those of memory among them."""
    kinds = [] if handler.type is None else [handler.type]
    while any(isinstance(kind, ast.Name) and kind.id in names for kind in kinds):
        kinds = [names.get(kind.id, kind) if isinstance(kind, ast.Name) else kind for kind in kinds]
    return _names_all_of_arrow(kinds)


def _names_all_of_arrow(kinds: Sequence[ast.expr]) -> bool:
    parts = [part for kind in kinds for part in ast.walk(kind)]
    return any(isinstance(part, ast.Attribute) and part.attr == "ArrowException" for part in parts)


def _name(expression: ast.expr | None) -> str:
    return expression.id if isinstance(expression, ast.Name) else ""


def _unguarded(file: Path) -> Iterator[str]:
    """Yield the places where a file takes errors of Arrow without leaving out those of memory."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = {
        part.target.id: part.value
        for part in tree.body
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and part.value is not None
    }
    for part in ast.walk(tree):
        if isinstance(part, ast.Call) and _name(part.func) == "suppress" and _names_all_of_arrow(part.args):
            yield f"{file}:{part.lineno}"
        if isinstance(part, ast.Try):
            before = [_name(handler.type) for handler in part.handlers]
            for number, handler in enumerate(part.handlers):
                if _takes_memory_errors(handler, names) and "MemoryError" not in before[:number]:
                    yield f"{file}:{handler.lineno}"


def test_no_memory_error_of_arrow_is_taken_for_a_fault_of_the_data(tmp_path: Path) -> None:
    """An ArrowMemoryError is an ArrowException: a file would be called damaged, or a column made text."""
    files = sorted((ROOT / "uncertain_cep").rglob("*.py"))
    assert [place for file in files for place in _unguarded(file)] == []
    wrong = tmp_path / "wrong.py"
    wrong.write_text("KINDS: Final = (pa.ArrowException, OSError)\ntry:\n    pass\nexcept KINDS:\n    pass\n")
    assert list(_unguarded(wrong)) == [f"{wrong}:4"]
    wrong.write_text("with suppress(OSError, pa.ArrowException):\n    pass\n")
    assert list(_unguarded(wrong)) == [f"{wrong}:1"]


def test_what_spark_says_comes_without_the_frames_of_java() -> None:
    said = (
        "An error occurred while calling o348.getResult.\n: org.apache.spark.SparkException: Job aborted\n"
        "\tat org.apache.spark.util.ThreadUtils$.awaitResult(ThreadUtils.scala:359)\n"
        "\tat java.base/jdk.internal.reflect.NativeMethodAccessorImpl.invoke0(Native Method)\n"
        "\t... 12 more\n\nDriver stacktrace:\nCaused by: java.io.IOException: disk full\n"
        "\tat java.base/java.lang.Thread.run(Thread.java:840)\nCaused by: java.io.IOException: disk full"
    )
    assert str(our_error(PySparkException(said))) == (
        "Spark: An error occurred while calling o348.getResult.; : org.apache.spark.SparkException: Job "
        "aborted; Caused by: java.io.IOException: disk full"
    )


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), UserWarning("w"), uc.OptionError("ours"), uc.MemoryLimitError(2, 3)]
)
def test_what_passes(error: BaseException) -> None:
    @public
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        fail()
    assert raised.value is error


def test_a_call_that_does_not_fit_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'ticks'"):
        uc.iter_matches(events(), QUERY, ticks="1s")  # type: ignore[call-arg]


def test_a_warning_made_an_error_is_that_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(uc.UncertainCepWarning):
            uc.match(events(type=["X", "Y"]), QUERY)


@pytest.mark.parametrize(
    "error", [MemoryError(), pa.ArrowMemoryError("malloc"), KeyboardInterrupt(), TypeError()]
)
def test_what_must_not_be_ignored_goes_on(error: BaseException) -> None:
    with pytest.raises(type(error)), ignoring(pa.ArrowException, OSError):
        raise error


@pytest.mark.parametrize("error", [pa.ArrowInvalid("cell"), FileNotFoundError()])
def test_errors_of_the_kinds_are_ignored(error: Exception) -> None:
    with ignoring(pa.ArrowException, OSError):
        raise error
