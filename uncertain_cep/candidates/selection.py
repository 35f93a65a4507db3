"""Selection of the events that each component can take: types, local predicates, partitions, slices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.budget import checkpoint
from eventbased import Concatenated
from uncertain_cep.candidates.candidate_rows import CandidateRows, Spread
from uncertain_cep.config.limits import MAX_TICK
from uncertain_cep.config.tuning import LEAST_GATHERED, LEAST_LOOKED_AT, LEAST_NUMBERS
from uncertain_cep.errors import TraceError
from uncertain_cep.expressions.codes import codes_of, dense, nulls_as_key
from uncertain_cep.expressions.rounded_numbers import warn_of_float_key
from uncertain_cep.expressions.text_equality import equal_to_each
from uncertain_cep.expressions.vectorised import Values, column_values, evaluate_mask, evaluate_masks
from uncertain_cep.plan import EvaluationPlan, PlannedComponent
from uncertain_cep.plan.negated_reach import negated_reach
from uncertain_cep.query.typed import columns_in
from uncertain_cep.running.threads import equal_ranges, side_by_side
from uncertain_cep.traces.checks import check_ids

__all__ = [
    "ScanCache",
    "Selection",
    "Slicing",
    "check_keys",
    "coded",
    "looks_back",
    "partitioned",
    "reach_of",
    "rows_taken",
    "select",
    "type_mask",
]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Slicing:
    """How a table is cut into slices of time that are evaluated apart."""

    column: str
    """Integer column with the slice of each row; a row belongs to one slice."""
    origin: int
    length: int
    """Slice s reports the matches whose first event's ``lower`` is in ``[origin + s * length, origin + (s +
    1) * length)``, ticks."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The candidates of each component."""

    rows: tuple[Int64, ...]
    """tuple of (n_j,) int64. Rows of the table."""
    lower: tuple[Int64, ...]
    upper: tuple[Int64, ...]
    """Each tuple of (n_j,) int64. Their intervals, ticks."""
    partition: tuple[Int64, ...] | None
    """tuple of (n_j,) int64 or None. Their partition numbers, a slice making partitions of its own; None if
    there is one."""
    partitions: int
    _spreads: list[Spread] = field(default_factory=list, init=False, repr=False, compare=False)
    _concatenated: list[Concatenated] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def concatenated(self) -> Concatenated:
        """All components one behind the other, copied unless they lie so."""
        if not self._concatenated:
            self._concatenated.append(Concatenated.of(self.rows, self.lower, self.upper, self.partition))
        return self._concatenated[0]

    @property
    def spreads(self) -> Sequence[Spread]:
        """How the times of each component's candidates lie, found once."""
        if not self._spreads:
            self._spreads[:] = map(Spread.of, self.lower, self.upper)
        return self._spreads

    @property
    def extremes(self) -> tuple[int, int]:
        """The earliest tick of any candidate, and one that none is behind; no component is empty."""
        spreads = self.spreads
        return min(spread.earliest for spread in spreads), max(spread.latest for spread in spreads)

    @property
    def empty(self) -> bool:
        """Whether some component has no candidate, so that there is no match."""
        return not all(map(len, self.rows))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many candidates each component has."""
        return tuple(map(len, self.rows))

    def halves(self) -> tuple[Selection, Selection]:
        """Return the candidates in the lower and in the upper half of the partitions."""
        middle = self.partitions // 2
        return self.of_partitions(0, middle), self.of_partitions(middle, self.partitions)

    def of_partitions(self, begin: int, end: int) -> Selection:
        """Return the candidates of the partitions from one number up to, but without, another one."""
        assert self.partition is not None
        selection = self.take([(part >= begin) & (part < end) for part in self.partition])
        assert selection.partition is not None
        return replace(
            selection, partition=tuple(part - begin for part in selection.partition), partitions=end - begin
        )

    def take(self, chosen: Sequence[Mask | Int64 | slice]) -> Selection:
        """Return the candidates of each component at some places, or where its mask is true."""

        def taken(parts: tuple[Int64, ...]) -> tuple[Int64, ...]:
            return tuple(part[kept] for part, kept in zip(parts, chosen, strict=True))

        partition = None if self.partition is None else taken(self.partition)
        return replace(
            self, rows=taken(self.rows), lower=taken(self.lower), upper=taken(self.upper), partition=partition
        )

    def stretch(self, ranges: Sequence[slice]) -> Selection:
        """Return neighbours among the candidates of each component, which ascend, at least one of each."""
        stretch = self.take(ranges)
        stretch._spreads.extend(
            spread.of_stretch(lower) for spread, lower in zip(self.spreads, stretch.lower, strict=True)
        )
        if self._concatenated:
            whole = self._concatenated[0]
            begin = whole.begin + [part.start for part in ranges]
            end = whole.begin + [part.stop for part in ranges]
            stretch._concatenated.append(whole._replace(begin=begin, end=end))
        return stretch

    def with_first(self, kept: Mask, component: int = 0) -> Selection:
        """Return the candidates with some of those of one component, as a rule the first."""
        masks = [np.ones(size, dtype=np.bool_) for size in self.sizes]
        masks[component] = kept
        return self.take(masks)


@dataclass(slots=True)
class ScanCache:
    """Looked-up rows of a table for the branches of a pattern, each looked up once."""

    threads: int = 1
    """Most threads that look at rows at once."""
    masks: list[dict[str, Mask]] = field(default_factory=list)
    """For each range of rows by type, those that have it."""
    ascending_ids: list[bool] = field(default_factory=list)
    """For each range of rows, whether ids are whole numbers that ascend up to the first one behind it."""
    values: dict[str, Values] = field(default_factory=dict)
    """By name, the values of columns."""
    rows: dict[PlannedComponent, Int64] = field(default_factory=dict)
    """The rows that components can take. Rules have many components of one name, so they are hashed."""
    gathered: tuple[tuple[Int64, Int64], CandidateRows] | None = None
    """The times of all rows, and rows found with theirs, if these were gathered on the way."""
    ids: dict[tuple[str, ...], Mask] = field(default_factory=dict)
    """By partition attributes, the rows whose ids were found to be used once."""

    def pieces(self, plan: EvaluationPlan, table: pa.Table, components: Sequence[PlannedComponent]) -> int:
        """Return into how many ranges of rows it is worth cutting a table, as many as when first asked."""
        if not self.masks:
            count = self._ranges(table, LEAST_LOOKED_AT)
            # Of a small table nothing else has to be known.
            if count > 1 and plan.names.pmf not in table.column_names:
                rules = (rule for part in components for rule in part.local)
                if all(column.kind != "string" for rule in rules for column in columns_in(rule)):
                    count = self._ranges(table, LEAST_NUMBERS)
            self.masks, self.ascending_ids = [{} for _ in range(count)], [False] * count
        return len(self.masks)

    def _ranges(self, table: pa.Table, least_rows: int) -> int:
        """Return into how many ranges of at least so many rows a table is cut."""
        return max(min(self.threads, int(table.num_rows) // least_rows), 1)

    def look(
        self,
        plan: EvaluationPlan,
        table: pa.Table,
        components: Sequence[PlannedComponent],
        is_sound: Callable[[pa.Table, tuple[int, int] | None], bool] | None = None,
        bounds: tuple[Int64, Int64] | None = None,
    ) -> bool:
        """Look up which rows components can take, and return True.

        If ``is_sound`` does not hold of all ranges of rows, nothing is known, and False is returned; it is
        asked with what :attr:`CandidateRows.extremes` says of them. With ``bounds``, each (n,) int64, the
        times of all rows, those of the rows found are gathered on the way.
        """
        new: list[PlannedComponent] = []
        for component in components:
            if component not in self.rows and component not in new:
                new.append(component)
        if not new and is_sound is None:
            return True
        count = self.pieces(plan, table, components)
        # Once, and not by each thread.
        for name in (column.name for part in new for rule in part.local for column in columns_in(rule)):
            if name not in self.values:
                self.values[name] = column_values(table.column(name), name)
        tasks = [
            partial(self._in_range, plan, table, new, rows, number, is_sound, bounds)
            for number, rows in enumerate(equal_ranges(table.num_rows, count))
        ]
        candidates = [taken for taken in side_by_side(count, tasks) if taken is not None]
        if len(candidates) < count:
            return False
        whole = CandidateRows.joined(candidates)
        for component, rows in zip(new, whole.rows, strict=True):
            self.rows[component] = rows
        if bounds is not None:
            self.gathered = (bounds, whole)
        return True

    def rows_of(
        self, plan: EvaluationPlan, table: pa.Table, components: Sequence[PlannedComponent]
    ) -> list[Int64]:
        """Return of each component what `rows_taken` does."""
        self.look(plan, table, components)
        return [self.rows[component] for component in components]

    def selected(
        self, lower: Int64, upper: Int64, rows: Sequence[Int64], numbers: Sequence[Int64] | None, count: int
    ) -> Selection:
        """Return the candidates in some rows, with their times, their partitions and how many these are."""
        candidates = self._with_times(lower, upper, rows)
        selection = Selection(
            rows=tuple(candidates.rows),
            lower=tuple(candidates.lower),
            upper=tuple(candidates.upper),
            partition=None if numbers is None or count == 1 else tuple(numbers),
            partitions=count,
        )
        selection._spreads.extend(candidates.spreads)
        if candidates.concatenated is not None and selection.partition is None:
            selection._concatenated.append(candidates.concatenated)
        return selection

    def _with_times(self, lower: Int64, upper: Int64, rows: Sequence[Int64]) -> CandidateRows:
        """Return rows with their times, which may have been gathered when the rows were looked up."""
        if self.gathered is not None and self.gathered[0][0] is lower and self.gathered[0][1] is upper:
            gathered_rows = self.gathered[1]
            places = [
                next((j for j, other in enumerate(gathered_rows.rows) if other is part), -1) for part in rows
            ]
            if min(places) >= 0:
                return gathered_rows.of_components(places)
        pieces = self.threads if len(lower) >= LEAST_GATHERED else 1
        if pieces == 1:
            return CandidateRows.of(rows, lower, upper)
        edges = [*(part.start for part in equal_ranges(len(lower), pieces)), len(lower)]
        cuts = [np.searchsorted(part, edges).tolist() for part in rows]

        def gathered(number: int) -> Iterator[CandidateRows]:
            here = [part[cut[number] : cut[number + 1]] for part, cut in zip(rows, cuts, strict=True)]
            yield CandidateRows.of(here, lower, upper, slice(edges[number], edges[number + 1]))

        return CandidateRows.joined(
            list(side_by_side(pieces, [partial(gathered, number) for number in range(pieces)]))
        )

    def _in_range(
        self,
        plan: EvaluationPlan,
        table: pa.Table,
        new: list[PlannedComponent],
        rows: slice,
        number: int,
        is_sound: Callable[[pa.Table, tuple[int, int] | None], bool] | None,
        bounds: tuple[Int64, Int64] | None,
    ) -> Iterator[CandidateRows | None]:
        part = table.slice(rows.start, rows.stop - rows.start)
        masks = self._masks(plan, table, new, rows, number)
        needs_ids = bool(new) and not self.ascending_ids[number]
        ids = _whole_ids(table.column(plan.names.id)) if needs_ids else None
        taken, ascend = CandidateRows.where(masks, rows, bounds, ids)
        if ids is not None:
            self.ascending_ids[number] = ascend
        yield taken if is_sound is None or is_sound(part, taken.extremes) else None

    def _masks(
        self, plan: EvaluationPlan, table: pa.Table, new: list[PlannedComponent], rows: slice, number: int
    ) -> list[list[Mask]]:
        """Return for each component masks of a range of rows, (k,): it can take those where all are true."""
        seen = self.masks[number]
        count = rows.stop - rows.start
        types = [name for part in new for name in part.types]
        _look_for(table.slice(rows.start, count), plan.names.type, types, seen)
        rules = [rule for part in new for rule in part.local]
        true = iter(evaluate_masks(rules, table, self.values, rows))
        masks = []
        for component in new:
            masks_of_component = list(islice(true, len(component.local)))
            if component.types:
                masks_of_component.append(reduce(np.logical_or, (seen[name] for name in component.types)))
            masks.append(masks_of_component or [np.ones(count, dtype=np.bool_)])
        return masks


def _whole_ids(ids: pa.ChunkedArray) -> Int64 | None:
    """Return ids that are whole numbers; None of others."""
    if not pa.types.is_int64(ids.type) or ids.null_count:
        return None
    return np.asarray(ids.to_numpy())


def looks_back(plan: EvaluationPlan) -> bool:
    """Return whether a match depends on events before that of the component it belongs to."""
    return any(
        branch.owner > 0
        or not branch.event_order.is_chain
        or any(negation.after == 0 for negation in branch.negations)
        for branch in (plan, *plan.or_free)
    )


def reach_of(plan: EvaluationPlan) -> tuple[int, int]:
    """Return how far before and behind the event that it belongs to a match depends on others, ticks.

    Raises
    ------
    OptionError
        If a negated event can be any time before its match, or behind it.
    """
    within, negated = min(plan.window - 1, 2 * MAX_TICK), negated_reach(plan)
    before, behind = (within if looks_back(plan) else 0) + negated.before, within + negated.behind
    return min(before, 2 * MAX_TICK), min(behind, 2 * MAX_TICK)


def type_mask(table: pa.Table, name: str, types: tuple[str, ...], seen: dict[str, Mask]) -> Mask | None:
    """Return a mask of the rows that have one of the types; None if all do, or the pattern names none."""
    if not types:
        return None
    _look_for(table, name, types, seen)
    mask = seen[types[0]]
    for type_name in types[1:]:
        mask = mask | seen[type_name]
    return None if mask.all() else mask


def _look_for(table: pa.Table, column: str, types: Sequence[str], seen: dict[str, Mask]) -> None:
    """Have ``seen`` say which rows have each of some types, looked for together."""
    new = [type_name for type_name in dict.fromkeys(types) if type_name not in seen]
    if new:
        seen.update(zip(new, equal_to_each(table.column(column), new), strict=True))


def coded(table: pa.Table, names: Sequence[str]) -> list[Int64]:
    """Return codes of the values of columns, see `codes_of`, once `check_keys` finds no fault."""
    check_keys(table, names)
    return codes_of([table.column(name) for name in names])[0]


def check_keys(table: pa.Table, names: Sequence[str]) -> None:
    """Check columns of keys: a TraceError says that an integer is beyond int64.

    Warns of floats so large that one may stand for several whole numbers.
    """
    for name in names:
        dtype = table.schema.field(name).type
        if pa.types.is_uint64(dtype):
            column_values(table.column(name), name)
        elif pa.types.is_floating(dtype):
            warn_of_float_key(name, dtype, pc.max(pc.abs(table.column(name))).as_py())


def rows_taken(
    plan: EvaluationPlan,
    table: pa.Table,
    component: PlannedComponent,
    seen: dict[str, Mask] | None = None,
    loaded: dict[str, Values] | None = None,
) -> Int64:
    """Return the rows of the events that a component's types and local predicates let it take, ascending.

    ``seen`` holds masks of types, and ``loaded`` values of columns, that other components asked for.
    """
    mask = type_mask(table, plan.names.type, component.types, {} if seen is None else seen)
    for predicate in component.local:
        truth = evaluate_mask(predicate, table, loaded)
        mask = truth if mask is None else mask & truth
    return np.arange(table.num_rows) if mask is None else np.flatnonzero(mask)


def partitioned(
    plan: EvaluationPlan, table: pa.Table, rows: list[Int64], slicing: Slicing | None
) -> tuple[list[Int64], list[Int64] | None, int]:
    """Return the rows that have a partition, their partition numbers, and how many partitions there are."""
    layers: list[list[Int64]] = []
    for key in plan.partitioning.keys:
        names = list(dict.fromkeys(key.columns))
        by_name = dict(zip(names, coded(table, names), strict=True))
        codes = [by_name[name] for name in key.columns]
        if len(codes) == 1 and key.name not in plan.bound.equivalences:
            # Only what must not happen has to agree with a single event.
            codes = [nulls_as_key(codes[0])]
        layers.append(codes)
    if slicing is not None:
        layers.append(coded(table, [slicing.column]) * len(rows))
    numbers: list[Int64] | None = None
    count = 1
    for layer in layers:
        codes_of_key = [codes[part] for codes, part in zip(layer, rows, strict=True)]
        kept = [part >= 0 for part in codes_of_key]
        size = max((int(part.max()) for part in codes_of_key if len(part)), default=0) + 1
        if numbers is not None:
            codes_of_key = [old * size + new for old, new in zip(numbers, codes_of_key, strict=True)]
        rows = [part[keep] for part, keep in zip(rows, kept, strict=True)]
        numbers, count = dense([part[keep] for part, keep in zip(codes_of_key, kept, strict=True)])
    return rows, numbers, count


def select(
    plan: EvaluationPlan,
    table: pa.Table,
    lower: Int64,
    upper: Int64,
    given_lower: Int64,
    slicing: Slicing | None,
    scan_cache: ScanCache | None = None,
) -> Selection:
    """Return the candidates of each component among the events of a table.

    Parameters
    ----------
    lower, upper : (n,) int64
        The intervals of all rows, ticks, without ticks of probability 0 at their ends.
    given_lower : (n,) int64
        The lower bounds as given, by which a slice owns a match.
    scan_cache : ScanCache or None
        What is known of this table.

    Raises
    ------
    TraceError
        If two candidates of one partition have the same id.
    """
    scan = ScanCache() if scan_cache is None else scan_cache
    rows = scan.rows_of(plan, table, plan.components)
    rows, numbers, count = partitioned(plan, table, rows, slicing)
    _check_unique(plan, table, rows, slicing, scan)
    if slicing is not None:
        assert numbers is not None
        slices = np.asarray(table.column(slicing.column).to_numpy())[rows[0]]
        begin = slicing.origin + slices.astype(np.int64) * slicing.length
        owned = (given_lower[rows[0]] >= begin) & (given_lower[rows[0]] < begin + slicing.length)
        rows[0], numbers[0] = rows[0][owned], numbers[0][owned]
    checkpoint(16 * sum(map(len, rows)))
    return scan.selected(lower, upper, rows, numbers, count)


def _check_unique(
    plan: EvaluationPlan, table: pa.Table, rows: list[Int64], slicing: Slicing | None, scan: ScanCache
) -> None:
    """Raise if an id is used twice by candidates of one partition."""
    if scan.ascending_ids and all(scan.ascending_ids):
        return
    used = np.zeros(table.num_rows, dtype=np.bool_)
    for part in rows:
        used[part] = True
    checked = scan.ids.setdefault(plan.partition_attributes, np.zeros(table.num_rows, dtype=np.bool_))
    if bool(checked[used].all()):
        return
    columns = list(plan.partition_attributes) + ([] if slicing is None else [slicing.column])
    columns_compared = list(dict.fromkeys([plan.names.id, *columns]))
    if used.all():
        candidates, places = table.select(columns_compared), None
    else:
        places = np.flatnonzero(used)
        candidates = table.select(columns_compared).take(places)
    faults = check_ids(candidates, plan.names, partition=columns)
    if faults:
        if places is not None:
            faults = [
                fault if fault.row is None else replace(fault, row=int(places[fault.row - 1]) + 1)
                for fault in faults
            ]
        raise TraceError(faults)
    # Of those that two branches look at apart, nothing is known together.
    if used.sum() > checked.sum():
        scan.ids[plan.partition_attributes] = used
