"""Values of the rows of several tables, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

__all__ = ["chained", "form_of"]

ValuesT = TypeVar("ValuesT")


def chained(parts: Sequence[ValuesT]) -> ValuesT:
    """Return the values of all parts in their order; those of all have one form, see `form_of`. O(rows)."""
    first: Any = parts[0]
    each: Any = parts
    whole: Any = None
    if isinstance(first, np.ndarray):
        whole = np.concatenate(each)
    elif isinstance(first, pa.Array):
        whole = pa.concat_arrays(each)
    elif isinstance(first, tuple):
        whole = tuple(chained(values) for values in zip(*each, strict=True))
    elif is_dataclass(first):
        kind: Any = type(first)
        whole = kind(*(chained([getattr(part, field.name) for part in each]) for field in fields(first)))
    return whole  # type: ignore[no-any-return]


def form_of(values: Any) -> Any:
    """Return the form of values: True for an array, False for None, a tuple for tuples and dataclasses."""
    if isinstance(values, tuple):
        return tuple(form_of(value) for value in values)
    if is_dataclass(values):
        return tuple(form_of(getattr(values, field.name)) for field in fields(values))
    return values is not None
