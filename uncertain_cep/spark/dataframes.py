"""Frames of Spark: schemas to Arrow and back, time columns in ticks, and the files that a frame reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.lasting import schema_with_all_bounds
from uncertain_cep.spark.python_tasks import spared
from uncertain_cep.timeline.domain import (
    STAMP_METADATA,
    TICK_METADATA,
    Names,
    check_one_tick,
    check_tick_type,
)
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS

__all__ = [
    "arrow_fields",
    "arrow_schema",
    "as_spark_keeps",
    "as_spark_path",
    "column",
    "files_read",
    "from_arrow_schema",
    "in_microseconds",
    "in_ticks",
    "in_workers",
    "noted_files",
    "noted_schema",
    "noted_stamp",
    "noting_files",
    "plainly_named",
    "quotient",
    "whole_numbers",
    "with_span_bounds",
]

_NAMES: Final = Names()
_TICK: Final = TICK_METADATA.decode()
_STAMP: Final = STAMP_METADATA.decode()
_GREATEST: Final = 2**63 - 1

_FILES: Final = "uncertain_cep.files"
"""Key in the metadata of a column that holds the files and folders a frame was read from."""

_PLAIN: Final[dict[type[t.DataType], pa.DataType]] = {
    t.BooleanType: pa.bool_(),
    t.ByteType: pa.int8(),
    t.ShortType: pa.int16(),
    t.IntegerType: pa.int32(),
    t.LongType: pa.int64(),
    t.FloatType: pa.float32(),
    t.DoubleType: pa.float64(),
    t.StringType: pa.string(),
    t.CharType: pa.string(),
    t.VarcharType: pa.string(),
    t.BinaryType: pa.binary(),
    t.DateType: pa.date32(),
    t.TimestampType: pa.timestamp("us", "UTC"),
    t.TimestampNTZType: pa.timestamp("us"),
    t.DayTimeIntervalType: pa.duration("us"),
    t.NullType: pa.null(),
}

_FROM_ARROW: Final[dict[pa.DataType, t.DataType]] = {
    **{arrow: spark() for spark, arrow in _PLAIN.items() if spark not in (t.CharType, t.VarcharType)},
    pa.uint8(): t.ShortType(),
    pa.uint16(): t.IntegerType(),
    pa.uint32(): t.LongType(),
    pa.uint64(): t.LongType(),
    pa.float16(): t.FloatType(),
    pa.large_string(): t.StringType(),
    pa.string_view(): t.StringType(),
    pa.large_binary(): t.BinaryType(),
    pa.date64(): t.DateType(),
}


def column(name: str) -> Column:
    """Return the column of exactly this name, whatever characters it has."""
    return f.col(f"`{name.replace('`', '``')}`")


def in_workers(
    frame: DataFrame,
    task: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: t.StructType | str,
) -> DataFrame:
    """Return the rows that a task, run by Python workers, makes of each partition of a frame."""
    return frame.mapInArrow(partial(spared, task=task), schema)


def plainly_named(frame: DataFrame) -> DataFrame:
    """Return a frame with other names for its columns: Spark hands only columns of plain names to Python."""
    return frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))


def as_spark_path(path: Path) -> str:
    """Return a path of this machine for Spark, which would not decode the ``%20`` of a proper URI."""
    return f"file:///{path.absolute().as_posix().lstrip('/')}"


@public
def arrow_schema(frame: DataFrame, names: Names = _NAMES) -> pa.Schema:
    """Return the Arrow schema in which Spark hands the rows of a frame to Python.

    The metadata of the schema has the tick that `to_intervals` noted with the time columns. Types that no
    query can use become opaque ones; a query that names them is refused.
    """
    spark_fields = frame.schema.fields
    fields = arrow_fields(frame.schema)
    times = [field.metadata for field in spark_fields if field.name in (names.lower, names.upper)]
    tick = next((metadata[_TICK] for metadata in times if _TICK in metadata), None)
    return pa.schema(fields, None if tick is None else {TICK_METADATA: str(tick).encode()})


def arrow_fields(schema: t.StructType) -> list[pa.Field]:
    """Return the fields in which Spark hands columns to Python."""
    return [pa.field(field.name, _arrow_type(field.dataType)) for field in schema.fields]


def whole_numbers(frame: DataFrame, names: Names) -> DataFrame:
    """Return a frame with times as longs, and ids as longs if they were decimals of whole numbers.

    A number beyond 64 bits becomes the nearest one, which is no time, either.
    """
    kinds = {
        field.name: (t.ByteType, t.ShortType, t.IntegerType, t.DecimalType)
        for field in frame.schema
        if field.name in (names.lower, names.upper, *SPAN_COLUMNS)
    } | {names.id: (t.DecimalType,)}
    if not any(_is_whole(field.dataType, kinds.get(field.name, ())) for field in frame.schema):
        return frame
    return frame.select(
        *(
            _as_long(column(field.name)).alias(field.name, metadata=field.metadata)
            if _is_whole(field.dataType, kinds.get(field.name, ()))
            else column(field.name)
            for field in frame.schema
        )
    )


def with_span_bounds(frame: DataFrame, names: Names) -> DataFrame:
    """Return a frame that has all bounds of events that last if it has two pairs, null where it had none."""
    schema = arrow_schema(frame, names)
    missing = [
        field for field in schema_with_all_bounds(schema, names.lower) if field.name not in schema.names
    ]
    added = {field.name: f.lit(None).cast(field.dataType) for field in from_arrow_schema(pa.schema(missing))}
    return frame.withColumns(added) if added else frame


def _as_long(number: Column) -> Column:
    held = f.greatest(f.least(number, f.lit(_GREATEST)), f.lit(-_GREATEST - 1))
    # Both functions ignore null.
    return f.when(number.isNotNull(), held).cast("long")


def _is_whole(dtype: t.DataType, kinds: tuple[type[t.DataType], ...]) -> bool:
    return isinstance(dtype, kinds) and not (isinstance(dtype, t.DecimalType) and dtype.scale)


@public
def noted_schema(frame: DataFrame, names: Names = _NAMES) -> pa.Schema:
    """Return the schema of `arrow_schema` with the tick in its metadata, read from an event if need be.

    Times are those of `whole_numbers`.

    Raises
    ------
    TraceError
        If the tick column holds no tick.
    """
    schema = arrow_schema(whole_numbers(frame, names), names)
    check_tick_type(schema, names)
    noted = dict(schema.metadata or {})
    if TICK_METADATA in noted or names.tick not in schema.names:
        return schema
    if isinstance(frame.schema[names.tick].dataType, t.NullType):
        return schema
    first = frame.select(column(names.tick)).limit(1).collect()
    tick = check_one_tick([row[0] for row in first], names.tick)
    return schema if tick is None else schema.with_metadata({**noted, TICK_METADATA: tick.encode()})


def _arrow_type(spark: t.DataType) -> pa.DataType:
    if isinstance(spark, t.DecimalType):
        return pa.decimal128(spark.precision, spark.scale)
    if isinstance(spark, t.ArrayType):
        return pa.list_(pa.field("element", _arrow_type(spark.elementType), nullable=spark.containsNull))
    for spark_type, arrow in _PLAIN.items():
        if isinstance(spark, spark_type):
            return arrow
    return pa.opaque(pa.binary(), type_name=spark.simpleString(), vendor_name="Spark")


def from_arrow_schema(schema: pa.Schema, names: Names | None = None) -> t.StructType:
    """Return the Spark schema that holds rows of an Arrow schema; times are kept in microseconds.

    With ``names`` the time columns keep the tick in the schema's metadata, and that of raw stamps is noted. A
    type that Spark does not have raises OptionError.
    """
    tick = (schema.metadata or {}).get(TICK_METADATA)
    fields = []
    for field in schema:
        metadata = None
        if names is not None and tick is not None and field.name in (names.lower, names.upper):
            metadata = {_TICK: tick.decode()}
        if names is not None and (schema.metadata or {}).get(STAMP_METADATA) == field.name.encode():
            metadata = {_STAMP: True}
        fields.append(t.StructField(field.name, _spark_type(field.name, field.type), True, metadata))
    return t.StructType(fields)


def as_spark_keeps(schema: pa.Schema) -> pa.Schema:
    """Return the Arrow schema of the frame that holds rows of a schema, see `from_arrow_schema`."""
    kept = from_arrow_schema(schema)
    return pa.schema(arrow_fields(kept))


def _spark_type(name: str, arrow: pa.DataType) -> t.DataType:
    if pa.types.is_dictionary(arrow):
        return _spark_type(name, arrow.value_type)
    if pa.types.is_timestamp(arrow):
        return t.TimestampNTZType() if arrow.tz is None else t.TimestampType()
    if pa.types.is_duration(arrow):
        return t.DayTimeIntervalType()
    if pa.types.is_decimal(arrow):
        return t.DecimalType(arrow.precision, arrow.scale)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return t.ArrayType(_spark_type(name, arrow.value_type), True)
    if isinstance(arrow, pa.BaseExtensionType) and not isinstance(arrow, pa.OpaqueType):
        return _spark_type(name, arrow.storage_type)
    if arrow in _FROM_ARROW:
        return _FROM_ARROW[arrow]
    raise OptionError(f"column {name!r} has the type {arrow}, which Spark does not have: leave it out")


def in_ticks(plan: EvaluationPlan, schema: t.StructType, name: str) -> Column:
    """Return a time column in ticks, as int64."""
    domain = plan.domain
    if domain.unit == "tick":
        return column(name)
    return quotient(in_microseconds(schema, name), domain.tick)


def in_microseconds(schema: t.StructType, name: str) -> Column:
    """Return a column of timestamps in microseconds since 1970, as int64."""
    times = column(name)
    if isinstance(schema[name].dataType, t.TimestampType):
        return f.unix_micros(times)
    # A timestamp without zone counts as UTC; Spark's own conversion would use the session's zone.
    day = f.unix_date(times.cast("date")).cast("long")
    minute = f.hour(times) * 60 + f.minute(times)
    second = (f.extract(f.lit("SECOND"), times) * 1_000_000).cast("long")
    return day * 86_400_000_000 + minute.cast("long") * 60_000_000 + second


def quotient(ticks: Column, divisor: int | Column) -> Column:
    """Return the whole quotient, rounded down."""
    if isinstance(divisor, int) and divisor == 1:
        return ticks
    return f.call_function("div", ticks - f.pmod(ticks, f.lit(divisor)), f.lit(divisor))


def noting_files(frame: DataFrame, paths: Sequence[str]) -> DataFrame:
    """Return a frame whose first column notes which files Python workers read, which Spark cannot know."""
    if not paths:
        return frame
    first = frame.schema.fields[0]
    noted = {**(first.metadata or {}), _FILES: json.dumps(list(paths))}
    # Not withMetadata: it takes dots in a name for fields.
    renewed = column(first.name).alias(first.name, metadata=noted)
    return frame.select(renewed, *(column(field.name) for field in frame.schema.fields[1:]))


def noted_files(frame: DataFrame) -> list[str]:
    """Return the files that `noting_files` noted with a frame, or with one that it is made of."""
    texts = [field.metadata[_FILES] for field in frame.schema.fields if _FILES in (field.metadata or {})]
    return list(dict.fromkeys(path for text in texts for path in json.loads(text)))


def noted_stamp(frame: DataFrame) -> str | None:
    """Return the column of raw stamps that `read_traces` added to a frame, if it did."""
    return next((field.name for field in frame.schema.fields if _STAMP in (field.metadata or {})), None)


def files_read(frame: DataFrame) -> list[tuple[str, str | Path]]:
    """Return the files of a frame for `check_output_place`, as far as Spark or a note tells them."""
    noted: list[tuple[str, str | Path]] = [("the trace", path) for path in noted_files(frame)]
    return noted + [("the file of events", path) for path in frame.inputFiles()]
