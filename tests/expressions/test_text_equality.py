"""Texts that are some text are found, by the kernel and by Arrow, however they lie in memory."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.predicates import texts as kernels
from uncertain_cep.expressions import kernel_calls, text_equality
from uncertain_cep.expressions.text_equality import equal_to, equal_to_each

_PLAIN = getattr(kernels.equal_texts, "py_func", kernels.equal_texts)
"""The kernel as Python: it fails where it would read beyond the end of what there is."""

# Words are of eight bytes, and texts that are alike but for one thing may end in a word of nulls.
_LIKE = st.sampled_from(["a", "b", "\0", "é"])
_TEXTS = st.one_of(
    st.sampled_from(["", "A", "TaskStart", "TaskEnd", "A\0", "€uro"]),
    st.builds(lambda one, times, end: one * times + end, _LIKE, st.integers(0, 18), _LIKE),
)
_ROWS = st.lists(st.none() | _TEXTS, max_size=9)
_TYPES = st.sampled_from([pa.string(), pa.large_string()])


def _tightly(rows: list[str | None], dtype: pa.DataType) -> pa.Array:
    """Return texts behind which there is no memory that Arrow has left free."""
    whole = pa.array(rows, dtype)
    valid, offsets, data = whole.buffers()
    text_buffer = (
        None if data is None else pa.py_buffer(bytes(data)[: sum(len((row or "").encode()) for row in rows)])
    )
    return pa.Array.from_buffers(dtype, len(rows), [valid, offsets, text_buffer])


@given(st.lists(_ROWS, max_size=3), _TYPES, st.integers(0, 2), st.data())
def test_the_kernel_finds_each_of_some_texts(
    chunks: list[list[str | None]], dtype: pa.DataType, begin: int, data: st.DataObject
) -> None:
    rows = [row for chunk in chunks for row in chunk[begin:]]
    candidates = (
        st.sampled_from([row for chunk in chunks for row in chunk if row is not None] or ["A"]) | _TEXTS
    )
    texts = data.draw(st.lists(candidates, min_size=1, max_size=17))
    column = pa.chunked_array([_tightly(chunk, dtype).slice(begin) for chunk in chunks], dtype)
    with (
        mock.patch.object(kernel_calls, "compiles_now", return_value=True),
        mock.patch.object(kernel_calls, "WORTH_A_KERNEL", 0),
        mock.patch.object(text_equality, "EXPRESSION_ROWS", data.draw(st.integers(1, 9))),
        mock.patch.object(
            text_equality, "equal_texts", data.draw(st.sampled_from([_PLAIN, kernels.equal_texts]))
        ),
    ):
        masks = equal_to_each(column, texts)
    expected = [[row == text for row in rows] for text in texts]
    assert [mask.tolist() for mask in masks] == expected
    by_arrow = equal_to_each(column, texts)
    assert [mask.tolist() for mask in by_arrow] == expected


def test_what_does_not_lie_end_to_end_or_is_too_long_is_left_to_arrow() -> None:
    assert text_equality._placed(pa.array(["A", "B"], pa.string_view())) is None
    texts = pa.array(["AB", "C", "D"], pa.large_string())
    with mock.patch.object(text_equality, "_MOST_BYTES", 3):
        assert text_equality._placed(texts) is None
        placed = text_equality._placed(texts.slice(1))
    assert placed is not None
    assert placed[0].tolist() == [0, 1, 2]
    assert bytes(placed[1]) == b"CD"


@pytest.mark.parametrize("dtype", [pa.string(), pa.large_string()])
def test_of_many_rows_the_kernel_looks(dtype: pa.DataType) -> None:
    rows = ["A", "TaskStart", None, "TaskEnd"] * 5
    column = pa.array(rows, dtype)
    with (
        mock.patch.object(kernel_calls, "compiles_now", return_value=True),
        mock.patch.object(kernel_calls, "WORTH_A_KERNEL", len(rows)),
        mock.patch.object(text_equality, "equal_texts", wraps=_PLAIN) as kernel,
    ):
        assert equal_to(column, "TaskStart").tolist() == [row == "TaskStart" for row in rows]
        assert kernel.called
        assert equal_to(column.slice(1), "TaskStart").tolist() == [row == "TaskStart" for row in rows[1:]]
        assert kernel.call_count == 1


@given(
    st.lists(st.tuples(st.sampled_from("ABC"), st.none() | _TEXTS), min_size=1, max_size=12),
    _TYPES,
    st.data(),
)
def test_matches_are_the_same_by_the_kernel(
    rows: list[tuple[str, str | None]], dtype: pa.DataType, data: st.DataObject
) -> None:
    kinds, hosts = zip(*rows, strict=True)
    events = pa.table(
        {"type": pa.array(kinds, dtype), "id": range(len(rows)), "lower": [0] * len(rows),
         "upper": [1] * len(rows), "host": pa.array(hosts, dtype)}
    )  # fmt: skip
    text = data.draw(st.sampled_from([host for host in hosts if host is not None] or ["x"]))
    where = data.draw(
        st.sampled_from(["a.host = $h", "$h = b.host", "NOT a.host = $h", "a.host IN ($h, 'q')"])
    )
    query = f"PATTERN SEQ(A a, (B|C) b) WHERE {where} WITHIN 4"
    expected = uc.match(events, query, parameters={"h": text})
    with (
        mock.patch.object(kernel_calls, "compiles_now", return_value=True),
        mock.patch.object(kernel_calls, "WORTH_A_KERNEL", 0),
    ):
        assert uc.match(events, query, parameters={"h": text}).equals(expected)


@pytest.mark.parametrize("wanted", [0, 7, 8, 9, 16])
def test_nothing_behind_the_last_text_is_read(wanted: int) -> None:
    for size in range(2 * kernels.WORD + 2):
        rows: list[str | None] = ["", "x" * size]
        with (
            mock.patch.object(kernel_calls, "compiles_now", return_value=True),
            mock.patch.object(kernel_calls, "WORTH_A_KERNEL", 0),
            mock.patch.object(text_equality, "equal_texts", _PLAIN),
        ):
            mask = equal_to(_tightly(rows, pa.string()), "x" * wanted)
        assert mask.tolist() == [wanted == 0, wanted == size]


@given(st.integers(0, 2 * kernels.BLOCK + 3), st.integers(0, 99))
@settings(max_examples=20)
def test_texts_of_several_blocks_are_told_apart(rows: int, seed: int) -> None:
    texts = ["A", "B", "TaskStart", "TaskStarted", ""]
    column = [texts[n] for n in np.random.default_rng(seed).integers(0, len(texts), rows)]
    with (
        mock.patch.object(kernel_calls, "compiles_now", return_value=True),
        mock.patch.object(kernel_calls, "WORTH_A_KERNEL", 0),
    ):
        masks = equal_to_each(pa.array(column, pa.string()), texts)
    assert [mask.tolist() for mask in masks] == [[row == text for row in column] for text in texts]
