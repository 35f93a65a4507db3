"""Evaluation of SEQ along a tree of joins: components in any order, or parts of the pattern put together."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eventbased import describe_chosen, promising_matches
from eventbased.config import BLOCK_ROWS, MATERIALISED_ROWS
from eventbased.tree_join import BEFORE, BEHIND, NEXT_LEFT, NEXT_RIGHT, Programs, RightSide
from eventbased.tree_search import Events, JoinStep, joined, right_of_candidates, right_of_matches
from uncertain_cep.described import describe_explicit, redo_exactly
from uncertain_cep.equalities import Equalities, EqualityIndex, Known, keys_of
from uncertain_cep.layout import Layout, layouts, loader
from uncertain_cep.next_match import NextMatches
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plan.trees import Join, Leaf, Tree, components_of, left_deep, order_of
from uncertain_cep.pmfs import ExplicitPmfs
from uncertain_cep.programs import JoinPrograms, PreparedPredicates, binding_orders
from uncertain_cep.query.typed import variables_of
from uncertain_cep.selection import Selection
from uncertain_cep.sequence import Chunk, Threshold

__all__ = ["Counters", "evaluate_tree"]

Int64 = NDArray[np.int64]

Counters = MutableMapping[tuple[int, ...], int]
"""For each node of a tree, by the components of its leaves from left to right, its partial matches."""

Bounds = list[tuple[int, int]]
"""For each component what B has to reach and A has to keep to."""


def evaluate_tree(
    plan: EvaluationPlan,
    tree: Tree,
    table: pa.Table,
    selection: Selection,
    pmfs: ExplicitPmfs | None,
    payload: Int64 | None,
    with_confidence: bool,
    batch_rows: int,
    threshold: Threshold | None = None,
    counters: Counters | None = None,
    *,
    block_rows: int = BLOCK_ROWS,
    materialised_rows: int = MATERIALISED_ROWS,
) -> Iterator[Chunk]:
    """Yield the matches of a pattern of at least two components, in chunks of at most ``batch_rows``.

    Parameters
    ----------
    plan : EvaluationPlan
        Of a plain sequence.
    tree : Tree
        Over all its components.
    table, selection, pmfs, payload, with_confidence, batch_rows, threshold
        As for :func:`uncertain_cep.sequence.evaluate_sequence`.
    counters : Counters or None
        The numbers of partial matches are added here.
    block_rows : int
        Partial matches that are extended together.
    materialised_rows : int
        Most partial matches of a right subtree that are held at a time.

    Raises
    ------
    TraceError
        If the chain of a match with an explicit pmf is too long.

    Notes
    -----
    Every tree gives the same matches. Work is that of the partial matches of its nodes, and of the right rows
    that order, window and equalities let them see. Right subtrees are evaluated for one stretch of the time
    of the first leaf after the other, each as long as the limit on their rows allows.
    """
    for layout in layouts(plan, selection):
        yield from _matches(
            plan, tree, table, layout, pmfs, payload, with_confidence, batch_rows, threshold, counters,
            block_rows, materialised_rows,
        )  # fmt: skip


def _matches(
    plan: EvaluationPlan,
    tree: Tree,
    table: pa.Table,
    layout: Layout,
    pmfs: ExplicitPmfs | None,
    payload: Int64 | None,
    wanted: bool,
    batch_rows: int,
    threshold: Threshold | None,
    counters: Counters | None,
    block_rows: int,
    materialised_rows: int,
) -> Iterator[Chunk]:
    candidates, shared = layout.candidates, layout.shared
    variables = [component.variable for component in plan.components]
    prepared = PreparedPredicates(plan.joined, variables, candidates.first, loader(plan, table, layout))
    conditions = _Conditions(plan, layout, prepared)
    is_next = plan.query.strategy == "skip_till_next_match"
    # What else a component could have taken is asked in the order of the pattern.
    start = prepared.in_orders(binding_orders(len(variables))[: int(is_next)])
    chain = conditions.chain(tree)
    # Where the partial matches of a right subtree are too many at a single time.
    instead = None if order_of(tree) is not None else conditions.chain(left_deep(components_of(tree)))
    programs = prepared.programs(start)
    following = None
    if is_next:
        following = NextMatches(
            plan, table, candidates, layout.rows, shared.event, shared.twin, programs, pmfs, layout.w
        )
    search = _Search(
        layout,
        conditions.equalities.codes,
        programs,
        np.empty(0, dtype=np.int64) if following is None else following.limit,
        block_rows,
        materialised_rows,
        counters,
    )
    descriptions = _Descriptions(plan, layout, pmfs, following, layout.payload(payload), wanted, threshold)
    # Fewer at a time where what was found raises the threshold for what is to come.
    last_rows = batch_rows if threshold is None else min(batch_rows, block_rows)
    for chosen in search.matches(chain, instead, last_rows):
        yield descriptions.chunk(chosen)


@dataclass(frozen=True, slots=True)
class _Join:
    """A join of a chain; ``right`` is a component or a chain of its own.

    Attributes
    ----------
    components : tuple of int
        Of the node's leaves.
    """

    components: tuple[int, ...]
    right: int | _Chain
    left_components: Int64
    right_components: Int64
    index: EqualityIndex
    pairs: Int64
    shared: bool
    rows: tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Chain:
    """The joins along the left edge of a tree, that of its first leaf's candidates first."""

    first: int
    joins: tuple[_Join, ...]


