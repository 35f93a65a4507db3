"""Budgets of kernels made small enough for small cases to run out of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from confidence import budget as budgets

__all__ = ["budget"]


@contextmanager
def budget(steps: int | None) -> Iterator[None]:
    """Have kernels come back after so many steps, and after as many multiplications; None: as ever."""
    if steps is None:
        yield
        return
    with (
        patch.object(budgets, "STEPS_PER_CALL", steps),
        patch.object(budgets, "MULTIPLICATIONS_PER_CALL", float(steps)),
    ):
        yield
