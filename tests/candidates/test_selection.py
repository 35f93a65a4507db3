"""Selection of the rows that a component can take, with columns of every kind."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from eventbased import times_of_rows as kernels
from eventbased.bits import count_bits
from eventbased.rows_of_masks import pack_masks, take_rows
from uncertain_cep.candidates import candidate_rows, selection
from uncertain_cep.candidates.candidate_rows import CandidateRows, Spread
from uncertain_cep.candidates.selection import ScanCache, Selection, rows_taken, select, type_mask
from uncertain_cep.config.limits import MAX_TICK
from uncertain_cep.executor import sound_tables
from uncertain_cep.expressions import kernel_calls
from uncertain_cep.expressions.vectorised import column_values
from uncertain_cep.plan import make_plan

_TYPES = st.none() | st.sampled_from(["A", "B", "", "AB"])
_PLAIN = st.sampled_from([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])


def _encoded(rows: list[str | None], words: list[str | None], codes: pa.DataType) -> pa.DictionaryArray:
    """Return texts with a dictionary of these words, in which each has the last of its places."""
    places = {word: place for place, word in enumerate(words)}
    return pa.DictionaryArray.from_arrays(pa.array([places.get(row) for row in rows], codes), pa.array(words))


@given(st.lists(st.lists(_TYPES, max_size=6), max_size=3), st.data())
def test_the_rows_of_a_type(chunks: list[list[str | None]], data: st.DataObject) -> None:
    rows = [row for chunk in chunks for row in chunk]
    types_taken = tuple(data.draw(st.lists(st.sampled_from(["A", "AB", "C"]), max_size=2)))
    expected = [row in types_taken or not types_taken for row in rows]
    dtype = data.draw(_PLAIN)
    plain = pa.chunked_array([pa.array(chunk, dtype) for chunk in chunks], dtype)
    # A dictionary may hold a word twice, null, and words that no row has; a slice may begin anywhere.
    codes = data.draw(st.sampled_from([pa.int8(), pa.uint16(), pa.int64()]))
    words = [*data.draw(st.permutations(["A", "B", "", "AB", "C", None])), "A"]
    encoded = pa.chunked_array(
        [_encoded(["B", *chunk], words, codes).slice(1) for chunk in chunks],
        pa.dictionary(codes, pa.string()),
    )
    for column in (plain, encoded):
        mask = type_mask(pa.table({"type": column}), "type", types_taken, {})
        assert ([True] * len(rows) if mask is None else mask.tolist()) == expected
        assert (mask is None) == all(expected)


def test_both_places_of_a_word_count() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["A", "B", "A"]))
    mask = type_mask(pa.table({"type": column}), "type", ("A",), {})
    assert mask is not None
    assert mask.tolist() == [True, False, True]


_LARGE = st.sampled_from([0, 1, 2**53 + 1, 2**62, -(2**63), 2**63 - 1])
_LARGE_ROWS = st.lists(st.tuples(st.sampled_from("AB"), _LARGE, st.none() | _LARGE), min_size=1, max_size=9)


@given(_LARGE_ROWS, st.integers(2, 5))
def test_ranges_of_rows_are_looked_at_as_all_are(
    rows: list[tuple[str, int, int | None]], threads: int
) -> None:
    """Whether a sum may leave int64 is seen of all rows: what float64 rounds must not depend on threads."""
    types, x, y = zip(*rows, strict=True)
    table = pa.table(
        {"type": pa.array(types, pa.string()), "id": range(len(rows)), "lower": [0] * len(rows),
         "upper": [0] * len(rows), "x": pa.array(x, pa.int64()), "y": pa.array(y, pa.int64())}
    )  # fmt: skip
    query = "PATTERN SEQ(A a, (A|B) b, ANY c, A d) WHERE a.x + a.y > 9 AND b.x - b.y = 1 WITHIN 9"
    plan = make_plan(uc.parse(query), table.schema)
    expected = [rows_taken(plan, table, component).tolist() for component in plan.components]
    with mock.patch.multiple(selection, LEAST_LOOKED_AT=1, LEAST_NUMBERS=1):
        scan = ScanCache(threads)
        for _ in range(2):
            assert [part.tolist() for part in scan.rows_of(plan, table, plan.components)] == expected


def test_each_column_is_read_once() -> None:
    table = pa.table(
        {"type": ["A"] * 9, "id": range(9), "lower": range(9), "upper": range(9), "x": [None, *range(8)]}
    )
    plan = make_plan(
        uc.parse("PATTERN SEQ(A a, A b) WHERE a.x > 3 AND a.id > 1 AND b.x < 3 WITHIN 9"), table.schema
    )
    with (
        mock.patch.multiple(selection, LEAST_LOOKED_AT=1, LEAST_NUMBERS=1),
        mock.patch.object(selection, "column_values", wraps=column_values) as read,
    ):
        ScanCache(4).rows_of(plan, table, plan.components)
    assert sorted(call.args[1] for call in read.call_args_list) == ["id", "x"]


def _plain(kernel: Any) -> Any:
    """Return a kernel as plain Python, which calls others that are."""
    return getattr(kernel, "plain", kernel)


_KERNELS = [_plain(kernels.times_of_rows), kernels.times_of_rows]
_TIMES = st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 9)), min_size=1, max_size=20)


@contextmanager
def _gathered_by_kernel(kernel: Any, block: int) -> Iterator[None]:
    is_compiled = kernel is _KERNELS[1]
    with (
        mock.patch.multiple(kernel_calls, WORTH_A_KERNEL=0, compiles_now=mock.Mock(return_value=True)),
        mock.patch.object(candidate_rows, "times_of_rows", kernel),
        mock.patch.object(candidate_rows, "take_rows", take_rows if is_compiled else _plain(take_rows)),
        mock.patch.object(candidate_rows, "pack_masks", pack_masks if is_compiled else _plain(pack_masks)),
        mock.patch.object(kernels, "_BLOCK", block),
        np.errstate(over="ignore"),
    ):
        yield


@given(st.data(), _TIMES, st.booleans(), st.integers(1, 5), st.sampled_from([None, *_KERNELS]))
def test_times_are_gathered_in_pieces(
    data: st.DataObject, times: list[tuple[int, int]], ascending: bool, threads: int, kernel: Any
) -> None:
    lower, length = np.array(sorted(times) if ascending else times, dtype=np.int64).T
    upper = lower + length
    row_lists = st.lists(st.sampled_from(range(len(times))), unique=True).map(sorted)
    rows = [np.array(data.draw(row_lists), dtype=np.int64) for _ in range(3)]
    block = data.draw(st.integers(1, 5))
    by_kernel = nullcontext() if kernel is None else _gathered_by_kernel(kernel, block)
    with mock.patch.multiple(selection, LEAST_GATHERED=0), by_kernel:
        chosen = ScanCache(threads).selected(lower, upper, rows, None, 1)
    for part, rows_selected, low, high, spread in zip(
        rows, chosen.rows, chosen.lower, chosen.upper, chosen.spreads, strict=True
    ):
        assert rows_selected.tolist() == part.tolist()
        assert low.tolist() == lower[part].tolist()
        assert high.tolist() == upper[part].tolist()
        assert spread == Spread.of(lower[part], upper[part])
        assert spread.ascends == (sorted(low) == low.tolist())
        if len(part):
            assert (spread.earliest, spread.latest) == (low.min(), high.max())
    _lies_together(chosen)


def _lies_together(chosen: Selection) -> None:
    """Assert that a selection holds the same of all components in one array each."""
    concatenated = chosen.concatenated
    for parts_of_column, held in (
        (chosen.rows, concatenated.rows),
        (chosen.lower, concatenated.lower),
        (chosen.upper, concatenated.upper),
    ):
        parts = [
            held[begin:end].tolist() for begin, end in zip(concatenated.begin, concatenated.end, strict=True)
        ]
        assert parts == [part.tolist() for part in parts_of_column]


@given(st.data(), _TIMES, st.sampled_from(_KERNELS), st.integers(-1, 9))
def test_all_rows_are_looked_at_on_the_way(
    data: st.DataObject, times: list[tuple[int, int]], kernel: Any, least: int
) -> None:
    """Of a range of rows, and whatever rows are taken: only an interval of the range may be reversed."""
    lower, length = np.array(times, dtype=np.int64).T
    upper = lower + length + least
    begin = data.draw(st.integers(0, len(times)))
    end = data.draw(st.integers(begin, len(times)))
    rows = [
        np.arange(begin, end)[:: data.draw(st.integers(1, 3))] for _ in range(data.draw(st.integers(0, 2)))
    ]
    with _gathered_by_kernel(kernel, data.draw(st.integers(1, 5))):
        candidates = CandidateRows.of(rows, lower, upper, slice(begin, end))
    assert [part.tolist() for part in candidates.lower] == [lower[part].tolist() for part in rows]
    assert [part.tolist() for part in candidates.upper] == [upper[part].tolist() for part in rows]
    if (lower[begin:end] > upper[begin:end]).any():
        assert candidates.extremes is None
    elif begin < end:
        assert candidates.extremes == (lower[begin:end].min(), upper[begin:end].max())


_MANY = st.sampled_from([0, 1, 7, 8, 63, 64, 65, 127, 128, 130, 200])
"""Rows about as many as words have bits."""


@given(st.data(), _MANY, st.sampled_from([None, *_KERNELS]), st.booleans(), st.booleans())
def test_rows_are_found_by_their_masks(
    data: st.DataObject, count: int, kernel: Any, timed: bool, same: bool
) -> None:
    """Among some rows of a table, wherever these begin, and with ids that ascend or do not."""
    begin = data.draw(st.integers(0, 70))
    behind = data.draw(st.integers(0, 3))
    total = begin + count + behind
    seed = np.random.default_rng(data.draw(st.integers(0, 999)))
    share = data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    masks = [
        [seed.random(count) < share for _ in range(data.draw(st.integers(1, 3)))]
        for _ in range(data.draw(st.integers(0, 3)))
    ]
    if masks and same:
        # What holds of all rows alike.
        masks[0].append(np.broadcast_to(np.True_, count))
    lower = seed.integers(0, 2**40, total)
    upper = lower + seed.integers(0, 9, total)
    ids = np.arange(total) if data.draw(st.booleans()) else np.empty(0, dtype=np.int64)
    for place in data.draw(st.lists(st.integers(0, max(len(ids) - 1, 0)), max_size=2)) if len(ids) else ():
        ids[place] -= 1
    bounds = (lower, upper) if timed else None
    with nullcontext() if kernel is None else _gathered_by_kernel(kernel, data.draw(st.integers(1, 5))):
        candidates, ascend = CandidateRows.where(masks, slice(begin, begin + count), bounds, ids)
    rows = [begin + np.flatnonzero(np.all(masks_of_component, axis=0)) for masks_of_component in masks]
    assert [part.tolist() for part in candidates.rows] == [part.tolist() for part in rows]
    assert ascend == all(one < other for one, other in pairwise(ids[begin : begin + count + 1].tolist()))
    assert timed or not candidates.lower
    if timed:
        assert [part.tolist() for part in candidates.lower] == [lower[part].tolist() for part in rows]
        assert [part.tolist() for part in candidates.upper] == [upper[part].tolist() for part in rows]
        assert candidates.spreads == [Spread.of(lower[part], upper[part]) for part in rows]
        if kernel is not None and count:
            own_range = slice(begin, begin + count)
            assert candidates.extremes == (lower[own_range].min(), upper[own_range].max())


@given(st.integers(0, 2**64 - 1), st.sampled_from([count_bits, _plain(count_bits)]))
def test_the_bits_of_a_word_are_counted(word: int, kernel: Any) -> None:
    with np.errstate(over="ignore"):
        assert kernel(np.uint64(word)) == word.bit_count()


@given(st.data(), _TIMES, st.integers(0, 3), st.integers(1, 4), st.booleans())
def test_times_are_gathered_while_rows_are_looked_up(
    data: st.DataObject, times: list[tuple[int, int]], reversed_: int, threads: int, by_kernel: bool
) -> None:
    """A fault is told as one thread tells it, wherever it is; without one, no time is gathered again."""
    lower, length = np.array(times, dtype=np.int64).T
    upper = lower + length
    for place in data.draw(
        st.lists(st.sampled_from(range(len(times))), min_size=reversed_, max_size=reversed_)
    ):
        upper[place] = lower[place] - data.draw(st.sampled_from([1, -MAX_TICK, -MAX_TICK - 1]))
    count = len(times)
    table = pa.table(
        {"type": ["A"] * count, "id": range(count), "lower": lower, "upper": upper,
         "x": [data.draw(st.integers(0, 3)) for _ in range(count)]}
    )  # fmt: skip
    query = "PATTERN SEQ(A a, A b) WHERE a.x % 2 = 0 WITHIN 9"
    expected = _outcome(table, query, 1)
    kernel = _gathered_by_kernel(_KERNELS[0], 3) if by_kernel else nullcontext()
    looked = mock.patch.multiple(selection, LEAST_LOOKED_AT=1, LEAST_NUMBERS=1)
    worth = mock.patch.object(sound_tables, "WORTH_A_KERNEL", 0)
    first = mock.patch.object(CandidateRows, "where", wraps=CandidateRows.where)
    again = mock.patch.object(CandidateRows, "of", wraps=CandidateRows.of)
    with kernel, looked, worth, first as first_look, again as gathered:
        assert _outcome(table, query, threads) == expected
    if isinstance(expected, list):
        assert first_look.call_count == min(threads, count)
        # Without a kernel, rows are found first and their times then.
        assert gathered.call_count == (0 if by_kernel else min(threads, count))


def _outcome(table: pa.Table, query: str, threads: int) -> list[dict[str, Any]] | str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", uc.UncertainCepWarning)
            matches = uc.match(table, query, threads=threads)
    except uc.TraceError as error:
        return str(error)
    return sorted(matches.to_pylist(), key=repr)


@given(st.data(), _TIMES, st.booleans(), st.booleans())
def test_what_is_known_of_a_stretch_bounds_it(
    data: st.DataObject, times: list[tuple[int, int]], by_kernel: bool, twice: bool
) -> None:
    lower, length = np.array(sorted(times), dtype=np.int64).T
    upper, rows = lower + length, np.arange(len(times))
    begin = data.draw(st.integers(0, len(times) - 1))
    stop = data.draw(st.integers(begin + 1, len(times)))
    with _gathered_by_kernel(_KERNELS[0], 3) if by_kernel else nullcontext():
        stretch = ScanCache().selected(lower, upper, [rows], None, 1).stretch([slice(begin, stop)])
    if twice:
        stretch = stretch.stretch([slice(0, stop - begin)])
    _lies_together(stretch)
    (spread,), exact = stretch.spreads, Spread.of(lower[begin:stop], upper[begin:stop])
    assert stretch.rows[0].tolist() == list(range(begin, stop))
    assert (spread.earliest, spread.ascends) == (exact.earliest, exact.ascends)
    assert exact.latest <= spread.latest <= upper.max()
    assert exact.longest <= spread.longest
    assert spread.latest <= lower[stop - 1] + spread.longest


@given(st.lists(st.integers(0, 9), min_size=2, max_size=12), st.integers(1, 5))
def test_ids_that_are_used_twice_are_found_in_all_ranges(ids: list[int], threads: int) -> None:
    count = len(ids)
    table = pa.table({"type": ["A"] * count, "id": ids, "lower": range(count), "upper": range(count)})
    plan = make_plan(uc.parse("PATTERN SEQ(A a, A b) WITHIN 9"), table.schema)
    times = np.arange(count)
    with mock.patch.multiple(selection, LEAST_LOOKED_AT=1, LEAST_NUMBERS=1):
        scan = ScanCache(threads)
        if len(set(ids)) == count:
            assert select(plan, table, times, times, times, None, scan).sizes == (count, count)
        else:
            with pytest.raises(uc.TraceError):
                select(plan, table, times, times, times, None, scan)
    assert all(scan.ascending_ids) == all(one < other for one, other in pairwise(ids))