class _Conditions:
    """What the joins of trees have to look at."""

    def __init__(self, plan: EvaluationPlan, layout: Layout, prepared: PreparedPredicates) -> None:
        self._variables = [component.variable for component in plan.components]
        self._prepared = prepared
        self._limited = plan.query.strategy == "skip_till_next_match"
        self._fills = layout.shared.twin >= 0
        self.equalities = Equalities(prepared, self._variables, layout.candidates.first)

    def chain(self, tree: Tree) -> _Chain:
        """Return the chain of joins of a tree."""
        return self._chain(tree)[0]

    def _chain(self, tree: Tree) -> tuple[_Chain, Known]:
        rights = []
        while isinstance(tree, Join):
            rights.append(tree.right)
            tree = tree.left
        known: Known = {}
        bound: tuple[int, ...] = (tree.component,)
        joins = []
        for subtree in reversed(rights):
            right: int | _Chain
            if isinstance(subtree, Leaf):
                right = subtree.component
            else:
                right, within = self._chain(subtree)
                known = {**known, **within}
            added = components_of(subtree)
            index, known, rows = self._predicates(bound, added, known)
            joins.append(
                _Join(
                    bound + added,
                    right,
                    np.array(bound, dtype=np.int64),
                    np.array(added, dtype=np.int64),
                    index,
                    _pairs(bound, added, self._limited),
                    self._share(bound, added),
                    rows,
                )
            )
            bound += added
        return _Chain(tree.component, tuple(joins)), known

    def _predicates(
        self, left: tuple[int, ...], right: tuple[int, ...], known: Known
    ) -> tuple[EqualityIndex, Known, tuple[int, int]]:
        """Return what looks the right side up, what is known then, and the programs for the rest."""
        one = {self._variables[j] for j in left}
        other = {self._variables[j] for j in right}
        across = [
            predicate
            for predicate in self._prepared.predicates
            if variables_of(predicate) <= one | other
            and not variables_of(predicate) <= one
            and not variables_of(predicate) <= other
        ]
        index, known, rest = self.equalities.index(left, right, known, across)
        return index, known, self._prepared.rows(rest)

    def _share(self, left: tuple[int, ...], right: tuple[int, ...]) -> bool:
        """Return whether some event is a candidate on both sides."""
        both = self._fills[:, left].any(axis=1) & self._fills[:, right].any(axis=1)
        return bool(both.any())


def _pairs(left: tuple[int, ...], right: tuple[int, ...], limited: bool) -> Int64:
    """Return the conditions on pairs that ``lo`` and ``hi`` of a left row do not cover."""
    found = []
    for s in left:
        for t, component in enumerate(right):
            if min(right) < s < max(right):
                found.append((BEFORE if s < component else BEHIND, s, t))
            if limited and s == component + 1:
                found.append((NEXT_LEFT, s, t))
            if limited and s == component - 1 and len(right) > 1:
                found.append((NEXT_RIGHT, s, t))
    return np.array(found, dtype=np.int64).reshape(-1, 3)


