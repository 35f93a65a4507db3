"""Which rows a component can take, whatever columns are made of."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from uncertain_cep.candidates.selection import type_mask

_TYPES = st.none() | st.sampled_from(["A", "B", "", "AB"])
_PLAIN = st.sampled_from([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])


def _encoded(rows: list[str | None], words: list[str | None], codes: pa.DataType) -> pa.DictionaryArray:
    """Return texts with a dictionary of these words, in which each has the last of its places."""
    places = {word: place for place, word in enumerate(words)}
    return pa.DictionaryArray.from_arrays(pa.array([places.get(row) for row in rows], codes), pa.array(words))


@given(st.lists(st.lists(_TYPES, max_size=6), max_size=3), st.data())
def test_the_rows_of_a_type(chunks: list[list[str | None]], data: st.DataObject) -> None:
    rows = [row for chunk in chunks for row in chunk]
    wanted = tuple(data.draw(st.lists(st.sampled_from(["A", "AB", "C"]), max_size=2)))
    expected = [row in wanted for row in rows] if wanted else None
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
        mask = type_mask(pa.table({"type": column}), "type", wanted, {})
        assert (None if mask is None else mask.tolist()) == expected


def test_both_places_of_a_word_count() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["A", "B", "A"]))
    mask = type_mask(pa.table({"type": column}), "type", ("A",), {})
    assert mask is not None
    assert mask.tolist() == [True, False, True]
