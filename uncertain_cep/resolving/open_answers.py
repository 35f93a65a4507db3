"""The answers of a query, and what knowing each time, clock and event would leave open of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.groups import resolve_variables
from uncertain_cep.candidates.event_times import event_times
from uncertain_cep.candidates.marginals import with_marginals
from uncertain_cep.candidates.own_times import with_coded_clocks
from uncertain_cep.candidates.span_candidates import taken_types
from uncertain_cep.candidates.span_times import with_ends
from uncertain_cep.config.limits import MOST_GROUP_STEPS
from uncertain_cep.config.tuning import GROUPED_AT_ONCE
from uncertain_cep.errors import OptionError
from uncertain_cep.executor import execute_within
from uncertain_cep.occurrence.explicit_matches import TableTicks
from uncertain_cep.occurrence.match_groups import MatchGroups
from uncertain_cep.occurrence.numbered_matches import DescribedMatches, numbered_groups
from uncertain_cep.occurrence.probability_rows import refusal_of
from uncertain_cep.occurrence.row_matches import RowMatches
from uncertain_cep.plan import EvaluationPlan, MatchOptions
from uncertain_cep.plan.grouping import ROW_FIELD
from uncertain_cep.running.resource_limits import looked_at
from uncertain_cep.running.threads import side_by_side, threads_or_all

__all__ = ["CLOCK", "EXISTENCE", "TIME", "OpenAnswers", "open_answers"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

TIME, CLOCK, EXISTENCE = range(3)
"""Kinds of what can be known: when an event happened, the offset of a clock, whether an event happened."""

_TIED: Final = (
    "deciding does not support events that last of which begin and end are uncertain, and tied by bounds of "
    "the length: what is known of the one tells of the other. Give two equal bounds of the length, or none "
    "and an end that is behind the begin in any case"
)


@dataclass(frozen=True, slots=True)
class OpenAnswers:
    """The answers of a query, and for each what would leave less of it open.

    Attributes
    ----------
    groups : MatchGroups
        What the answers are about; of a query for matches, each match is one.
    of_match : (k,) int64
        The number of the answer that each match belongs to.
    described : DescribedMatches
    code, bucket : (g,) int64
        Of each answer, its group, and the first tick of its bucket.
    probability : (g,) float64
    answer : (v,) int64
        Of each thing that can be known, the answer that depends on it.
    kind, row : (v,) int64
        TIME, CLOCK or EXISTENCE; the row of the event among those of ``described``, one of the clock's.
    taken_off, made_certain : (v,) float64
        How much knowing it takes off the Brier score of the answer, and how likely that becomes certain.
    given_up : int
        How many things were too dear to weigh; they are not listed.
    """

    groups: MatchGroups
    of_match: Int64
    described: DescribedMatches
    code: Int64
    bucket: Int64
    probability: Float64
    answer: Int64
    kind: Int64
    row: Int64
    taken_off: Float64
    made_certain: Float64
    given_up: int

    @property
    def brier(self) -> Float64:
        """The expected Brier score P (1 - P) of each answer, (g,) float64."""
        return self.probability * (1.0 - self.probability)


@dataclass(frozen=True, slots=True)
class _Part:
    """Some answers, each with its variables."""

    code: Int64
    bucket: Int64
    probability: Float64
    answer: Int64
    variable: Int64
    taken_off: Float64
    made_certain: Float64
    given_up: int


def open_answers(
    plan: EvaluationPlan, table: pa.Table, options: MatchOptions, *, by_match: bool
) -> OpenAnswers | None:
    """Return the answers of a plan with RETURN PROBABILITY, and what is open of them; None if there is none.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
    options : MatchOptions
    by_match : bool
        Whether each match is an answer.

    Raises
    ------
    OptionError
        If the probability of a group would be refused.
    """
    assert plan.by_row is not None
    if plan.lasting:
        table = table.take(pa.array(np.flatnonzero(taken_types(plan, table))))
    rows = table.append_column(ROW_FIELD, pa.array(np.arange(table.num_rows)))
    batches = execute_within(plan.by_row, rows, replace(options, max_matches=None), None)
    matches = RowMatches.of(plan.by_row, batches)
    if not matches.count:
        return None
    with looked_at(options.limit):
        return _resolved(plan, table, matches, options, by_match)


def _resolved(
    plan: EvaluationPlan, table: pa.Table, matches: RowMatches, options: MatchOptions, by_match: bool
) -> OpenAnswers:
    table, spans = with_coded_clocks(plan, with_marginals(plan, table)).combine_chunks(), None
    if plan.lasting:
        plan, table, spans = with_ends(plan, table)
        assert plan.by_row is not None
        # No component of any type takes the rows of ends.
        matches = replace(matches, plan=plan.by_row)
    times = event_times(plan, table)
    ticks = TableTicks(table, times.lower, times.upper, times.in_table[0], spans)
    if refusal := refusal_of(plan, ticks, times.pmfs, matches):
        raise OptionError(refusal)
    described = DescribedMatches.of(plan, matches, ticks, times.offsets, times.pmfs)
    if described.spans is not None:
        raise OptionError(_TIED)
    groups = MatchGroups.of(plan, described)
    of_match = np.arange(matches.count) if by_match else groups.of_match
    threads = threads_or_all(options.threads)
    tasks = _tasks(plan, described, of_match)
    parts = list(side_by_side(threads, tasks))
    answers = np.cumsum([0, *(len(part.code) for part in parts)])
    variable = np.concatenate([part.variable for part in parts])
    kind, row = _named(described, variable)
    return OpenAnswers(
        groups=groups,
        of_match=of_match,
        described=described,
        code=np.concatenate([part.code for part in parts]),
        bucket=np.concatenate([part.bucket for part in parts]),
        probability=np.concatenate([part.probability for part in parts]),
        answer=np.concatenate([part.answer + begin for part, begin in zip(parts, answers, strict=False)]),
        kind=kind,
        row=row,
        taken_off=np.concatenate([part.taken_off for part in parts]),
        made_certain=np.concatenate([part.made_certain for part in parts]),
        given_up=sum(part.given_up for part in parts),
    )


def _tasks(
    plan: EvaluationPlan, described: DescribedMatches, of_match: Int64
) -> list[Callable[[], Iterator[_Part]]]:
    """Return tasks that together resolve all answers, those of a group together."""
    order = np.argsort(of_match, kind="stable")
    tasks: list[Callable[[], Iterator[_Part]]] = []
    begin = 0
    while begin < len(order):
        end = min(begin + GROUPED_AT_ONCE, len(order))
        # A group is not cut.
        end = int(np.searchsorted(of_match[order], of_match[order[end - 1]], side="right"))
        is_chosen = np.zeros(len(order), dtype=np.bool_)
        is_chosen[order[begin:end]] = True
        tasks.append(partial(_part, plan, described, of_match, is_chosen))
        begin = end
    return tasks


def _part(
    plan: EvaluationPlan, described: DescribedMatches, of_match: Int64, is_chosen: NDArray[np.bool_]
) -> Iterator[_Part]:
    checkpoint()
    numbered = numbered_groups(described, of_match, is_chosen, plan.bound.buckets)
    resolved = resolve_variables(numbered.groups, plan.at_least, MOST_GROUP_STEPS)
    sizes = np.diff(numbered.groups.variable_start)
    answer = np.repeat(np.arange(len(sizes)), sizes)
    probability = np.zeros(len(sizes))
    # That of any variable that was not given up; without variables a match is certain.
    probability[sizes == 0] = 1.0
    probability[answer[resolved.is_exact]] = resolved.probability[resolved.is_exact]
    used = resolved.is_exact & (resolved.taken_off > 0.0)
    yield _Part(
        numbered.code,
        numbered.bucket,
        np.minimum(probability, 1.0),
        answer[used],
        numbered.variable[used],
        resolved.taken_off[used],
        resolved.made_certain[used],
        int((~resolved.is_exact).sum()),
    )


def _named(described: DescribedMatches, variable: Int64) -> tuple[Int64, Int64]:
    """Return the kind of each variable, and the row that it is named after."""
    rows = len(described.ticks.lower)
    clocks = len(described.times.lower) - 2 * rows
    kind = np.select([variable < rows, variable < rows + clocks], [TIME, CLOCK], EXISTENCE)
    row = np.select([kind == TIME, kind == EXISTENCE], [variable, variable - rows - clocks], -1)
    if described.ticks.spans is not None:
        # Ends are behind all events.
        row = np.where(row >= 0, row % described.ticks.spans.events, row)
    of_clock = np.full(clocks, -1)
    parent = described.times.clock[:rows]
    has_clock = parent >= 0
    of_clock[parent[has_clock] - rows] = np.flatnonzero(has_clock)
    alone = (described.times.variable >= rows) & (described.times.variable < rows + clocks)
    of_clock[described.times.variable[alone] - rows] = np.flatnonzero(alone)
    is_clock = kind == CLOCK
    row[is_clock] = of_clock[variable[is_clock] - rows]
    if (offsets := described.offsets) is not None:
        # The whole time of the one event of a clock may be as uncertain as the clock alone.
        spread = (offsets.high - offsets.low)[offsets.clock]
        by_clock = (parent < 0) & (spread > 0) & (described.ticks.upper - described.ticks.lower == spread)
        kind[(kind == TIME) & by_clock[np.maximum(row, 0)]] = CLOCK
    return kind, row