class _Search:
    """The enumeration of matches along chains of joins."""

    def __init__(
        self,
        layout: Layout,
        codes: Int64,
        programs: JoinPrograms,
        limit: Int64,
        block_rows: int,
        materialised_rows: int,
        counters: Counters | None,
    ) -> None:
        candidates = layout.candidates
        self._candidates = candidates
        self._length = len(candidates.first) - 1
        self._events = Events(
            layout.w, candidates.lower, candidates.upper, layout.shared.event, layout.shared.twin, limit,
            codes, Programs(programs.code, programs.ints, programs.floats, programs.nulls, programs.slots),
        )  # fmt: skip
        self._block_rows, self._materialised_rows = block_rows, materialised_rows
        self._counters = counters
        self._sides: dict[int, RightSide] = {}
        every = candidates.lower[: len(layout.rows)]
        self._anywhere = int(every.min()), int(every.max())
        if counters is not None:
            for j, size in enumerate(np.diff(candidates.first).tolist()):
                counters[j,] = counters.get((j,), 0) + size

    def matches(self, chain: _Chain, instead: _Chain | None, last_rows: int) -> Iterator[Int64]:
        """Yield the candidates of matches, (l, m) int64, m <= ``last_rows``.

        Parameters
        ----------
        chain : _Chain
        instead : _Chain or None
            A chain without right subtrees to use where these have too many partial matches; None if the chain
            is one.
        last_rows : int
        """
        first = self._candidates.first
        places = np.arange(first[chain.first], first[chain.first + 1])
        if instead is None:
            yield from self._joined(chain, places, [self._anywhere] * self._length, last_rows)
            return
        places = places[np.argsort(self._events.lower[places], kind="stable")]
        begin, size = 0, len(places)
        while begin < len(places):
            part = places[begin : begin + size]
            bounds = self._around(chain.first, part)
            owned = self._owned(places, begin, begin + len(part))
            counted: list[tuple[tuple[int, ...], int]] = []
            steps = self._steps(chain, bounds, owned, counted)
            if steps is None and len(part) > 1:
                size = (len(part) + 1) // 2
                continue
            if steps is None:
                yield from self._joined(instead, part, bounds, last_rows)
            else:
                self._count(counted)
                yield from self._run(chain, part, steps, last_rows)
                size *= 2
            begin += len(part)

    def _around(self, component: int, places: Int64) -> Bounds:
        """Return what can be in a match with one of some candidates of a component."""
        earliest = int(self._events.lower[places].min())
        latest = int(self._events.upper[places].max())
        w = self._events.w
        first, last = self._anywhere
        return [
            (
                max(earliest - (0 if j > component else w), first),
                min(latest + (w if j > component else 0), last),
            )
            for j in range(self._length)
        ]

    def _owned(self, places: Int64, begin: int, stop: int) -> tuple[int, int]:
        """Return in which times a stretch counts partial matches, so that each is counted once."""
        lower = self._events.lower
        info = np.iinfo(np.int64)
        return (
            int(lower[places[begin]]) if begin else info.min,
            int(lower[places[stop]]) if stop < len(places) else info.max,
        )

    def _count(self, counted: list[tuple[tuple[int, ...], int]]) -> None:
        if self._counters is not None:
            for node, number in counted:
                self._counters[node] = self._counters.get(node, 0) + number

    def _joined(self, chain: _Chain, places: Int64, bounds: Bounds, last_rows: int) -> Iterator[Int64]:
        steps = self._steps(chain, bounds, (0, 0), [])
        assert steps is not None
        yield from self._run(chain, places, steps, last_rows)

    def _run(self, chain: _Chain, places: Int64, steps: list[JoinStep], last_rows: int) -> Iterator[Int64]:
        def counted(step: int, found: Int64) -> None:
            self._count([(chain.joins[step].components, len(found))])

        yield from joined(
            self._length, chain.first, places, steps, self._events, last_rows, self._block_rows, counted
        )

    def _steps(
        self,
        chain: _Chain,
        bounds: Bounds,
        owned: tuple[int, int],
        counted: list[tuple[tuple[int, ...], int]],
    ) -> list[JoinStep] | None:
        """Return the steps of a chain within bounds; None if a right subtree has too many partial matches."""
        steps = []
        for join in chain.joins:
            if isinstance(join.right, int):
                right = self._candidate_side(join, join.right)
                least, most = bounds[join.right]
            else:
                found = self._materialised(join.right, bounds, owned, counted)
                if found is None:
                    return None
                places = dict(zip(join.right_components.tolist(), found, strict=True))
                key = keys_of(join.index.right, places, self._events.codes)
                right = right_of_matches(self._events, join.right_components, found, key, join.index.size)
                least, most = self._anywhere
            step = JoinStep(
                join.left_components, right, least, most, join.index.left, join.pairs, join.shared, join.rows
            )
            steps.append(step)
        return steps

    def _candidate_side(self, join: _Join, component: int) -> RightSide:
        if id(join) not in self._sides:
            first = self._candidates.first
            places = {component: np.arange(first[component], first[component + 1])}
            key = keys_of(join.index.right, places, self._events.codes)
            self._sides[id(join)] = right_of_candidates(self._candidates, component, key, join.index.size)
        return self._sides[id(join)]

    def _materialised(
        self,
        chain: _Chain,
        bounds: Bounds,
        owned: tuple[int, int],
        counted: list[tuple[tuple[int, ...], int]],
    ) -> Int64 | None:
        """Return the partial matches of a chain within bounds, (t, n) int64; None if they are too many."""
        steps = self._steps(chain, bounds, owned, counted)
        if steps is None:
            return None
        lower = self._events.lower

        def count(step: int, found: Int64) -> None:
            times = lower[found]
            number = int(((times >= owned[0]) & (times < owned[1])).sum())
            counted.append((chain.joins[step].components, number))

        components = list(chain.joins[-1].components)
        parts = [np.empty((len(components), 0), dtype=np.int64)]
        rows = 0
        for block in joined(
            self._length, chain.first, self._within(chain.first, *bounds[chain.first]), steps, self._events,
            self._block_rows, self._block_rows, None if self._counters is None else count,
        ):  # fmt: skip
            rows += block.shape[1]
            if rows > self._materialised_rows:
                return None
            parts.append(block[components])
        return np.concatenate(parts, axis=1)

    def _within(self, component: int, least: int, most: int) -> Int64:
        """Return the candidates of a component with B >= least and A <= most."""
        candidates = self._candidates
        parts = [np.empty(0, dtype=np.int64)]
        for c in range(int(candidates.first_class[component]), int(candidates.first_class[component + 1])):
            start, stop = int(candidates.class_start[c]), int(candidates.class_stop[c])
            lower = candidates.lower[start:stop]
            begin = start + int(np.searchsorted(lower, least - int(candidates.class_longest[c])))
            end = start + int(np.searchsorted(lower, most, side="right"))
            parts.append(np.arange(begin, end))
        places = np.concatenate(parts)
        return places[candidates.upper[places] >= least]


