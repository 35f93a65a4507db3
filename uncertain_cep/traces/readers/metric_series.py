"""The common part of metrics: values at stamps that are a step apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise

__all__ = ["finite", "labelled", "shortest_step"]


def shortest_step(stamps: Iterable[int]) -> int | None:
    """Return the least distance between different stamps, in any order; None if there are not two."""
    return min((after - before for before, after in pairwise(sorted(set(stamps)))), default=None)


def finite(value: float | str | None) -> float | None:
    """Return a value as a number; None for what is no number, or infinite."""
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def labelled(name: str, labels: Mapping[str, str]) -> str:
    """Return the name of a series with its labels."""
    inside = ",".join(f"{label}={value}" for label, value in sorted(labels.items()))
    return f"{name}{{{inside}}}" if inside else name
