"""Values as codes: whole numbers that kernels compare, group and look up instead of any kind of value."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.budget import checkpoint
from uncertain_cep.expressions.masks import mask_of

__all__ = [
    "Values",
    "bytes_each",
    "codes_of",
    "codes_of_values",
    "decoded",
    "dense",
    "nulls_as_key",
    "paired",
    "places_in",
    "sorted_strings",
]

Int64 = NDArray[np.int64]
ArrowT = TypeVar("ArrowT", pa.Array, pa.ChunkedArray)


@dataclass(frozen=True, slots=True)
class Values:
    """Values (numpy int64, float64 or bool, or Arrow strings) and which of them are not null (None: all)."""

    data: Any
    valid: NDArray[np.bool_] | None

    @property
    def extremes(self) -> tuple[int, int]:
        """The smallest and the largest of whole numbers; 0 of none.

        Of Python's numbers, where one has left int64, bounds beyond it.
        """
        if self.data.dtype == np.object_:
            return -(2**64), 2**64
        return (int(self.data.min()), int(self.data.max())) if len(self.data) else (0, 0)

    def part(self, start: int, stop: int) -> Values:
        """Return rows start..stop-1."""
        return Values(
            self.data.slice(start, stop - start) if isinstance(self.data, pa.Array)
            else self.data[start:stop],
            None if self.valid is None else self.valid[start:stop],
        )  # fmt: skip

    def take(self, rows: NDArray[np.int64]) -> Values:
        """Return the values of some rows."""
        data = self.data.take(pa.array(rows)) if isinstance(self.data, pa.Array) else self.data[rows]
        return Values(data, None if self.valid is None else self.valid[rows])


def bytes_each(column: pa.Array | pa.ChunkedArray) -> int:
    """Return about how many bytes a value takes; of a dictionary, when it stands in place."""
    if pa.types.is_dictionary(column.type) and len(column):
        column = (column.chunk(0) if isinstance(column, pa.ChunkedArray) else column).dictionary
    return int(column.nbytes) // max(len(column), 1)


def decoded(column: ArrowT) -> ArrowT:
    """Return a column with its values in place of those of a dictionary."""
    if not pa.types.is_dictionary(column.type):
        return column
    # Few long texts become many.
    checkpoint(len(column) * bytes_each(column))
    return column.cast(column.type.value_type)


def codes_of(columns: Sequence[pa.ChunkedArray | pa.Array]) -> tuple[list[Int64], int]:
    """Return codes from 0 for the values of columns, equal ones alike across them, and how many there may be.

    Null and NaN, which equal nothing, are -1; -0.0 is 0.0. O(n).
    """
    if all(pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type) for column in columns):
        whole = [column.cast(pa.int64()) for column in columns]
        valid = [None if not part.null_count else mask_of(part.is_valid()) for part in whole]
        filled = [part.fill_null(0) if part.null_count else part for part in whole]
        return codes_of_values(
            [Values(np.asarray(data), there) for data, there in zip(filled, valid, strict=True)]
        )
    if any(pa.types.is_dictionary(column.type) for column in columns):
        return _codes_by_dictionary(columns)
    plain = []
    for column in columns:
        if pa.types.is_null(column.type):
            # There is no dictionary of nothing.
            column = column.cast(pa.string())
        if pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_nan(column), None, pc.add(column, 0.0))
        plain.append(column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column]))
    common = _common_type([column.type for column in plain])
    if not any(map(len, plain)):
        # Arrow does not make a dictionary of no times.
        return [np.zeros(0, dtype=np.int64) for _ in plain], 0
    chunks = [chunk for column in plain for chunk in column.cast(common).chunks]
    encoded = pa.chunked_array(chunks, common).dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    codes = np.asarray(encoded.indices.fill_null(-1)).astype(np.int64)
    return np.split(codes, np.cumsum([len(column) for column in plain])[:-1]), len(encoded.dictionary)


def _common_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """Return the type in which values of several columns are compared: of numbers, one that has all."""
    if all(pa.types.is_integer(each) for each in types):
        return types[0] if len(set(types)) == 1 else pa.int64()
    return next((each for each in types if pa.types.is_floating(each)), types[0])


def _codes_by_dictionary(columns: Sequence[pa.ChunkedArray | pa.Array]) -> tuple[list[Int64], int]:
    """Return `codes_of` columns some of which are dictionaries, whose values are read once each."""
    chunks = [column.chunks if isinstance(column, pa.ChunkedArray) else [column] for column in columns]
    every = [
        decoded(chunk) if pa.types.is_dictionary(chunk.type) and len(chunk) < len(chunk.dictionary) else chunk
        for chunk in itertools.chain.from_iterable(chunks)
    ]
    if not every:
        return [np.zeros(0, dtype=np.int64) for _ in columns], 0
    coded = [pa.types.is_dictionary(chunk.type) for chunk in every]
    values, count = codes_of(
        [chunk.dictionary if by else chunk for chunk, by in zip(every, coded, strict=True)]
    )
    codes_of_chunks = []
    for chunk, by, codes in zip(every, coded, values, strict=True):
        if by and not chunk.null_count:
            codes = codes[np.asarray(chunk.indices)]
        elif by:
            # One place more, the last one, for null.
            codes = np.append(codes, -1)[np.asarray(chunk.indices.cast(pa.int64()).fill_null(-1))]
        codes_of_chunks.append(codes)
    remaining, none = iter(codes_of_chunks), np.zeros(0, dtype=np.int64)
    parts = [list(itertools.islice(remaining, len(part))) for part in chunks]
    return [part[0] if len(part) == 1 else np.concatenate([none, *part]) for part in parts], count


def codes_of_values(values: Sequence[Values]) -> tuple[list[Int64], int]:
    """Return `codes_of` values of one kind; a column of nulls may stand beside text."""
    texts = [part.data for part in values if isinstance(part.data, pa.Array)]
    if texts:
        coded, count = codes_of(texts)
        codes_of_texts = iter(coded)
        nothing = (np.full(len(part.data), -1, dtype=np.int64) for part in values)
        return [
            next(codes_of_texts) if isinstance(part.data, pa.Array) else null
            for part, null in zip(values, nothing, strict=True)
        ], count
    if any(part.data.dtype.kind == "f" for part in values):
        parts, count = codes_of([pa.array(part.data.astype(np.float64)) for part in values])
    else:
        whole = [part.data.astype(np.int64) for part in values]
        lows = [int(part.min()) for part in whole if len(part)]
        low = min(lows, default=0)
        count = max((int(part.max()) for part in whole if len(part)), default=low) - low + 1
        if count <= 4 * sum(map(len, whole)):
            parts = [part - low for part in whole] if low else whole
        else:
            parts, count = dense(whole)
    return [
        part if value.valid is None else np.where(value.valid, part, -1)
        for part, value in zip(parts, values, strict=True)
    ], count


def dense(parts: Sequence[NDArray[Any]]) -> tuple[list[Int64], int]:
    """Return the numbers of some arrays replaced by some of 0..k-1, equal ones alike across them, and k.

    O(n) for n numbers if they are whole, and of 0..4n already; else O(n log n).
    """
    filled = [part for part in parts if len(part)]
    if filled and all(part.dtype == np.int64 for part in filled):
        count = max(int(part.max()) for part in filled) + 1
        if count <= 4 * sum(map(len, parts)) and min(int(part.min()) for part in filled) >= 0:
            return list(parts), count
    distinct, numbers = np.unique(np.concatenate(parts), return_inverse=True)
    ends = np.cumsum([len(part) for part in parts])[:-1]
    return np.split(numbers.astype(np.int64).reshape(-1), ends), len(distinct)


def nulls_as_key(codes: Int64) -> Int64:
    """Return codes in which null and NaN, -1, are one more key.

    It is for what has to agree only with what must not happen: that agrees with null never.
    """
    return np.where(codes < 0, codes.max(initial=0) + 1, codes)


def paired(first: Int64, second: Int64) -> Int64:
    """Return codes of pairs of codes, -1 where either is."""
    # Codes stay below a small multiple of the number of rows, so that the product fits into int64.
    (codes,), _ = dense([first * (int(second.max(initial=0)) + 1) + second])
    return np.where((first < 0) | (second < 0), -1, codes)


def places_in(values: Any, distinct: pa.Array | pa.ChunkedArray) -> Int64:
    """Return where each value stands among the known ones, (n,) int64; -1 for null and what is not known."""
    return np.asarray(pc.index_in(values, distinct).fill_null(-1)).astype(np.int64)


def sorted_strings(parts: Sequence[pa.Array | pa.ChunkedArray]) -> pa.ChunkedArray:
    """Return the distinct strings of some large_string arrays, sorted: their places are their ranks."""
    chunks = [chunk for part in parts for chunk in getattr(part, "chunks", [part])]
    distinct = pa.chunked_array(chunks, pa.large_string()).unique().drop_null()
    return distinct.take(pc.sort_indices(distinct))
