"""The cost of the join without a tree: pivoted on the component whose event ends first.

It binds the component p that attains min B first, then those before it, backwards, then those behind it. It
keeps only partial matches that order and window let be completed, see :mod:`eventbased.joins.pivot_join`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncertain_cep.config.tolerances import LARGEST_ESTIMATE
from uncertain_cep.config.tuning import PIVOT_PRICES, Prices
from uncertain_cep.expressions.bytecode import binding_orders
from uncertain_cep.optimizer.cost_model import CostModel

__all__ = ["PivotPasses", "pivot_cost", "pivot_passes"]

Float = NDArray[np.float64]
Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PivotPasses:
    """The expected work of the pivot join, for each pivot: the component that attains min B."""

    orders: Int64
    """(l, l) int64. For each pivot the order in which components are bound."""
    partial_matches: Float
    """(l, l) float64. For each pivot the partial matches of the first component, the first two, and so on; in
    the last column the matches."""
    probes: Float
    """(l, l - 1) float64. For each pivot the candidates of the second component, the third, and so on that
    partial matches meet."""
    waiting: Float
    """(l,) float64. For each pivot the partial matches that the events of the last component wait for."""


def pivot_passes(model: CostModel) -> PivotPasses:
    """Return the expected work of the pivot join. O(l^3).

    A tree makes every partial match, whether it can be completed or not. The pivot join makes only those
    whose minimum is at the pivot and which candidates of each other component can complete in time.
    """
    length = model.length
    shape = length, length
    singles = model.singles
    orders = binding_orders(length)
    bound = np.cumsum(singles[orders], axis=1)
    feasible, equal, matches = (part.reshape(shape) for part in model.numbers(bound.reshape(-1)))
    one = model.numbers(singles)[2]
    # The join evaluates the equalities that the query states, not those that follow from them.
    matches = matches * np.maximum(1.0, feasible / equal) * _stated(model, bound)
    share = _shares(model, orders)
    more = model.numbers(np.asarray(bound[:, :, None] | singles, dtype=np.int64).reshape(-1))[0].reshape(
        *shape, length
    )
    # What comes before the pivot has to lie around its end.
    longer = model.lengths
    around = longer[None, :] / (longer[None, :] + longer[:, None] + model.window + 1.0)
    more = more * np.where(np.tri(length, k=-1, dtype=np.bool_), around, 1.0)[:, None, :]
    found_some = -np.expm1(-np.minimum(more / np.maximum(feasible, 1e-300)[:, :, None], 700.0))
    complete = np.where(bound[:, :, None] & singles, 1.0, found_some).prod(axis=2)
    # A partial match meets as many candidates as order and window leave, before any predicate is evaluated.
    here = feasible * share
    reach = np.minimum(here[:, 1:] / np.maximum(here[:, :-1], 1e-300), one[orders[:, 1:]])
    partial_matches = matches * share * complete
    waiting = partial_matches[:, max(0, length - 2)].copy()
    # Where the last component is the pivot, its event waits for candidates.
    waiting[-1] = one[:-1].sum() * share[-1, -1]
    return PivotPasses(
        orders, partial_matches, matches[:, :-1] * share[:, :-1] * reach * complete[:, 1:], waiting
    )


def pivot_cost(model: CostModel, prices: Prices = PIVOT_PRICES) -> float:
    """Return the expected cost of the pivot join, ns. O(l^3)."""
    passes = pivot_passes(model)
    bound = np.cumsum(model.singles[passes.orders], axis=1)
    probing = np.full(passes.probes.shape, prices.probe)
    for need in {mask for mask, _ in model.predicates}:
        probing[((bound[:, 1:] & need) == need) & ((bound[:, :-1] & need) != need)] = (
            prices.probe + prices.ask
        )
    partial_matches = passes.partial_matches
    cost = prices.candidate * model.candidates + float((probing * passes.probes).sum())
    cost += prices.search * float(partial_matches[:, :-1].sum()) + prices.partial * float(
        partial_matches[:, 1:-1].sum()
    )
    cost += prices.match * float(partial_matches[:, -1].sum())
    cost += model.alpha * prices.probe * float(passes.waiting.sum())
    return min(cost, LARGEST_ESTIMATE)


def _shares(model: CostModel, orders: Int64) -> Float:
    """Return for each pivot and step the share of the choices that have their minimum at the pivot, (l, l).

    In the terms of ``V(u)`` in :mod:`uncertain_cep.optimizer.cardinality`: those before the pivot overlap its
    end, which ``u_i`` placements of each do, and the k behind it follow in ``sum over r = 0..k of e_{k-r}(u)
    * C(w + r, r)``.
    """
    length, window = model.length, model.window
    pivots = np.arange(length)
    r = np.arange(1, length)
    placements = np.concatenate(([1.0], np.cumprod((window + r) / r)))
    before, behind = np.ones(length), np.zeros((length, length + 1))
    everything = np.zeros((length, length + 1))
    behind[:, 0] = everything[:, 0] = 1.0
    shares = np.empty((length, length))
    for step in range(length):
        j = orders[:, step]
        longer = model.lengths[j]
        before = np.where(j < pivots, before * longer, before)
        behind[:, 1:] += np.where(j > pivots, longer, 0.0)[:, None] * behind[:, :-1]
        everything[:, 1:] += longer[:, None] * everything[:, :-1]
        # Of the first so many polynomials the last one is that of all behind the pivot.
        degrees = np.maximum(0, step - pivots)[:, None] - np.arange(step + 1)
        behind_pivot = (
            np.where(degrees >= 0, np.take_along_axis(behind, degrees, axis=1), 0.0) @ placements[: step + 1]
        )
        shares[:, step] = before * behind_pivot / (everything[:, step::-1] @ placements[: step + 1])
    return np.minimum(1.0, shares)


def _stated(model: CostModel, bound: Int64) -> Float:
    """Return for sets of components the share of choices that meet the equalities stated over them."""
    stated = [part for part in model.statistics.equalities if part.stated]
    shares = np.ones(bound.shape)
    if not stated:
        return shares
    for mask in np.unique(bound).tolist():
        share = 1.0
        trees: dict[tuple[int, int], set[tuple[int, int]]] = {}
        for part in stated:
            one, other = (part.value, part.first), (part.value, part.second)
            if not mask >> part.first & 1 or not mask >> part.second & 1:
                continue
            left, right = trees.setdefault(one, {one}), trees.setdefault(other, {other})
            if left is not right:
                share *= part.share
                left |= right
                trees.update(dict.fromkeys(right, left))
        shares[bound == mask] = share
    return shares
