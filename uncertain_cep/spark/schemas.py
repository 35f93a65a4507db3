"""Spark schemas to Arrow schemas and back, without asking a running Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from uncertain_cep.errors import OptionError
from uncertain_cep.timedomain import TICK_METADATA, Names, check_one_tick, check_tick_type

__all__ = [
    "arrow_schema",
    "as_spark_keeps",
    "as_spark_path",
    "column",
    "from_arrow_schema",
    "noted_schema",
]

_TICK: Final = TICK_METADATA.decode()

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
    t.NullType: pa.null(),
}

_FROM_ARROW: Final[tuple[tuple[Callable[[pa.DataType], bool], t.DataType], ...]] = (
    (pa.types.is_boolean, t.BooleanType()),
    (pa.types.is_int8, t.ByteType()),
    (pa.types.is_int16, t.ShortType()),
    (pa.types.is_uint8, t.ShortType()),
    (pa.types.is_int32, t.IntegerType()),
    (pa.types.is_uint16, t.IntegerType()),
    (pa.types.is_integer, t.LongType()),
    (pa.types.is_float16, t.FloatType()),
    (pa.types.is_float32, t.FloatType()),
    (pa.types.is_float64, t.DoubleType()),
    (pa.types.is_string, t.StringType()),
    (pa.types.is_large_string, t.StringType()),
    (pa.types.is_string_view, t.StringType()),
    (pa.types.is_binary, t.BinaryType()),
    (pa.types.is_large_binary, t.BinaryType()),
    (pa.types.is_date, t.DateType()),
    (pa.types.is_null, t.NullType()),
)


def column(name: str) -> Column:
    """Return the column of this very name, whatever characters it holds."""
    return f.col(f"`{name.replace('`', '``')}`")


def as_spark_path(path: Path) -> str:
    """Return a path of this machine for Spark, which would not decode the ``%20`` of a proper URI."""
    return f"file:///{path.absolute().as_posix().lstrip('/')}"


def arrow_schema(frame: DataFrame, names: Names | None = None) -> pa.Schema:
    """Return the Arrow schema in which Spark hands the rows of a frame to Python.

    A tick that `to_intervals` left with the time columns comes along as the schema's metadata. Types that
    no query can use become opaque ones, which say so when a query names them.
    """
    names = names or Names()
    given = frame.schema.fields
    fields = [pa.field(field.name, _arrow_type(field.dataType)) for field in given]
    times = [field.metadata for field in given if field.name in (names.lower, names.upper)]
    tick = next((metadata[_TICK] for metadata in times if _TICK in metadata), None)
    return pa.schema(fields, None if tick is None else {TICK_METADATA: str(tick).encode()})


def noted_schema(frame: DataFrame, names: Names | None = None) -> pa.Schema:
    """Return the schema of `arrow_schema` with the tick in its metadata, asked of an event if need be.

    Raises
    ------
    TraceError
        If what stands in the tick column is none.
    """
    names = names or Names()
    schema = arrow_schema(frame, names)
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
    for known, arrow in _PLAIN.items():
        if isinstance(spark, known):
            return arrow
    return pa.opaque(pa.binary(), type_name=spark.simpleString(), vendor_name="Spark")


def from_arrow_schema(schema: pa.Schema, names: Names | None = None) -> t.StructType:
    """Return the Spark schema that holds rows of an Arrow schema; times are kept in microseconds.

    Parameters
    ----------
    names : Names or None
        Whose time columns keep the tick in the schema's metadata.

    Raises
    ------
    OptionError
        If Spark has no such type.
    """
    tick = (schema.metadata or {}).get(TICK_METADATA)
    fields = []
    for field in schema:
        metadata = None
        if names is not None and tick is not None and field.name in (names.lower, names.upper):
            metadata = {_TICK: tick.decode()}
        fields.append(t.StructField(field.name, _spark_type(field.name, field.type), True, metadata))
    return t.StructType(fields)


def as_spark_keeps(schema: pa.Schema) -> pa.Schema:
    """Return the Arrow schema of the frame that holds rows of a schema.

    Raises
    ------
    OptionError
        As `from_arrow_schema`.
    """
    kept = from_arrow_schema(schema)
    return pa.schema([pa.field(field.name, _arrow_type(field.dataType)) for field in kept.fields])


def _spark_type(name: str, arrow: pa.DataType) -> t.DataType:
    if pa.types.is_dictionary(arrow):
        return _spark_type(name, arrow.value_type)
    if pa.types.is_timestamp(arrow):
        return t.TimestampNTZType() if arrow.tz is None else t.TimestampType()
    if pa.types.is_decimal(arrow):
        return t.DecimalType(arrow.precision, arrow.scale)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return t.ArrayType(_spark_type(name, arrow.value_type), True)
    for holds, spark in _FROM_ARROW:
        if holds(arrow):
            return spark
    raise OptionError(f"column {name!r} has the type {arrow}, which Spark does not have: leave it out")
