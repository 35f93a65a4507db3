"""One plan and one table of events in, batches of matches out: what every way of running shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import large_arrays
from confidence.chain.side_by_side import LENGTHS
from confidence.kernel import plainly
from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.candidates.distances import moved
from uncertain_cep.candidates.existence import as_evaluated, existence
from uncertain_cep.candidates.marginals import with_marginals
from uncertain_cep.candidates.match_windows import feasible
from uncertain_cep.candidates.own_times import (
    MovedTimes,
    OffsetBounds,
    offset_bounds,
    shared_clocks,
    times_by_one_clock,
    times_of,
    with_coded_clocks,
)
from uncertain_cep.candidates.parts import parts_of
from uncertain_cep.candidates.pmfs import ExplicitPmfs
from uncertain_cep.candidates.possible_readings import all_candidates, possible_readings
from uncertain_cep.candidates.selection import ScanCache, Selection, Slicing, select
from uncertain_cep.candidates.sequenced import SequencedEvents, sequenced
from uncertain_cep.config import BATCH_ROWS, MOST_CELLS, WORTH_A_KERNEL
from uncertain_cep.errors import MatchLimitError, OptionError, TraceError
from uncertain_cep.expressions.vectorised import constant_value
from uncertain_cep.operators.batch import MatchBatch, happened
from uncertain_cep.operators.context import ExecutionContext, InOrder, Threshold, TiedEvents
from uncertain_cep.operators.counters import Counters
from uncertain_cep.operators.table import kernels_of, operator_of
from uncertain_cep.optimizer.choice import choose
from uncertain_cep.plan import EvaluationPlan, MatchOptions, plan_of_reading
from uncertain_cep.plan.grouping import ROW_FIELD
from uncertain_cep.plan.result_columns import SortKey
from uncertain_cep.results.having import had, kept_by_having
from uncertain_cep.results.projection import id_payload, to_batch, widened
from uncertain_cep.results.ranking import least_passing, passing
from uncertain_cep.results.top_k import RisingThreshold, best_chunk
from uncertain_cep.results.undecided import ROW, UndecidedMatches
from uncertain_cep.running.compiling import announce_compilation, plain_seconds
from uncertain_cep.running.limits import within
from uncertain_cep.running.meter import current_meter
from uncertain_cep.running.threads import available_cores, side_by_side
from uncertain_cep.traces.checks import check_columns, check_model, check_values

__all__ = [
    "Slicing",
    "candidates",
    "check_table",
    "confident",
    "constants_hold",
    "execute",
    "execute_within",
    "ticks_of",
]

Int64 = NDArray[np.int64]
Mask = NDArray[np.bool_]
Batches = Callable[[], Iterator[pa.RecordBatch]]

large_arrays.allocate_by(pa.allocate_buffer)


def execute_within(
    plan: EvaluationPlan, table: pa.Table, options: MatchOptions, diagnostics: Diagnostics | None
) -> Iterator[pa.RecordBatch]:
    """Evaluate a plan on a table, within the limits that the options set on time, batches and matches.

    ``max_matches`` counts only where all matches are collected, see :attr:`EvaluationPlan.collects`.

    Raises
    ------
    TimeLimitError, MatchLimitError
        When a batch goes beyond a limit; those before it are yielded.
    """
    most = options.max_matches if plan.collects else None
    found = 0
    threads = available_cores() if options.threads is None else options.threads
    batches = execute(plan, table, batch_rows=options.batch_rows, diagnostics=diagnostics, threads=threads)
    seconds = plain_seconds(table.num_rows, kernels_of(plan))
    for batch in within(options.limit, plainly(seconds, batches)):
        found += batch.num_rows
        if most is not None and found > most:
            raise MatchLimitError(found, most)
        yield batch
        # So that the next one may have its memory.
        del batch


def execute(
    plan: EvaluationPlan,
    table: pa.Table,
    *,
    slicing: Slicing | None = None,
    owned: Mask | None = None,
    batch_rows: int = BATCH_ROWS,
    file: str | None = None,
    counters: Counters | None = None,
    diagnostics: Diagnostics | None = None,
    threads: int = 1,
) -> Iterator[pa.RecordBatch]:
    """Evaluate a plan on a table of events and yield the matches in batches.

    Parameters
    ----------
    table : pyarrow.Table
        With at least ``plan.required_columns``, and ``slicing.column`` if slicing is given.
    slicing : Slicing or None
        The slices of time that the table is cut into; each is evaluated apart.
    owned : (n,) bool or None
        The events that a match yielded may have for the plan's owner, as a rule its first component; None:
        any. Not with ``slicing``.
    batch_rows : int
        Most matches a batch holds.
    file : str or None
        Where the table comes from, for error messages.
    counters : Counters or None
        Receives the numbers of partial matches where events are joined, along a tree or in pattern order.
    diagnostics : Diagnostics or None
        Warns of what is sound but may not be what was meant; None: nobody does. With ``slicing`` one that
        says nothing of single slices.
    threads : int
        Most threads that look for matches at once. With ``counters`` there is one.

    Yields
    ------
    pyarrow.RecordBatch
        Of ``plan.batch_schema``, in an order that depends on the events and on ``threads``. HAVING is
        applied; if ``plan.needs_all``, the caller makes the result of the batches with :func:`finished`.
        Memory beyond the table is O(candidates + threads * batch_rows), whatever the number of matches.

    Raises
    ------
    TraceError
        Before the first batch, if the events are not those of the model.
    """
    announce_compilation()
    if batch_rows < 1:
        raise OptionError(f"batch_rows is {batch_rows}: it must be at least 1")
    table = with_marginals(plan, table)
    table = _in_one_chunk(with_coded_clocks(plan, table), plan.required_columns)
    if diagnostics is not None:
        diagnostics.about(plan)
    scan_cache = ScanCache(threads)
    times = cache(partial(_times, plan, table))
    is_cut = slicing is not None
    if not (is_cut and plan.orders) and not _is_sound(plan, table, is_cut, scan_cache, times):
        check_table(plan, table, file)
    if diagnostics is not None:
        diagnostics.look(table)
    given = _Given(table, slicing, batch_rows, owned, diagnostics, threads, scan_cache, times, file)
    yield from _asked(plan, given, counters)()
    if diagnostics is not None:
        diagnostics.finish()


class _Times(NamedTuple):
    """The times of events, whatever the pattern."""

    given: tuple[Int64, Int64]
    """Each (n,) int64. The bounds in the table, ticks."""
    offsets: OffsetBounds | None
    """Of the clocks of events; None if they do not name any."""
    pmfs: ExplicitPmfs | None
    lower: Int64
    upper: Int64
    """Each (n,) int64. Bounds without ticks of probability 0 at the ends."""


def _times(plan: EvaluationPlan, table: pa.Table) -> _Times:
    given = ticks_of(table, plan.names.lower, plan), ticks_of(table, plan.names.upper, plan)
    offsets = offset_bounds(plan, table) if plan.clocks else None
    return _Times(given, offsets, *times_of(plan, table, offsets, *given))


def _by_one_clock(
    plan: EvaluationPlan, table: pa.Table, times: _Times
) -> tuple[EvaluationPlan, _Times, MovedTimes | None]:
    """Return a plan without clocks, times by them, and how these were moved, if a match has one clock."""
    by = times_by_one_clock(plan, table, times.offsets, times.lower, times.upper)
    if by is None:
        return plan, times, None
    return replace(plan, clocks=False), times._replace(offsets=None, lower=by.lower, upper=by.upper), by


@dataclass(frozen=True, slots=True)
class _Given:
    """A sound table, and how it is looked through, see :func:`execute`."""

    table: pa.Table
    slicing: Slicing | None
    batch_rows: int
    owned: Mask | None
    diagnostics: Diagnostics | None
    threads: int
    scan_cache: ScanCache
    times: Callable[[], _Times]
    file: str | None


def _asked(plan: EvaluationPlan, given: _Given, counters: Counters | None) -> Batches:
    """Check every branch of OR, then return an iterator over the matches of a plan.

    Readings, which may be many, are evaluated one after the other.
    """
    if plan.counted is not None and plan.bound.every is None and (plan.clocks or not plan.is_plain):
        from uncertain_cep.results.expected_counts import counts_of_matches

        counted = _asked(plan.counted, given, counters)
        return lambda: counts_of_matches(plan, counted())
    if plan.by_row is not None:
        return _grouped(plan, plan.by_row, given, counters)
    if plan.branches:
        if plan.readings is None:
            # All branches are held at once, in one chunk of the events.
            given = replace(given, table=_needed(plan, given))
        branches = (
            (branch, _asked(_counted_as(plan, branch), given, counters and counters.of_branch(number)))
            for number, branch in _branches(plan, given)
        )
        parts = branches if plan.readings is not None else _released(list(branches))
        return lambda: _in_turn(plan, parts)
    if given.slicing is None or not _searched(plan):
        return _evaluated(plan, given, counters)
    return partial(_by_slice, plan, given, given.slicing, counters)


def _grouped(
    plan: EvaluationPlan, by_row: EvaluationPlan, inputs: _Given, counters: Counters | None
) -> Batches:
    """Return an evaluation that yields the probabilities of groups of matches."""
    from uncertain_cep.occurrence.explicit_matches import TableTicks
    from uncertain_cep.occurrence.probability_rows import probability_rows

    table = inputs.table.append_column(ROW_FIELD, pa.array(np.arange(inputs.table.num_rows)))
    matches = _asked(by_row, replace(inputs, table=table), counters)

    def rows() -> Iterator[pa.RecordBatch]:
        times = inputs.times()
        ticks = TableTicks(inputs.table, times.lower, times.upper, times.given[0])
        yield probability_rows(plan, ticks, times.offsets, times.pmfs, matches(), inputs.threads)

    return rows


def _counted_as(plan: EvaluationPlan, branch: EvaluationPlan) -> EvaluationPlan:
    """Return a branch as the plan of what is counted, if anything is."""
    if not plan.counts:
        return branch
    bound = replace(branch.bound, query=plan.query, by=plan.bound.by, every=plan.bound.every)
    return replace(branch, bound=bound, output_schema=plan.output_schema, counted=branch)


def _released(
    parts: list[tuple[EvaluationPlan, Batches]],
) -> Iterator[tuple[EvaluationPlan, Batches]]:
    """Yield branches, each held no longer than it takes."""
    while parts:
        yield parts.pop(0)


def _in_turn(
    plan: EvaluationPlan, parts: Iterator[tuple[EvaluationPlan, Batches]]
) -> Iterator[pa.RecordBatch]:
    """Yield the matches of branches, one after the other."""
    for branch, found in parts:
        left_out = branch.bound.left_out
        yield from found() if plan.counts else (widened(plan, batch, left_out) for batch in found())


def _by_slice(
    plan: EvaluationPlan, given: _Given, slicing: Slicing, counters: Counters | None
) -> Iterator[pa.RecordBatch]:
    """Yield the matches of slices in which a search may begin with any event, and any forbids."""
    numbers = np.asarray(given.table.column(slicing.column).to_numpy())
    for number in np.unique(numbers).tolist():
        part = given.table.filter(pa.array(numbers == number))
        if plan.orders:
            check_table(plan, part, given.file)
        begin = slicing.origin + number * slicing.length
        lower = ticks_of(part, plan.names.lower, plan)
        mine = (lower >= begin) & (lower < begin + slicing.length)
        times = cache(partial(_times, plan, part))
        one = replace(
            given, table=part, slicing=None, owned=mine, threads=1, scan_cache=ScanCache(), times=times
        )
        yield from _evaluated(plan, one, counters)()


def _branches(plan: EvaluationPlan, given: _Given) -> Iterator[tuple[int, EvaluationPlan]]:
    """Yield the branches of a plan with their numbers; of a sequence's readings those that can have a match.

    The readings of a plan that is open are numbered as they come.
    """
    readings, table = plan.readings, given.table
    if readings is None:
        yield from enumerate(plan.branches)
        return
    if not constants_hold(plan) or not table.num_rows:
        return
    times = given.times()
    whole, selection = all_candidates(plan, table, times.lower, times.upper, given.slicing, given.scan_cache)
    if given.diagnostics is not None and plan.window >= min(
        len(branch.components) for branch in plan.branches
    ):
        given.diagnostics.counted(whole, selection.sizes)
    possible = possible_readings(plan, readings, selection)
    if plan.is_open:
        for number, choice in enumerate(possible):
            yield number, plan_of_reading(plan, choice)
        return
    numbers = {choice: number for number, choice in enumerate(readings.choices)}
    for choice in possible:
        yield numbers[choice], plan.branches[numbers[choice]]


def _in_one_chunk(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return a table in which some columns are in one chunk each, so that they are copied no more."""
    places = {name: table.schema.get_field_index(name) for name in names}
    many = [name for name, place in places.items() if place >= 0 and table.column(place).num_chunks > 1]
    if not many:
        return table
    try:
        combined = table.select(many).combine_chunks()
    except MemoryError:
        raise
    except pa.ArrowException:
        # Arrow puts no dictionaries with a null together: the checks say which row has it.
        return table
    for name in many:
        table = table.set_column(places[name], table.schema.field(places[name]), combined.column(name))
    return table


