"""Masks of what Arrow says of rows."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from uncertain_cep.expressions.masks import mask_of

_CHUNK = st.tuples(st.lists(st.none() | st.booleans(), max_size=20), st.integers(0, 9), st.integers(0, 9))


@given(st.lists(_CHUNK, max_size=4))
def test_a_mask_is_true_where_something_is(chunks: list[tuple[list[bool | None], int, int]]) -> None:
    # A slice may begin and end anywhere within a byte.
    parts = [
        pa.array([True] * before + rows + [True] * after, pa.bool_()).slice(before, len(rows))
        for rows, before, after in chunks
    ]
    expected = [value is True for rows, _, _ in chunks for value in rows]
    mask = mask_of(pa.chunked_array(parts, pa.bool_()))
    assert mask.tolist() == expected
    # Whoever asked for it may write on it.
    mask[:] = False
    for part, (rows, _, _) in zip(parts, chunks, strict=True):
        assert mask_of(part).tolist() == [value is True for value in rows]
