"""Epochs of clocks: the stamps between which a bound of a clock's offset holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from uncertain_cep.errors import OptionError, TraceFault
from uncertain_cep.expressions.codes import codes_of
from uncertain_cep.traces.faulty_rows import IntArray, row_faults
from uncertain_cep.traces.instants import counts_of, stamp_kind

__all__ = ["FIRST", "Epochs", "epoch_faults", "instants", "pair_of", "said", "with_gaps"]

Epochs: TypeAlias = tuple[pa.ChunkedArray, pa.ChunkedArray]
"""The stamps from which on, and until which, bounds hold; null: always."""

FIRST: Final = -(2**63)
"""Before all times."""


def pair_of(epoch: Any) -> tuple[str, ...]:
    """Return the two columns of epochs, or none for None; an OptionError says that these are no pair."""
    if epoch is None:
        return ()
    listed = isinstance(epoch, Sequence) and not isinstance(epoch, str) and len(epoch) == 2
    if not listed or not all(isinstance(name, str) for name in epoch):
        raise OptionError(f'epoch={epoch!r}: give a pair of columns, such as ("from", "until")')
    return tuple(epoch)


def instants(
    values: pa.ChunkedArray, column: str, unit: str | None, none: int, plain: bool | None = None
) -> IntArray:
    """Return stamps as nanoseconds since 1970, or plain numbers, with what stands for null.

    An OptionError says that they are not ``plain`` numbers, or are, if that is known.
    """
    if pa.types.is_null(values.type):
        return np.full(len(values), none)
    kind = stamp_kind(column, values.type, unit)
    if plain is not None and plain != (kind.resolution is None):
        raise OptionError("the epochs of clocks and the stamps must both be times, or both plain numbers")
    counts, present = counts_of(values, column, kind, unit)
    return np.where(present, counts * (kind.resolution or 1), none)


def said(values: pa.ChunkedArray, word: str, none: int) -> list[str]:
    """Return where epochs begin, or end, as names of clocks say it; nothing for null."""
    is_time = stamp_kind(word, values.type, None).resolution is not None
    texts = []
    for instant in instants(values, word, None, none).tolist():
        text = str(np.datetime64(instant, "ns")) if is_time else str(instant)
        text = text.rstrip("0").removesuffix(".") if "." in text else text
        texts.append("" if instant == none else f"{word} {text}")
    return texts


def with_gaps(hosts: pa.Array, epochs: Epochs) -> tuple[IntArray, Epochs]:
    """Return epochs, with those added between epochs of a host, before the first, and behind the last.

    The array, (k,) int64, has the places in ``hosts`` of the hosts that the added ones belong to.
    """
    begin, end = (
        instants(bound, name, None, none)
        for bound, name, none in zip(epochs, ("from", "until"), (FIRST, ~FIRST), strict=True)
    )
    codes = codes_of([hosts])[0][0]
    order = np.lexsort((begin, codes))
    is_first = np.append(True, codes[order][1:] != codes[order][:-1])[: len(order)]
    is_last = np.append(is_first[1:], True)[: len(order)]
    behind = np.append(begin[order][1:], 0)[: len(order)]
    before = order[is_first & (begin[order] != FIRST)]
    after = order[np.where(is_last, end[order] != ~FIRST, end[order] != behind)]
    follower = np.append(order[1:], -1)[: len(order)]
    place_of_follower = np.full(len(order), -1)
    place_of_follower[order] = np.where(is_last, -1, follower)
    # Where a gap begins at the end of an epoch; null for none, by a place that there is not.
    none = len(order)
    starts = np.concatenate([np.full(len(before), none), after])
    ends = np.concatenate([before, place_of_follower[after]])
    both = pa.concat_tables(
        [pa.table({"stamp": column}) for column in epochs], promote_options="permissive"
    ).column("stamp")
    of_from, of_until = both.slice(0, none), both.slice(none)

    def filled(values: pa.ChunkedArray, gaps: pa.ChunkedArray, places: IntArray) -> pa.ChunkedArray:
        taken = gaps.take(pa.array(np.maximum(places, 0), mask=(places < 0) | (places >= none)))
        return pa.chunked_array([*values.chunks, *taken.chunks], both.type)

    return np.concatenate([before, after]), (
        filled(of_from, of_until, starts),
        filled(of_until, of_from, ends),
    )


def epoch_faults(
    rows: pa.Table, codes: IntArray, epoch: tuple[str, ...], hosts: pa.ChunkedArray
) -> list[TraceFault]:
    """Return the faults of epochs: those that end before they begin, or overlap another one of their host."""
    begin, end = (
        instants(rows.column(name), name, None, none)
        for name, none in zip(epoch, (FIRST, ~FIRST), strict=True)
    )
    faults = row_faults(
        begin >= end,
        f"the epoch ends before it begins: see {epoch[1]!r}",
        column=epoch[0],
        values=rows.column(epoch[0]),
    )
    order = np.lexsort((begin, codes))
    overlapping = np.zeros(len(order), np.bool_)
    overlapping[order[1:]] = (codes[order[1:]] == codes[order[:-1]]) & (begin[order[1:]] < end[order[:-1]])
    return faults + row_faults(
        overlapping & (codes >= 0), "this epoch of the host overlaps another", column=epoch[0], values=hosts
    )