class _Descriptions:
    """From the candidates of matches to chunks of the result."""

    def __init__(
        self,
        plan: EvaluationPlan,
        layout: Layout,
        pmfs: ExplicitPmfs | None,
        following: NextMatches | None,
        output: Int64,
        wanted: bool,
        threshold: Threshold | None,
    ) -> None:
        self._plan, self._layout, self._pmfs, self._following = plan, layout, pmfs, following
        self._output, self._wanted, self._threshold = output, wanted, threshold
        self._ranks = np.empty(0, dtype=np.int64)
        if threshold is not None and threshold.ranks is not None:
            self._ranks = threshold.ranks[layout.rows]
        self._ordered = binding_orders(len(plan.components))[0]
        self._offset = np.zeros(0, dtype=np.int64) if pmfs is None else pmfs.offset[layout.rows]

    def _promising(self, chosen: Int64, threshold: Threshold) -> Int64:
        """Return those of some matches that can pass a threshold."""
        candidates = self._layout.candidates
        last_rank = np.iinfo(np.int64).max if threshold.last_rank is None else threshold.last_rank
        kept = np.empty(chosen.shape[1], dtype=np.bool_)
        promising_matches(
            chosen, self._layout.w, candidates.lower, candidates.upper, self._offset, threshold.least,
            self._ranks, last_rank, kept,
        )  # fmt: skip
        return chosen if kept.all() else np.ascontiguousarray(chosen[:, kept])

    def chunk(self, chosen: Int64) -> Chunk:
        """Return the matches of some candidates, (l, m) int64, without those that cannot happen.

        Nor are those returned that cannot pass the threshold.
        """
        if self._threshold is not None:
            chosen = self._promising(chosen, self._threshold)
        candidates, w, pmfs = self._layout.candidates, self._layout.w, self._pmfs
        lower, upper = np.empty((2, chosen.shape[1]), dtype=np.int64)
        computed = self._wanted or self._following is not None
        confidence = np.empty(chosen.shape[1] if computed else 0)
        std_error = None
        if self._following is not None:
            std_error = np.empty(chosen.shape[1])
            self._following.describe(chosen, lower, upper, confidence, std_error)
        else:
            describe_chosen(
                self._ordered, chosen, w, candidates.lower, candidates.upper, candidates.base, lower, upper,
                confidence,
            )  # fmt: skip
            if pmfs is not None:
                describe_explicit(
                    self._plan, candidates, chosen, pmfs, self._offset, self._wanted, w, lower, upper,
                    confidence,
                )  # fmt: skip
            # A sum is NaN if anything in it is, and much cheaper to look at.
            if self._wanted and bool(np.isnan(confidence.sum())):
                redo_exactly(self._plan, candidates, chosen, confidence)
        chunk = Chunk(self._output[chosen], lower, upper, confidence if self._wanted else None, std_error)
        may_be_impossible = pmfs is not None or self._following is not None
        return chunk.keep(lower <= upper) if may_be_impossible else chunk
