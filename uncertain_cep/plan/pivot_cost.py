"""What the join without a tree costs: pivoted on the component whose event ends first.

It binds the component p that attains min B first, then those before it, backwards, then those behind, and
only what order and window let be completed, see :mod:`eventbased.query_order`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.plan.cardinality import mask_of
from uncertain_cep.plan.costs import PIVOTED, CostModel

__all__ = ["pivot_cost"]

Float = NDArray[np.float64]
Int64 = NDArray[np.int64]


def pivot_cost(model: CostModel) -> float:
    """Return what the pivot join is expected to cost, ns. O(l^3).

    Every partial match of a tree is looked at whatever its future; here only those whose minimum is at the
    pivot, and which some candidates of each other component can complete in time.
    """
    length = model.length
    singles = np.left_shift(np.int64(1), np.arange(length))
    # Every set that is bound at some step is a run of components: all are estimated at once.
    runs = np.array(
        [sum(singles[i : j + 1]) for i in range(length) for j in range(i, length)], dtype=np.int64
    )
    model.numbers((runs[:, None] | np.concatenate(([0], singles))[None, :]).reshape(-1))
    one = model.numbers(singles)[2]
    stated = {int(mask): _stated(model, int(mask)) for mask in runs}
    cost = PIVOTED.candidate * model.candidates
    needs = {mask_of(part.components) for part in model.statistics.predicates}
    for p in range(length):
        order = [p, *range(p - 1, -1, -1), *range(p + 1, length)]
        bound = np.cumsum(singles[order])
        feasible, equal, matches = model.numbers(bound)
        # Only what the query states is asked, not what follows from it.
        matches = (
            matches * np.maximum(1.0, feasible / equal) * np.array([stated[int(mask)] for mask in bound])
        )
        share = _shares(model, p, order)
        complete = _completed(model, bound, feasible)
        here = matches * share * complete
        # A partial match meets as many candidates as order and window leave, before any predicate is asked.
        reach = np.minimum(
            feasible[1:] * share[1:] / np.maximum(feasible[:-1] * share[:-1], 1e-300), one[order[1:]]
        )
        asked = matches[:-1] * share[:-1] * reach * complete[1:]
        probes = np.full(length - 1, PIVOTED.probe)
        for need in needs:
            probes[((bound[1:] & need) == need) & ((bound[:-1] & need) != need)] = PIVOTED.probe + PIVOTED.ask
        cost += PIVOTED.search * float(here[:-1].sum()) + float(probes @ asked)
        cost += PIVOTED.partial * float(here[1:-1].sum()) + PIVOTED.match * float(here[-1])
    return min(cost, 1e300)


def _shares(model: CostModel, p: int, order: Sequence[int]) -> Float:
    """Return for each step of a pivot's order the share of the choices that have their minimum at p, (l,).

    In the terms of ``V(u)`` in :mod:`uncertain_cep.plan.costs`: those before p overlap its end, which ``u_i``
    placements of each do, and the k behind it follow in ``sum over r = 0..k of e_{k-r}(u) * C(w + r, r)``.
    """
    lengths, window = model.lengths, model.window
    before, behind = 1.0, np.zeros(len(order) + 1)
    everything = np.zeros(len(order) + 1)
    behind[0] = everything[0] = 1.0
    shares = np.empty(len(order))
    for step, j in enumerate(order):
        if j < p:
            before *= lengths[j]
        elif j > p:
            behind[1:] += lengths[j] * behind[:-1].copy()
        everything[1:] += lengths[j] * everything[:-1].copy()
        k = max(0, step - p)
        r = np.arange(1, step + 1)
        placements = np.concatenate(([1.0], np.cumprod((window + r) / r)))
        mine = before * float((behind[k::-1] * placements[: k + 1]).sum())
        shares[step] = min(1.0, mine / float((everything[step::-1] * placements).sum()))
    return shares


def _stated(model: CostModel, mask: int) -> float:
    """Return the share of the choices of a set that are equal in what predicates over the set state."""
    share = 1.0
    trees: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for part in model.statistics.equalities:
        one, other = (part.value, part.first), (part.value, part.second)
        if not part.stated or not mask >> part.first & 1 or not mask >> part.second & 1:
            continue
        left, right = trees.setdefault(one, {one}), trees.setdefault(other, {other})
        if left is not right:
            share *= part.share
            left |= right
            trees.update(dict.fromkeys(right, left))
    return share


def _completed(model: CostModel, bound: Int64, feasible: Float) -> Float:
    """Return for sets of components the share of the choices that every other one can complete in time."""
    share = np.ones(len(bound))
    for j in range(model.length):
        bit = np.int64(1 << j)
        more = model.numbers(bound | bit)[0]
        missing = -np.expm1(-np.minimum(more / np.maximum(feasible, 1e-300), 700.0))
        share *= np.where(bound & bit, 1.0, missing)
    return share
