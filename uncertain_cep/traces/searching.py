"""Groups of expressions found in many texts at once, by automata in place of RE2.

Both find the same. RE2 takes four groups of a simple expression in one pass over a text, and several times as
long for more; an automaton of :mod:`confidence.parsing` takes one pass for any number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from confidence.parsing.text_automata import Automaton
from confidence.parsing.text_programs import UnreadError
from uncertain_cep.running.compiling import compiled_for_reading
from uncertain_cep.traces.cells import cells_of, text_of

__all__ = ["fitting", "searched"]

_MOST_KEPT: Final = 100
_idle: Final[dict[tuple[str, tuple[str, ...]], list[Automaton]]] = {}
"""Automata that no thread uses, with the states that they have made so far."""


def searched(
    text: pa.ChunkedArray, patterns: Mapping[str, Sequence[str]], columns: Collection[str], *, nulls: bool
) -> tuple[dict[str, pa.ChunkedArray], pa.ChunkedArray] | None:
    """Return the groups of the first expression found in each text, and in which texts one is.

    Parameters
    ----------
    text : ChunkedArray of string
    patterns : mapping of str to sequence of str
        The expressions, each with the names of its groups.
    columns : collection of str
        The groups to return.
    nulls : bool
        Whether a group that is empty is null where an expression is found.

    Returns
    -------
    tuple or None
        None if an expression is not read by automata, or kernels are not compiled yet.
    """
    if text.type != pa.string() or not compiled_for_reading():
        return None
    letters, begins, ends = text_of(_one_chunk(text))
    fits = np.zeros(len(begins), np.bool_)
    spans: dict[str, Any] = {}
    for pattern, names in patterns.items():
        names_kept = tuple(name for name in names if name in columns)
        result = _spans(
            pattern, names_kept, letters, np.where(fits, -1, begins) if fits.any() else begins, ends
        )
        if result is None:
            return None
        places, fits_now = result
        for number, name in enumerate(names_kept):
            span = places[2 * number : 2 * number + 2]
            spans[name] = np.where(fits_now, span, spans[name]) if name in spans else span
        fits |= fits_now
        if fits.all():
            break
    groups = {}
    for name in columns:
        first, last = spans[name] if name in spans else np.full((2, len(begins)), -1, np.int64)
        valid = fits & (last > first) if nulls else fits
        begins_of_group = first if valid.all() else np.where(valid, first, -1)
        groups[name] = pa.chunked_array([cells_of(letters, begins_of_group, last, valid)])
    return groups, pa.chunked_array([pa.array(fits)])


def fitting(text: pa.Array, pattern: str) -> Any:
    """Return in which texts an expression is found, (n,) bool, or None as `searched` does."""
    if not compiled_for_reading():
        return None
    result = _spans(pattern, (), *text_of(text))
    return None if result is None else result[1]


def _one_chunk(text: pa.ChunkedArray) -> pa.Array:
    whole = text.chunk(0) if text.num_chunks == 1 else text.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _spans(pattern: str, names: tuple[str, ...], letters: Any, begins: Any, ends: Any) -> Any:
    """Return the spans of `Automaton.find`, or None if the expression is not read."""
    if len(_idle) > _MOST_KEPT:
        _idle.clear()
    idle = _idle.setdefault((pattern, names), [])
    try:
        automaton = idle.pop()
    except IndexError:
        automaton = None
    try:
        automaton = automaton or Automaton(pattern, names)
        result = automaton.find(letters, begins, ends)
    except UnreadError:
        return None
    idle.append(automaton)
    return result
