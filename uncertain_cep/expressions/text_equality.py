"""Equality of the texts of a column with some constants."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.large_arrays import empty
from confidence.predicates.texts import BLOCK, equal_texts, words_of
from uncertain_cep.config.tuning import EXPRESSION_ROWS
from uncertain_cep.expressions.kernel_calls import is_worth_a_kernel, read_only
from uncertain_cep.expressions.masks import mask_of

__all__ = ["equal_to", "equal_to_each"]

Mask = NDArray[np.bool_]

_MOST_BYTES: Final = 2**31 - 1
"""The last place that int32 tells."""


def equal_to(column: pa.Array | pa.ChunkedArray, text: str) -> Mask:
    """Return where a column of texts is some text; false where it is null."""
    return equal_to_each(column, [text])[0]


def equal_to_each(column: pa.Array | pa.ChunkedArray, texts: Sequence[str]) -> list[Mask]:
    """Return for each of some texts where a column, with dictionaries or not, is it; false where it is null.

    O(n) for n rows and each 8 bytes of each text.
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [_in_chunk(chunk, texts) for chunk in chunks if len(chunk)]
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return [np.zeros(0, dtype=np.bool_) for _ in texts]
    return [np.concatenate(masks) for masks in zip(*parts, strict=True)]


def _in_chunk(chunk: pa.Array, texts: Sequence[str]) -> list[Mask]:
    if pa.types.is_dictionary(chunk.type):
        return [_by_code(chunk, text) for text in texts]
    # Arrow takes three to seven nanoseconds a row and text, most where rows are mixed; the kernel one to two.
    placed = _placed(chunk) if is_worth_a_kernel(len(chunk)) else None
    if placed is None:
        return [_by_arrow(chunk, text) for text in texts]
    return _by_word(chunk, *placed, texts)


def _by_arrow(chunk: pa.Array, text: str) -> Mask:
    return mask_of(pc.equal(chunk, pa.scalar(text, pa.string())))


def _by_code(chunk: pa.DictionaryArray, text: str) -> Mask:
    # Arrow would spell out every row first, which takes fifty times as long.
    is_text = _by_arrow(chunk.dictionary, text)
    codes = np.asarray(pc.fill_null(chunk.indices, 0))
    places = np.flatnonzero(is_text)
    mask = codes == places[0] if len(places) == 1 else np.isin(codes, places)
    return mask & mask_of(chunk.is_valid()) if chunk.null_count else mask


def _placed(chunk: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.uint8]] | None:
    """Return where each text begins and the last one ends, (n + 1,), among the bytes of all, (m,).

    None if texts of this type do not lie end to end, or are too long together.
    """
    is_large = pa.types.is_large_string(chunk.type)
    if not is_large and not pa.types.is_string(chunk.type):
        return None
    _, offsets, texts = chunk.buffers()
    data = np.zeros(0, np.uint8) if texts is None else np.frombuffer(texts, np.uint8)
    placed = slice(chunk.offset, chunk.offset + len(chunk) + 1)
    if not is_large:
        return np.frombuffer(offsets, np.int32)[placed], data
    begin = np.frombuffer(offsets, np.int64)[placed]
    first, last = int(begin[0]), int(begin[-1])
    if last - first > _MOST_BYTES:
        return None
    # One layout, so that the kernel is compiled once.
    return (begin - first).astype(np.int32), data[first:last]


def _by_word(
    chunk: pa.Array, begin: NDArray[np.int32], data: NDArray[np.uint8], texts: Sequence[str]
) -> list[Mask]:
    words = _wanted(tuple(texts))
    begin, data = read_only(begin), read_only(data)
    block = np.empty(BLOCK, dtype=np.uint64)
    equal: Mask = empty((len(texts), len(chunk)), np.bool_)
    for start in range(0, len(chunk), EXPRESSION_ROWS):
        checkpoint()
        stop = min(start + EXPRESSION_ROWS, len(chunk))
        equal_texts(start, stop, begin, data, *words, block, equal)
    if chunk.null_count:
        equal &= mask_of(chunk.is_valid())
    return list(equal)


@lru_cache(maxsize=64)
def _wanted(texts: tuple[str, ...]) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int32]]:
    """Return some texts as words, which of their bits are of the texts, and the bytes of each."""
    encoded = [text.encode() for text in texts]
    return *words_of(encoded), np.array([len(text) for text in encoded], dtype=np.int32)