def _needed(plan: EvaluationPlan, given: _Given) -> pa.Table:
    """Return the columns that a plan needs, each in one chunk."""
    own = [] if given.slicing is None else [given.slicing.column]
    return given.table.select([*plan.required_columns, *own]).combine_chunks()


def _evaluated(plan: EvaluationPlan, given: _Given, counters: Counters | None) -> Batches:
    """Return an iterator over matches among events of the model; with ``owned``, of owners among these.

    Raises what speaks against them.
    """
    slicing, owned, threads = given.slicing, given.owned, given.threads
    batch_rows, diagnostics = given.batch_rows, given.diagnostics
    if not constants_hold(plan) or not given.table.num_rows:
        return lambda: iter(())
    table = _needed(plan, given)
    times = given.times()
    undecided = _undecided(plan, given, table)
    pmfs = times.pmfs
    plan, times, moved_by = _by_one_clock(plan, table, times)
    asked = plan
    plan, selection, ticks, sequences = _selected(plan, table, times, slicing, given.scan_cache)
    if plan.order is None and plan.window < len(plan.components):
        return lambda: iter(())
    exists = existence(table, plan.names.probability)
    plan = as_evaluated(plan, exists)
    if diagnostics is not None:
        diagnostics.counted(plan, selection.sizes)
    if exists is not None:
        selection = exists.possible(selection)
    # The events of a Kleene component that come first are among those that come later.
    later = owned if plan.components[plan.owner].kleene else None
    if owned is not None and later is None:
        selection = selection.with_first(owned[selection.rows[plan.owner]], plan.owner)
    selection = feasible(plan, selection)
    if selection.empty:
        return lambda: iter(())
    query = plan.query
    ranked = query.order_by_confidence and query.limit is not None and not query.non_overlapping
    best_only = ranked and not plan.compressed
    # Sequences that forbid nothing are weighed behind the search, all of them where times are not uniform.
    weighed = clocks = likely = in_order = ties = None
    while_found = plan.needs_confidence
    if sequences is not None:
        from uncertain_cep.operators.sequenced_matches import sequence_weigher

        if sequences.is_spoiled_in_time(asked):
            in_order = InOrder(sequences, asked)
        elif sequences.breaks_ties(asked):
            ties = TiedEvents(sequences, as_evaluated(asked, exists))
        else:
            weighed = sequence_weigher(sequences, asked, table)
        pmfs, while_found = None, while_found and (sequences.is_total or ties is not None)
        if ties is not None:
            clocks, pmfs = shared_clocks(
                plan, table, offset_bounds(plan, table), times.pmfs, *sequences.times
            )
    elif times.offsets is not None:
        clocks, pmfs = shared_clocks(plan, table, times.offsets, pmfs, *ticks)
    by_row = (
        plan.counts
        or best_only
        or any(part is not None for part in (later, exists, sequences, moved_by, undecided))
    )
    ids = None if by_row else id_payload(plan, table)
    batch_rows = min(batch_rows, max(MOST_CELLS // len(plan.batch_schema), 1))
    if clocks is not None and plan.is_plain and query.strategy == "skip_till_any_match":
        from uncertain_cep.operators.shared_clocks import LikelyMatches, weigher

        weighed = weigher(clocks, plan.window, plan.needs_confidence, ids)
        # What is certain by its clock is weighed about as fast as bounds are.
        likely = LikelyMatches(clocks, plan.window) if clocks.has_law.any() else None
        while_found = False
    context = ExecutionContext(
        plan,
        table,
        selection,
        ticks,
        pmfs,
        ids if weighed is None else None,
        while_found,
        batch_rows,
        counters=counters,
        clocks=clocks,
        existence=exists,
        order=in_order,
        ties=ties,
        decided=None if undecided is None else partial(undecided.decided, wanted=_all_of),
    )
    operator = operator_of(plan)

    def found(among: Selection, threshold: Threshold | None = None) -> Iterator[MatchBatch]:
        if weighed is None:
            chunks = _owned(operator.matches(with_tree().among(among, threshold)), later)
            return chunks if moved_by is None else map(partial(_moved_back, moved_by, plan.owner), chunks)
        # What bounds confidences while joining takes times as independent.
        chunks = _owned(operator.matches(with_tree().among(among)), later)
        if likely is not None and threshold is not None:
            chunks = (chunk.keep(likely(chunk, threshold)) for chunk in chunks)
        return map(weighed, chunks)

    def wanted_of(chunk: MatchBatch) -> int:
        """Count the matches that HAVING keeps."""
        chunk = chunk if plan.counts else confident(plan, chunk)
        if plan.having is None or not len(chunk.lower):
            return len(chunk.lower)
        return int(had(plan, table, chunk, ids is not None).num_rows)

    def decided(chunks: Iterator[MatchBatch]) -> Iterator[MatchBatch]:
        if undecided is None:
            return chunks
        return (chunk.keep(undecided.decided(chunk, wanted_of)) for chunk in chunks)

    def matches(among: Selection, threshold: Threshold | None = None) -> Iterator[MatchBatch]:
        chunks = found(among, threshold)
        if exists is not None:
            chunks = (happened(chunk, exists.probability, plan.compressed) for chunk in chunks)
        return decided(chunks)

    def having(among: Selection, threshold: Threshold) -> Iterator[MatchBatch]:
        for chunk in matches(among, threshold):
            if plan.having is not None and chunk.confidence is not None:
                chunk = chunk.keep(chunk.confidence >= threshold.least)
                chunk = chunk.keep(kept_by_having(plan, table, chunk, False))
            yield chunk

    rising = _rising(plan, pmfs)

    @cache
    def with_tree() -> ExecutionContext:
        if not operator.plans_joins:
            return context
        inner, candidates, _ = moved(plan, selection)
        tree = choose(inner, table, candidates).tree
        return context if tree is None else replace(context, tree=tree)

    def batch_of(chunk: MatchBatch) -> tuple[pa.RecordBatch, ...]:
        """Return a batch of those of some matches that are wanted, if there are any."""
        wanted = confident(plan, chunk)
        if rising is not None and wanted.confidence is not None:
            wanted = wanted.keep(wanted.confidence >= rising.threshold.least)
        if not len(wanted.lower):
            return ()
        batch = had(plan, table, wanted, ids is not None)
        if rising is not None:
            rising.offer(np.asarray(batch.column("confidence").to_numpy()))
        return (batch,)

    def batches(part: Selection) -> Iterator[pa.RecordBatch]:
        if plan.counts:
            # Imports much that matches do without.
            from uncertain_cep.results.buckets import evaluate_bucketed
            from uncertain_cep.results.expected_counts import bucketed_counts, expected_counts

            if not _searched(plan):
                yield from expected_counts(
                    plan, table, part, pmfs, exists, lambda among: decided(found(among))
                )
            elif sequences is None or ties is not None:
                yield from bucketed_counts(plan, table, _owned(evaluate_bucketed(context.among(part)), later))
            else:
                from uncertain_cep.results.sequenced_counts import buckets_in_order

                bucketed = buckets_in_order(asked, table, sequences, exists, matches(part))
                yield from bucketed_counts(plan, table, bucketed)
        else:
            chunks = matches(part, _threshold(plan, pmfs) if rising is None else rising.threshold)
            # A loop would hold the last batch while the next one is found.
            yield from chain.from_iterable(map(batch_of, chunks))

    if counters is not None:
        threads = 1

    def run() -> Iterator[pa.RecordBatch]:
        # Planned once, before threads ask for the tree.
        with_tree()
        if best_only:
            best = best_chunk(plan, table, selection, having, threads)
            if best is not None and len(best.lower):
                yield to_batch(plan, table, best, False)
            return
        tasks: Sequence[Batches]
        tasks = [partial(_of_part, batches, part) for part in parts_of(plan, selection, threads)]
        if (meter := current_meter()) is not None:
            tasks = meter.count(tasks)
        yield from _limited(plan, side_by_side(threads, tasks))

    return run


def _all_of(chunk: MatchBatch) -> int:
    return len(chunk.lower)


def _undecided(plan: EvaluationPlan, given: _Given, table: pa.Table) -> UndecidedMatches | None:
    """Return a test for undecided matches; without a known end, for those behind the last event; or None."""
    end, diagnostics = plan.known_until, given.diagnostics
    times = given.times()
    find: Callable[[EvaluationPlan], Iterator[pa.RecordBatch]] | None = None
    if not plan.forbids or (end is None and (diagnostics is None or not plan.negations)):
        return None
    if end is None:
        last_tick = diagnostics.last_tick if diagnostics is not None else None
        end = int(times.upper.max()) if last_tick is None else last_tick
    else:
        rows = given.table.append_column(ROW, pa.array(np.arange(given.table.num_rows)))
        again = replace(given, table=rows, diagnostics=None, scan_cache=ScanCache(), threads=1)

        def find(asked: EvaluationPlan) -> Iterator[pa.RecordBatch]:
            return _evaluated(asked, again, None)()

    found = UndecidedMatches(plan, table, (times.lower, times.upper), end, find, diagnostics)
    return found or None


def _of_part(
    batches: Callable[[Selection], Iterator[pa.RecordBatch]], part: Callable[[], Selection]
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a part of the candidates, made by the thread that evaluates it."""
    some = part()
    if not some.empty:
        yield from batches(some)


def _searched(plan: EvaluationPlan) -> bool:
    """Return whether slices are evaluated one by one: events in several of them matter to matches in each."""
    by_bucket = plan.counts and plan.bound.every is not None
    is_next = plan.query.strategy == "skip_till_next_match"
    is_searched = not plan.is_plain or (by_bucket and (is_next or plan.clocks))
    return is_searched or plan.sequences or (plan.clocks and is_next)


def _owned(chunks: Iterator[MatchBatch], is_owned: Mask | None) -> Iterator[MatchBatch]:
    """Return the matches whose first component's event a slice owns; with None all."""
    return chunks if is_owned is None else (chunk.keep(is_owned[chunk.events[0]]) for chunk in chunks)


def _limited(plan: EvaluationPlan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches until LIMIT alone has enough."""
    query = plan.query
    if query.limit is None or query.is_ordered or query.non_overlapping:
        yield from batches
        return
    left = query.limit
    for batch in batches:
        yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return


def _threshold(plan: EvaluationPlan, pmfs: ExplicitPmfs | None) -> Threshold | None:
    """Return the threshold of HAVING, if upper bounds cost less or a join may be narrowed."""
    least = plan.least_confidence
    skips_any = plan.query.strategy == "skip_till_any_match"
    dear = not plan.is_plain or pmfs is not None or len(plan.components) not in LENGTHS or not skips_any
    if least <= 0.0 or not (dear or operator_of(plan).plans_joins):
        return None
    return Threshold(least_passing(least), is_worth_bounds=dear)


def _rising(plan: EvaluationPlan, pmfs: ExplicitPmfs | None) -> RisingThreshold | None:
    """Return the rising threshold of the k best, for an order by confidence and by more."""
    query = plan.query
    if query.limit is None or query.non_overlapping or plan.compressed or not plan.sort_keys:
        return None
    if plan.sort_keys[0] != SortKey("confidence", descending=True):
        return None
    asked = _threshold(plan, pmfs)
    return RisingThreshold(query.limit, Threshold(0.0 if asked is None else asked.least))


def confident(plan: EvaluationPlan, chunk: MatchBatch) -> MatchBatch:
    """Return the matches that HAVING keeps."""
    least = plan.query.min_confidence
    if least is None or chunk.confidence is None or chunk.at_least >= least_passing(least):
        return chunk
    return chunk.keep(passing(chunk.confidence, least))


def candidates(plan: EvaluationPlan, table: pa.Table, diagnostics: Diagnostics | None = None) -> Selection:
    """Check a table of events, and return the candidates of each component of an OR-free pattern."""
    table = with_marginals(plan, table)
    check_table(plan, table)
    plan, times, _ = _by_one_clock(plan, table, _times(plan, table))
    selection = _selected(plan, table, times, None)[1]
    if diagnostics is not None:
        diagnostics.about(plan)
        diagnostics.look(table)
        diagnostics.counted(plan, selection.sizes)
    return selection


def check_table(plan: EvaluationPlan, table: pa.Table, file: str | None = None) -> None:
    """Raise TraceError with every fault found if a table holds no events of the model."""
    faults = check_model(with_marginals(plan, table), plan.names, plan.domain, clocks=plan.clocks)
    if faults:
        raise TraceError([fault if file is None else replace(fault, file=file) for fault in faults])


def _is_sound(
    plan: EvaluationPlan, table: pa.Table, is_cut: bool, scan_cache: ScanCache, times: Callable[[], _Times]
) -> bool:
    """Return whether who looks up candidates has found no fault in the rows; False of few rows.

    What rows say of a clock has to agree, so they are not looked at apart then.
    """
    is_little = table.num_rows < WORTH_A_KERNEL and scan_cache.pieces(plan, table, plan.components) < 2
    if plan.clocks or is_little or check_columns(table.schema, plan.names):
        return False

    def is_sound(rows: pa.Table, extremes: tuple[int, int] | None) -> bool:
        return not check_values(rows, plan.names, plan.domain, extremes=extremes)

    names, bounds = plan.names, None
    # Keys and slices leave out rows, and pmfs cut off times, before these are gathered.
    as_given = not is_cut and not plan.split_keys and names.pmf not in table.column_names
    if as_given and not any(table.column(name).null_count for name in (names.lower, names.upper)):
        bounds = times().lower, times().upper
    try:
        return scan_cache.look(plan, table, plan.components, is_sound, bounds)
    except TraceError:
        # Whatever keeps predicates from being looked at, faults of the model are to be told first.
        return False


def _moved_back(by: MovedTimes, owner: int, chunk: MatchBatch) -> MatchBatch:
    """Return matches, found by the times of their clocks, whose events are rows, with their ranges."""
    row = chunk.events[owner]
    return replace(chunk, lower=chunk.lower + by.low[row], upper=chunk.upper + by.high[row])


def _selected(
    plan: EvaluationPlan,
    table: pa.Table,
    times: _Times,
    slicing: Slicing | None,
    scan_cache: ScanCache | None = None,
) -> tuple[EvaluationPlan, Selection, tuple[Int64, Int64], SequencedEvents | None]:
    """Return the plan to search by, the candidates, all events' times, and what sequences say of them."""
    lower, upper = times.lower, times.upper
    sequences = sequenced(plan, table, times.pmfs, lower, upper)
    if sequences is not None:
        plan, lower, upper = sequences.searched(plan)
    selection = select(plan, table, lower, upper, times.given[0], slicing, scan_cache)
    return plan, selection, (lower, upper), sequences


def constants_hold(plan: EvaluationPlan) -> bool:
    """Return whether the predicates that mention no variable are all true."""
    for predicate in plan.constant:
        found = constant_value(predicate)
        if not bool(found.data) or (found.valid is not None and not bool(found.valid)):
            return False
    return True


def ticks_of(table: pa.Table, name: str, plan: EvaluationPlan) -> Int64:
    """Return a time column in ticks, (n,) int64."""
    return plan.domain.ticks(table.column(name))
