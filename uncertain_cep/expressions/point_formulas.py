"""Compiled conditions taken apart for the point-based framework: what is fixed, and what candidates bring."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confidence.pools import AttributeValues
from confidence.predicates.bytecode import SLOT_BITS, Opcode
from confidence.predicates.conditions import CONSTANT_CELL, NO_VALUES, REAL, Conditions
from pointbased import Formulas

__all__ = ["formulas_of"]

Int64 = NDArray[np.int64]


def formulas_of(conditions: Conditions, count: int) -> tuple[Formulas, AttributeValues]:
    """Return the formulas, and the values that they read of the candidates.

    The conditions are compiled for a layout in which every component has the same ``count`` candidates, from
    place 0 on.
    """
    code, slots, accumulators = (
        conditions.code.copy(),
        conditions.slots.copy(),
        conditions.accumulators.copy(),
    )
    loads_real = np.zeros(len(slots), dtype=np.bool_)
    loads_real[code[code[:, 0] == Opcode.LOAD_F, 1]] = True
    compared = code[code[:, 0] >= Opcode.ARE_EQUAL_F, 1]
    loads_real[compared >> SLOT_BITS] = loads_real[compared & ((1 << SLOT_BITS) - 1)] = True
    loaded = slots[:, 0] != CONSTANT_CELL
    counted = accumulators[:, 3] != NO_VALUES
    # An attribute is known by where its nulls start.
    nulls, first, number = np.unique(
        np.concatenate((slots[loaded, 2], accumulators[counted, 2])), return_index=True, return_inverse=True
    )
    start = np.concatenate((slots[loaded, 1], accumulators[counted, 1]))[first]
    real = np.concatenate((loads_real[loaded], accumulators[counted, 3] == REAL))[first]
    ints, int_values = _apart(conditions.ints, start[~real], count)
    floats, float_values = _apart(conditions.floats, start[real], count)
    fixed_nulls, null_values = _apart(conditions.nulls, nulls, count)

    def moved(places: Int64, starts: Int64) -> Int64:
        return places - count * np.searchsorted(np.sort(starts), places, side="right")

    whole = (Opcode.CONSTANT, Opcode.CONTAINS, Opcode.STARTS_WITH, Opcode.LIKE)
    for opcode, starts in (*((opcode, start[~real]) for opcode in whole), (Opcode.CONSTANT_F, start[real])):
        rows = code[:, 0] == opcode
        code[rows, 1] = moved(code[rows, 1], starts)
    aggregates = conditions.aggregates.copy()
    for is_real, starts in ((False, start[~real]), (True, start[real])):
        rows = aggregates[:, 3] == is_real
        aggregates[rows, 4] = moved(aggregates[rows, 4], starts)
        rows = ~loaded & (loads_real == is_real)
        slots[rows, 1] = moved(slots[rows, 1], starts)
    aggregates[:, 5] = moved(aggregates[:, 5], nulls)
    slots[~loaded, 2] = moved(slots[~loaded, 2], nulls)
    of_slots = np.count_nonzero(loaded)
    slots[loaded, 1] = slots[loaded, 2] = number[:of_slots]
    accumulators[counted, 1] = accumulators[counted, 2] = number[of_slots:]
    fixed = conditions._replace(
        code=code, ints=ints, floats=floats, nulls=fixed_nulls, slots=slots, aggregates=aggregates,
        accumulators=accumulators,
    )  # fmt: skip
    return Formulas(fixed, real), AttributeValues(int_values, float_values, null_values)


def _apart(array: NDArray[Any], starts: Int64, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return an array without the slices of ``count`` elements that start at some places, and those."""
    slices = np.empty((len(starts), count), dtype=array.dtype)
    kept = np.ones(len(array), dtype=np.bool_)
    for taken, start in zip(slices, starts.tolist(), strict=True):
        taken[:] = array[start : start + count]
        kept[start : start + count] = False
    return array[kept], slices
