"""Any match: tables over the ticks of its times, summed one time after the other (variable elimination)."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint, multiplications_per_call
from confidence.gaps.describing import ALL, COSTLY, SPACE
from confidence.timed.forbidden_tables import Others, spans
from confidence.timed.summed_matches import describe_summed
from confidence.timed.tables import tables
from uncertain_cep.config.limits import MOST_CELLS_IN_TABLE
from uncertain_cep.weighers.explicit import ExplicitMatches
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns, MatchPattern
from uncertain_cep.weighers.weigher import WRITTEN_OUT, Declined

__all__ = ["Elimination", "cells_of", "summed_over_ticks"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_FIRST_CELLS: Final = 1 << 14
"""Cells of tables that there is room for at first."""

_ALIKE: Final = 4.0
"""Ticks of a time over those of another one up to which prices take both for as long."""


class Elimination:
    """Sums over the ticks of one time after the other; takes every match, if its tables are small enough."""

    name = "elimination"
    why = "takes any literals and forbidden spans: tables over ticks, summed over one time after the other"
    priced_above = WRITTEN_OUT
    takes_all = True

    def __init__(self, most_steps: float) -> None:
        self._limits = np.array([most_steps, MOST_CELLS_IN_TABLE], dtype=np.float64)

    @classmethod
    def of(cls, pattern: MatchPattern) -> Elimination:
        """Return the weigher for the matches of a pattern."""
        return cls(pattern.limits.most_steps)

    def price(self, model: MatchModel) -> Float64:
        """Return the cells of all tables on the way, (k,) float64."""
        found = np.empty(model.count)
        for part in model.explicit:
            found[part.which] = cells_of(part)
        return found

    def weigh(self, model: MatchModel, out: Columns) -> Declined:
        """Fill the answers of matches; return those whose tables have too many cells."""
        declined: Declined = {}
        for part in model.explicit:
            answers = Columns.empty(len(part.which))
            for place, cells in summed_over_ticks(part, model.wanted, self._limits, answers).items():
                # What the last table took was too many, or the steps of all tables together.
                most_steps, most_cells = self._limits.tolist()
                steps = max(float(cells_of(part)[place]), most_steps)
                price = (cells, most_cells) if cells > most_cells else (steps, most_steps)
                declined[int(part.which[place])] = price
            out.put(part.which, answers)
        return declined


def cells_of(part: ExplicitMatches) -> Float64:
    """Return about how many cells the tables of each match have, (k,) float64."""
    sizes = part.sizes
    scopes, uses = _factors(part)
    cells = np.zeros(len(sizes))
    for scope, count in zip(scopes, uses.T, strict=True):
        if len(scope) > 1:
            cells += count * sizes[:, sorted(scope)].prod(axis=1)
    # Which time is summed over next is decided by sizes up to a factor, so that many matches share it.
    alike = np.round(np.log(sizes) / np.log(_ALIKE))
    kinds, kind = np.unique(np.concatenate((uses > 0, alike), axis=1), axis=0, return_inverse=True)
    for number, own in enumerate(kinds):
        which = np.flatnonzero(kind.ravel() == number)
        some = {scope for scope, is_used in zip(scopes, own.tolist(), strict=False) if is_used}
        for clique in _cliques(some, _ALIKE ** own[len(scopes) :]):
            checkpoint()
            cells[which] += sizes[which][:, sorted(clique)].prod(axis=1)
    return cells


def _factors(part: ExplicitMatches) -> tuple[list[frozenset[int]], Float64]:
    """Return the times that each literal and rule ties, and how often tables of each match are weighed.

    The numbers are (k, f), of what a cell of a table with one uniform event takes.
    """
    times, others = part.times, part.forbidden
    scopes, uses = [], []
    for (i, j), low, high in zip(times.sides.tolist(), times.low.T, times.high.T, strict=True):
        least, most = times.first[:, i] - times.last[:, j], times.last[:, i] - times.first[:, j]
        scopes.append(frozenset((i, j)))
        uses.append(((least < low) | (most > high)).astype(np.float64))
    match = np.repeat(np.arange(len(times.first)), part.spoilers)
    rule_scopes = [
        frozenset(time for time in sides[:count].ravel().tolist() if time >= 0)
        for sides, count in zip(others.sides, others.constraints.tolist(), strict=True)
    ]
    # What several rules forbid, or what has a law of its own, takes a search in each cell.
    several = np.diff(others.rule_start)
    each = np.where((others.offset == -1) & (several == 1), 1.0, 8.0 * several)
    # An event that several rules forbid ties the times of all of them.
    kinds, kind = _rules_together(others)
    for number, rules in enumerate(kinds):
        scopes.append(frozenset[int]().union(*(rule_scopes[rule] for rule in rules)))
        uses.append(np.bincount(match[kind == number], each[kind == number], minlength=len(times.first)))
    return scopes, np.stack(uses, axis=1) if uses else np.zeros((len(times.first), 0))


def _rules_together(others: Others) -> tuple[list[list[int]], Int64]:
    """Return the sets of rules that forbid some event, and for each event, (n,), which of them."""
    if not len(others.lower):
        return [], np.zeros(0, dtype=np.int64)
    # Sums of 64 random bits a rule stand for sets: two of a million differ but for one chance in 10^7.
    bits = np.random.default_rng(len(others.sides)).integers(0, 2**63, len(others.sides), dtype=np.uint64)
    sums = np.add.reduceat(bits[others.rule], others.rule_start[:-1])
    _, event, kind = np.unique(sums, return_index=True, return_inverse=True)
    start, end = others.rule_start[event].tolist(), others.rule_start[event + 1].tolist()
    return [others.rule[begin:stop].tolist() for begin, stop in zip(start, end, strict=True)], kind


def _cliques(scopes: set[frozenset[int]], sizes: Float64) -> list[frozenset[int]]:
    """Return the times of each table on the way, where the cheapest time is always summed over first.

    O(l log l) for scopes of few times, each of which is in few of them; one more factor l for any.
    """
    weight = np.log(sizes).tolist()
    # Each time alone is in no table of several.
    cliques = [frozenset((time,)) for time in range(len(sizes))]
    within: dict[int, set[frozenset[int]]] = {}
    for scope in scopes:
        if len(scope) > 1:
            for time in scope:
                within.setdefault(time, set()).add(scope)

    def priced(time: int) -> tuple[float, int]:
        checkpoint()
        return sum(weight[other] for other in sorted(frozenset[int]().union(*within[time]))), time

    price = {time: priced(time) for time in within}
    cheapest = list(price.values())
    heapify(cheapest)
    while cheapest:
        found = heappop(cheapest)
        time = found[1]
        if price.get(time) != found:
            continue
        clique = frozenset[int]().union(*within[time])
        cliques.append(clique)
        left = clique - {time}
        for scope in within.pop(time):
            for other in scope & left:
                within[other].discard(scope)
        del price[time]
        for other in left:
            if len(left) > 1:
                within[other].add(left)
            if within[other]:
                price[other] = priced(other)
                heappush(cheapest, price[other])
            else:
                del within[other], price[other]
    return cliques


def summed_over_ticks(part: ExplicitMatches, wanted: bool, limits: Float64, out: Columns) -> dict[int, float]:
    """Fill ranges and confidences of matches by sums over their ticks; return those that take too many."""
    times, others = part.times, part.forbidden
    most = int(part.spoilers.max(initial=0))
    rules = int(np.diff(others.rule_start[others.start]).max(initial=0))
    length = times.first.shape[1] + most
    ticks = max(
        int((late - early).max(initial=0))
        for early, late in ((times.first, times.last), (others.lower, others.upper))
    )
    ticks = min(ticks, MOST_CELLS_IN_TABLE) + 2
    number = 2 * length + len(times.sides) + rules + 1
    cells = _FIRST_CELLS
    room = tables(length, number, cells, ticks)
    work = spans(int(np.diff(others.rule_start).max(initial=1)), others.low.shape[1], length)
    first, law = np.empty(length, dtype=np.int64), np.empty(ticks)
    declined: dict[int, float] = {}
    kernel: Any = describe_summed
    done, reason = 0, SPACE
    while reason != ALL:
        checkpoint()
        done, reason, need = kernel(
            times, others, part.pmfs, done, wanted, limits, multiplications_per_call(), room, work, first,
            law, tuple(out[:3]),
        )  # fmt: skip
        if reason == SPACE:
            cells = max(2 * cells, int(need))
            room = tables(length, number, cells, ticks)
        elif reason == COSTLY:
            declined[done] = float(need)
            done += 1
    return declined
