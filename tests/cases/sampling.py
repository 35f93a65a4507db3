"""How much is drawn where it is dear, and choices that are drawn again and again, each made once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

from hypothesis import settings
from hypothesis import strategies as st

__all__ = ["FEWER", "sampled_from"]

T = TypeVar("T")

FEWER: Final = settings(max_examples=-(-settings().max_examples // 3))
"""A third of the examples: for each of several ways that a property is asked of, or where one takes long."""


def sampled_from(values: Sequence[T]) -> st.SearchStrategy[T]:
    """Return Hypothesis' strategy of that name, the same one for equal values.

    What counts by identity must be drawn from Hypothesis' own.
    """
    try:
        return _sampled_from(*values)
    except TypeError:
        # They have no hash.
        return st.sampled_from(values)


@lru_cache(maxsize=4096, typed=True)
def _sampled_from(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)
