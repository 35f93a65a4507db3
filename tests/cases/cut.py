"""Rows and candidates cut into parts for threads however few there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from hypothesis import strategies as st

from uncertain_cep.candidates import parts, selection

__all__ = ["REPEATED", "THREADS", "cut"]

THREADS = st.sampled_from([2, 5])

REPEATED = st.sampled_from([0.0, 1.25, 100.0])
"""What parts may repeat: 0 cuts by key, or shares the owner's events out; 100 cuts by time."""


@contextmanager
def cut(most_repeated: float) -> Iterator[None]:
    """Cut rows and candidates however few there are, these by time unless too many are repeated."""
    with (
        mock.patch.multiple(parts, LEAST_PART=1, MOST_REPEATED=most_repeated),
        mock.patch.multiple(selection, LEAST_LOOKED_AT=1, LEAST_NUMBERS=1, LEAST_GATHERED=1),
    ):
        yield
