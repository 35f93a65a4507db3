"""Drops slices of keys before the shuffle, if they lack a component of every match.

These are the necessary match conditions of Cadonna, Gamper and Böhlen (EDBT, section 4.3), for the units that
are matched apart anyway: a key in a slice of time. All events of such a unit are kept or dropped, so that
events that only forbid are kept wherever there may be a match.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from uncertain_cep.config.limits import MOST_BITS
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.spark.dataframes import column
from uncertain_cep.spark.filters import CandidateFilters
from uncertain_cep.spark.frame_statistics import FrameStatistics, packed
from uncertain_cep.spark.slicing import Slices, own_slice

__all__ = ["KeySlices", "choose_key_slices", "pruned"]

_MOST_KEPT: Final = 0.25
"""Share of the slices of keys that may stay for it to be worth another pass over the events."""

ROWS_WORTH_A_PASS: Final = 500_000
"""Fewer candidates are shuffled before another job has found out which of them to drop."""

MOST_BROADCAST: Final = 2_000_000
"""Slices of keys of which each worker holds a table."""


@dataclass(frozen=True, slots=True)
class KeySlices:
    """The condition by which slices of keys are kept."""

    looked_for: tuple[tuple[int, ...], ...]
    """For each OR-free pattern the components of which a slice must hold a candidate."""


def choose_key_slices(
    candidates: CandidateFilters, statistics: FrameStatistics, slices: Slices | None, use_all: bool | None
) -> KeySlices | None:
    """Return the components by which to drop slices of keys; None if that is of no use.

    Slices are dropped if every OR-free pattern has rare components: spread evenly, at most a quarter of the
    slices of keys would have one. Only these components are looked for, so that other events are not read
    again. If ``use_all`` is True, all components are used, whatever the statistics are; if it is False, none.
    """
    if use_all is False or not (candidates.keys or slices is not None):
        return None
    if use_all:
        every = tuple(tuple(range(len(branch))) for branch in candidates.components)
        return KeySlices(every) if sum(map(len, every)) <= MOST_BITS else None
    if statistics.candidates < ROWS_WORTH_A_PASS:
        return None
    count, copies = statistics.keys, 1.0
    if slices is not None:
        count *= slices.count
        copies += (slices.back + slices.reach + statistics.mean_length) / slices.length
    shares = [[copies * occurrences / count for occurrences in branch] for branch in statistics.components]
    if sum(map(min, shares)) > _MOST_KEPT:
        return None
    rare = tuple(tuple(j for j, share in enumerate(branch) if share <= _MOST_KEPT) for branch in shares)
    held = count * sum(shares[b][j] for b, branch in enumerate(rare) for j in branch)
    return KeySlices(rare) if held <= MOST_BROADCAST and sum(map(len, rare)) <= MOST_BITS else None


def pruned(
    rows: DataFrame,
    plan: EvaluationPlan,
    candidates: CandidateFilters,
    slices: Slices | None,
    kept: KeySlices,
) -> DataFrame:
    """Return the rows of the slices of keys in which there may be a match."""
    prefix = "kept"
    while any(name.lower().startswith(prefix) for name in rows.columns):
        prefix += "_"
    parts = [column(name) for name in candidates.keys]
    in_own_slice = None
    if slices is not None:
        parts.append(column(slices.column))
        in_own_slice = own_slice(rows, plan, slices) == column(slices.column)
    names = [f"{prefix}{number}" for number in range(len(parts))]
    masks: list[int] = []
    bits: dict[tuple[int, bool], Column] = {}
    owners = [branch.owner for branch in plan.or_free]
    for owner, branch, looked_for in zip(owners, candidates.components, kept.looked_for, strict=True):
        masks.append(0)
        for j in looked_for:
            # There a match belongs to a slice by the event of this component.
            is_owner = in_own_slice is not None and j == owner
            kind = id(branch[j]), is_owner
            if kind not in bits:
                bits[kind] = branch[j] if in_own_slice is None or not is_owner else branch[j] & in_own_slice
            masks[-1] |= 1 << list(bits).index(kind)
    (bits_column,) = packed(list(bits.values()))
    held = (
        rows.select(
            *(part.alias(name) for part, name in zip(parts, names, strict=True)), bits_column.alias(prefix)
        )
        .filter(f.col(prefix) != 0)
        .groupBy(*names)
        .agg(f.bit_or(prefix).alias(prefix))
        .filter(reduce(or_, (f.col(prefix).bitwiseAND(f.lit(mask)) == mask for mask in dict.fromkeys(masks))))
        .select(*names)
    )
    same = reduce(and_, (part == f.col(name) for part, name in zip(parts, names, strict=True)))
    return rows.join(f.broadcast(held), same, "left_semi")
