"""CSV files whose rows have columns of their own, by the value of one that all have."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from uncertain_cep.config.limits import FAULT_LIMIT
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.bounded import LONGEST_LINE
from uncertain_cep.traces.common_types import is_number
from uncertain_cep.traces.exact_numbers import kept_as_text, marked
from uncertain_cep.traces.faulty_rows import shown

__all__ = ["RaggedColumns", "read_ragged"]

RaggedColumns = tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]
"""A column that all rows have, and for values of it the names of the further columns."""


def read_ragged(
    stream: Any, common: Sequence[str], by: RaggedColumns, delimiter: str, convert: Any, file: Path
) -> pa.Table:
    """Return the rows of a file without a line of names; what a row does not have is null.

    ``convert`` is Arrow's ConvertOptions. A TraceError names rows with another number of values.
    """
    import pyarrow.csv as pacsv

    column, columns_of_values = by
    further = dict(columns_of_values)
    place = list(common).index(column)
    texts: dict[str, io.StringIO] = {}
    rows: dict[str, list[int]] = {}
    writers: dict[str, Any] = {}
    faults: list[TraceFault] = []
    for number, values in enumerate(_rows(stream, delimiter, file)):
        value = values[place] if place < len(values) else ""
        expected = len(common) + len(further.get(value, ()))
        if len(values) != expected and len(faults) < FAULT_LIMIT:
            named = f"of {column} {value!r}" if value in further else f"with a {column} that columns_by lacks"
            message = f"it has {len(values)} values, and rows {named} have {expected}: correct it"
            faults.append(
                TraceFault(message, file=str(file), row=number + 1, value=shown(delimiter.join(values)))
            )
        if value not in writers:
            texts[value] = io.StringIO(newline="")
            writers[value] = csv.writer(texts[value], delimiter=delimiter)
            writers[value].writerow((*common, *further.get(value, ())))
            rows[value] = []
        writers[value].writerow(values)
        rows[value].append(number)
    if faults:
        raise TraceError(faults)

    def read(text: io.StringIO, how: Any) -> pa.Table:
        parse = pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        data = pa.BufferReader(pa.py_buffer(text.getvalue().encode()))
        options = pacsv.ReadOptions(block_size=LONGEST_LINE)
        return pacsv.read_csv(data, read_options=options, parse_options=parse, convert_options=how)

    tables = [read(text, convert) for text in texts.values()]
    tables = _with_exact_numbers(tables, list(texts.values()), read, convert, str(file))
    if not tables:
        return pa.table({name: pa.nulls(0) for name in _names(common, further)})
    try:
        whole = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        message = (
            f"rows of several kinds have values of different types in one column: set it in [types] ({error})"
        )
        raise TraceError(TraceFault(message, file=str(file))) from None
    order = np.argsort(
        np.concatenate([np.array(numbers_of_kind) for numbers_of_kind in rows.values()]), kind="stable"
    )
    return whole.take(pa.array(order))


def _with_exact_numbers(
    tables: list[pa.Table],
    texts: Sequence[io.StringIO],
    read: Callable[[io.StringIO, Any], pa.Table],
    convert: Any,
    file: str,
) -> list[pa.Table]:
    """Return the rows of each kind with columns as text that are so in one of them."""
    import pyarrow.csv as pacsv

    as_text: set[str] = set()
    for place, text in enumerate(texts):
        names = [field.name for field in tables[place].schema if is_number(field.type)]
        how = pacsv.ConvertOptions(
            include_columns=names,
            column_types=dict.fromkeys(names, pa.string()),
            null_values=convert.null_values,
            strings_can_be_null=True,
        )
        again = read(text, how) if names else pa.table({})
        as_text.update(
            name for name in names if kept_as_text(again.column(name), tables[place].column(name), name, file)
        )
    if as_text:
        convert.column_types = {**convert.column_types, **dict.fromkeys(as_text, pa.string())}
        tables = [read(text, convert) for text in texts]
        tables = [
            table.cast(
                pa.schema([marked(field.name) if field.name in as_text else field for field in table.schema])
            )
            for table in tables
        ]
    return tables


def _names(common: Sequence[str], further: Mapping[str, Sequence[str]]) -> list[str]:
    return list(dict.fromkeys((*common, *(name for names in further.values() for name in names))))


def _rows(stream: Any, delimiter: str, file: Path) -> Any:
    text = io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8-sig", newline="")
    try:
        yield from (row for row in csv.reader(text, delimiter=delimiter) if row)
    except UnicodeDecodeError:
        raise TraceError(TraceFault("its text is not UTF-8: convert the file", file=str(file))) from None
