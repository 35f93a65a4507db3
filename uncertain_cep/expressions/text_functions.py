"""Functions of text, by Arrow, whose regular expressions are RE2's."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.query.text_patterns import extracting, like_regex

__all__ = ["TEXTS", "constant_of"]

SEPARATOR: Final = "\x1f"
"""Stands before, between and behind the elements of a list in its text, as kernels know."""

_ESCAPE: Final = "\x1e"


def constant_of(value: Any) -> Any:
    """Return the value of what stands for all rows."""
    if isinstance(value, pa.Scalar):
        return value.as_py()
    return value[0].as_py() if isinstance(value, pa.Array) else np.asarray(value).flat[0].item()


def _asked(plain: Callable[[Any, str], Any], each: Callable[[str, str], bool]) -> Callable[[Any, Any], Any]:
    """Return a test of one text by another, which Arrow does where the other is the same for all rows."""

    def test(text: Any, other: Any) -> Any:
        if isinstance(other, pa.Scalar):
            return plain(text, other.as_py())
        texts = [text.as_py()] * len(other) if isinstance(text, pa.Scalar) else text.to_pylist()
        pairs = zip(texts, other.to_pylist(), strict=True)
        return pa.array([x is not None and y is not None and each(x, y) for x, y in pairs], pa.bool_())

    return test


def _substring(text: Any, start: Any, length: Any = None) -> Any:
    first = constant_of(start)
    count = None if length is None else constant_of(length)
    # From the front the first character is 1, from the back -1; before the front there are none.
    begin = first - 1 if first > 0 else first
    if first == 0:
        begin, count = 0, None if count is None else max(count - 1, 0)
    stop = None if count is None else begin + count
    if stop is not None and begin < 0 <= stop:
        stop = None
    if count == 0:
        begin = stop = 0
    limits = (max(-_LONGEST, min(place, _LONGEST)) for place in (begin, _LONGEST if stop is None else stop))
    return pc.utf8_slice_codeunits(text, *limits)


_LONGEST: Final = 2**40


def _replace(text: Any, old: Any, new: Any) -> Any:
    sought = constant_of(old)
    # Arrow would look for nothing for ever.
    return pc.replace_substring(text, sought, constant_of(new)) if sought else text


def _extract(text: Any, pattern: Any, group: Any = 0) -> Any:
    groups = pc.extract_regex(text, extracting(constant_of(pattern), constant_of(group)))
    return pc.struct_field(groups, [0]).fill_null("")


def _matches(text: Any, pattern: Any) -> Any:
    return pc.match_substring_regex(text, constant_of(pattern))


def _like(text: Any, pattern: Any, escape: Any = None) -> Any:
    if escape is None:
        return _asked(lambda texts, like: pc.match_substring_regex(texts, like_regex(like)), _is_like)(
            text, pattern
        )
    return pc.match_substring_regex(text, like_regex(constant_of(pattern), constant_of(escape)))


def _is_like(text: str, pattern: str) -> bool:
    return _compiled(pattern).match(text) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    # Python has another sign for the end of a text.
    return re.compile(like_regex(pattern).removesuffix("z") + "Z")


def _ilike(text: Any, pattern: Any, escape: Any = None) -> Any:
    regex = like_regex(constant_of(pattern), escape and constant_of(escape), any_case=True)
    return pc.match_substring_regex(pc.utf8_lower(text), regex)


def _texts_of_elements(elements: Any) -> Any:
    """Return elements of lists as texts that are equal where they are; what is equal to nothing is null."""
    if pa.types.is_dictionary(elements.type):
        elements = elements.cast(elements.type.value_type)
    if pa.types.is_decimal(elements.type):
        elements = elements.cast(pa.float64(), safe=False)
    if pa.types.is_floating(elements.type):
        encoded = elements.dictionary_encode()
        values = [None if x is None or x != x else _number(x) for x in encoded.dictionary.to_pylist()]
        return pa.array(values, pa.large_string()).take(encoded.indices)
    texts = elements.cast(pa.large_string())
    if not pa.types.is_integer(elements.type):
        for sign, place in ((_ESCAPE, "0"), (SEPARATOR, "1")):
            texts = pc.replace_substring(texts, sign, _ESCAPE + place)
    return texts


def _number(x: float) -> str:
    """Return a number as text, a whole one as an integer is."""
    return str(int(x)) if x.is_integer() else repr(x)


def _items(lists: Any) -> Any:
    """Return lists as texts: each element between separators. Nulls are no elements."""
    sizes = pc.fill_null(pc.list_value_length(lists), 0)
    elements = _texts_of_elements(pc.list_flatten(lists))
    # Where each list ends among the elements that are kept.
    ends = np.concatenate(([0], np.cumsum(np.asarray(sizes))))
    kept = np.concatenate(([0], np.cumsum(np.asarray(elements.is_valid()))))[ends]
    whole = pa.ListArray.from_arrays(pa.array(kept, pa.int32()), elements.drop_null())
    # Not made at import: to make a scalar loads pandas.
    sign = pa.scalar(SEPARATOR, pa.large_string())
    joined = pc.binary_join(whole, sign)
    return pc.if_else(pa.array(np.diff(kept) > 0), _between_signs(joined), sign)


def _item(values: Any) -> Any:
    """Return values as the texts that lists with them contain."""
    if isinstance(values, pa.Scalar):
        return pa.scalar(_item(pa.array([values.as_py()], pa.large_string()))[0].as_py(), pa.large_string())
    texts = _texts_of_elements(values if isinstance(values, pa.Array) else pa.array(np.asarray(values)))
    return _between_signs(texts)


def _between_signs(texts: Any) -> Any:
    sign, nothing = (pa.scalar(text, pa.large_string()) for text in (SEPARATOR, ""))
    return pc.binary_join_element_wise(sign, texts, sign, nothing)


def _shares(one: str, other: str) -> bool:
    return not {*one.split(SEPARATOR)[1:-1]}.isdisjoint(other.split(SEPARATOR)[1:-1])


def _shared(texts: list[str | None], one: str | None) -> pa.Array:
    return pa.array(
        [text is not None and one is not None and _shares(text, one) for text in texts], pa.bool_()
    )


TEXTS: Final[dict[str, Callable[..., Any]]] = {
    "lower": pc.utf8_lower, "upper": pc.utf8_upper, "trim": lambda text: pc.utf8_trim(text, " "),
    "length": pc.utf8_length, "substring": _substring, "replace": _replace, "regexp_extract": _extract,
    "starts_with": _asked(pc.starts_with, str.startswith), "regexp": _matches,
    "contains": _asked(pc.match_substring, lambda text, part: part in text), "like": _like, "ilike": _ilike,
    "items": _items, "item": _item, "has_item": _asked(pc.match_substring, lambda text, part: part in text),
    "shares": _asked(lambda texts, one: _shared(texts.to_pylist(), one), _shares),
}  # fmt: skip
