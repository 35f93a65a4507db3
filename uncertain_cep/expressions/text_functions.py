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


TEXTS: Final[dict[str, Callable[..., Any]]] = {
    "lower": pc.utf8_lower, "upper": pc.utf8_upper, "trim": lambda text: pc.utf8_trim(text, " "),
    "length": pc.utf8_length, "substring": _substring, "replace": _replace, "regexp_extract": _extract,
    "starts_with": _asked(pc.starts_with, str.startswith), "regexp": _matches,
    "contains": _asked(pc.match_substring, lambda text, part: part in text), "like": _like, "ilike": _ilike,
}  # fmt: skip
