"""Why there is no match with certain events: the public question, and how its answer is put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.boundary import public
from uncertain_cep.errors import ConfidenceCostError, MatchExistsError, OptionError
from uncertain_cep.executor import execute_within
from uncertain_cep.misses.choice_times import ChoiceTimes, EventTimes
from uncertain_cep.misses.event_conditions import event_reasons, repeated_events
from uncertain_cep.misses.forbidding import forbidding_reasons
from uncertain_cep.misses.named_events import NamedEvents, named_events
from uncertain_cep.misses.nearby_choices import choices_nearby
from uncertain_cep.misses.positive_part import with_predicates
from uncertain_cep.misses.questions import Choice, Question, quietly
from uncertain_cep.misses.reasons import Miss, Move, Reason, WhyNot, rank_of
from uncertain_cep.misses.time_reasons import moves_of, time_reasons
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.plan.branch_taking import branch_taking
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.plan.options import is_whole
from uncertain_cep.plan.planning import plan_of_reading
from uncertain_cep.query import Query, query_of, values_of
from uncertain_cep.query.expression_text import quote_name
from uncertain_cep.query.repeated_groups import list_of
from uncertain_cep.results.display import percent, plain_text
from uncertain_cep.running.resource_limits import Limits, looked_at
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.durations import Duration
from uncertain_cep.traces.frames import event_table, library_of
from uncertain_cep.traces.spoiled_numbers import naming_spoiled_rows

__all__ = ["answered", "why_not"]


@public
def why_not(
    events: Any,
    query: Query | str,
    where: Mapping[str, Any] | None = None,
    *,
    misses: int = 3,
    names: Names | Mapping[str, str] | None = None,
    tick: Duration | None = None,
    parameters: Mapping[str, Any] | None = None,
    sources: bool = True,
    timeout: float | None = None,
    memory_limit: str | int | None = None,
    **ids: Any,
) -> WhyNot:
    """Return why certain events are no match, or why there is none with them, and the nearest misses.

    Parameters
    ----------
    events : pyarrow.Table or RecordBatchReader, pandas or Polars DataFrame
        As for :func:`uncertain_cep.match`; n rows.
    query : Query or str
    where : mapping, optional
        The same as ``**ids``, for variables that are called as an option is.
    misses : int
        Return at most so many misses, from 1 on.
    names, tick, parameters, sources
        As for :func:`uncertain_cep.match`.
    timeout, memory_limit
        As for :func:`uncertain_cep.match`.
    **ids
        The id of the event of a variable. Of a Kleene variable a list of all its ids, or one id that is to be
        among them; None for a variable that is left out. In a repeated group one id is that of any iteration,
        and a list has a place for each, None where it takes no event. A partition attribute stands for its
        value, where several partitions have an id. Variables that are not named may have any events.

    Returns
    -------
    WhyNot
        A notebook and ``print`` show it; see its fields. Conditions fail in every possible world, or they
        are no reason. Misses are sorted: by the number of conditions that fail whatever the times are, then
        by how many ticks are missing.

    Raises
    ------
    MatchExistsError
        If some world has a match with these events; it shows the match.
    OptionError
        If there is no such variable or event, an id is not unique, or the events are a Spark frame.
    QuerySyntaxError, QueryError, TraceError
        As of :func:`uncertain_cep.match`.
    TimeLimitError, MemoryLimitError
        If it takes longer, or more, than is allowed.

    Notes
    -----
    O(log of the missing ticks) searches of the engine, each stopped at ``misses`` matches; then for each miss
    O(events**3) for its times and one small search for each condition. HAVING, RETURN, ORDER BY and LIMIT do
    not count: a match that HAVING leaves out is a match.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({
    ...     "type": ["A", "B", "B"], "id": [17, 8, 9], "lower": [1, 14, 30], "upper": [3, 16, 32],
    ... })
    >>> answer = uc.why_not(events, "PATTERN SEQ(A a, B b) WITHIN 10", misses=1, a=17)
    >>> print(answer)
    no match with a = 17
    1. a = 17, b = 8: 2 ticks missing
       the window, WITHIN 10: b is at least 2 ticks too late after a (b from 14 on, a up to 3)
       possible if WITHIN were 12 instead of 10, or a could be 2 ticks later, or b could be 2 ticks earlier
    >>> answer.reasons[0].kind, answer.reasons[0].ticks
    ('window', 2)
    """
    if not is_whole(misses) or misses < 1:
        raise OptionError(f"misses={misses!r}: it must be a whole number, at least 1")
    options = MatchOptions(
        names=Names.of(names), tick=tick, sources=sources, limit=Limits.of(timeout, memory_limit)
    )
    named = {**(where or {}), **ids}
    return answered(events, query_of(query, values_of(parameters)), options, named, misses)


def answered(events: Any, query: Query, options: MatchOptions, ids: Mapping[str, Any], count: int) -> WhyNot:
    """Do what :func:`why_not` does, with its options in one."""
    if library_of(events) == "pyspark":
        raise OptionError("why_not looks at frames in this process: filter the events, and collect them")
    options = replace(options, takes_spans=True)
    table = with_all_bounds(event_table(events, options.names), options.names.lower)
    with naming_spoiled_rows(table):
        question = Question.of(query, table, options)
    with looked_at(options.limit), quietly():
        named = named_events(question, ids)
        _refuse_match(question, named)
        return _answer(question, named, count)


def _refuse_match(question: Question, named: NamedEvents) -> None:
    """Raise MatchExistsError if some world has a match with the named events."""
    record = next(_matches(question, named), None)
    if record is None:
        return
    plan = question.plan
    shown = {name: value for name, value in record.items() if name in plan.output_schema.names}
    text = ", ".join(f"{name} = {plain_text(value)}" for name, value in shown.items() if name not in _RANGE)
    chance = f", {percent(record['confidence'])}" if "confidence" in record else ""
    raise MatchExistsError(
        f"there is a match: {text}{chance}, from {record['range_lower']} to {record['range_upper']}", shown
    )


_RANGE: Final = ("range_lower", "range_upper", "confidence")


def _matches(question: Question, named: NamedEvents) -> Iterator[dict[str, Any]]:
    """Yield matches with the named events."""
    for confidence in (True, False):
        try:
            yield from _searched(question, named, confidence)
            return
        except ConfidenceCostError:
            if not confidence:
                raise


def _searched(question: Question, named: NamedEvents, confidence: bool) -> Iterator[dict[str, Any]]:
    options = replace(question.options, confidence=confidence, batch_rows=64, threads=1)
    if (
        question.is_countless
        or question.plan.query.strategy == "skip_till_next_match"
        or not named.by_variable
    ):
        # What an event could have been taken for may not depend on the named ones.
        table = _neighbourhood(question, named)
        for batch in execute_within(_with_confidence(question, confidence), table, options, None):
            yield from filter(named.are_in, batch.to_pylist())
        return
    for branch, placed in _placed(question.branches, named):
        bound = with_predicates(
            branch.bound, [*branch.bound.predicates, *placed.pins(branch)], branch.bound.equivalences
        )
        pinned = question.plan_of(replace(bound, window=question.window), options, question.table)
        variables = [part.variable for part in pinned.components]
        for batch in execute_within(pinned, question.table, options, None):
            for record in batch.to_pylist():
                rows = {name: _ids(question, record[name]) for name in variables}
                yield record | rows


def _with_confidence(question: Question, confidence: bool) -> EvaluationPlan:
    """Return the plan of the query, with or without confidences."""
    if confidence:
        return question.plan
    options = replace(question.options, confidence=False)
    return make_plan(question.plan.query, question.table.schema, options)


def _ids(question: Question, rows: Any) -> Any:
    """Return the ids of the events of one variable of a match."""
    if isinstance(rows, list):
        return [question.id_of(row) for row in rows]
    return None if rows is None else question.id_of(rows)


def _neighbourhood(question: Question, named: NamedEvents) -> pa.Table:
    """Return the events that can be in a match with the named ones, or in its gaps: those within a window."""
    if not named.rows:
        return question.table
    (lower, upper), rows, reach = question.times, np.array(named.rows), question.reach()
    near = question.near(int(lower[rows].max()) - reach, int(upper[rows].min()) + reach)
    return question.table.take(pa.array(near))


def _answer(question: Question, named: NamedEvents, count: int) -> WhyNot:
    """Return the answer about events that no match has."""
    if not question.table.num_rows:
        return WhyNot(dict(named.ids), (), tuple(_without_candidates(question, named)))
    events = EventTimes(question)
    nearby: list[tuple[EvaluationPlan, Choice]] = []
    rows = {name: listed_rows.rows for name, listed_rows in named.by_variable.items()}
    repeated = tuple(repeated_events(question, rows))
    if repeated:
        return WhyNot(dict(named.ids), (), repeated)
    branches, notes = _branches(question, named), list[str]()
    for branch, placed in branches:
        choice = placed.choice_of(branch)
        if choice is not None:
            nearby.append((branch, choice))
            continue
        nearby += [(branch, near) for near in choices_nearby(question, events, branch, placed, count)]
    misses = [_miss(question, events, branch, choice) for branch, choice in nearby]
    misses.sort(key=rank_of)
    misses = misses[:count]
    reasons = misses[0].reasons if misses else tuple(_without_candidates(question, named))
    readings = question.plan.open_readings
    if readings is not None and any(placed.choice_of(branch) is None for branch, placed in branches):
        looked = len({id(branch) for branch, _ in branches})
        if readings.count is None:
            notes = [f"the pattern has more readings than the {looked:,} looked at"]
        else:
            notes = [f"the pattern has {readings.count:,} readings; only {looked:,} of them were looked at"]
    return WhyNot(dict(named.ids), tuple(misses), reasons, tuple(notes))


def _placed(
    branches: Iterable[EvaluationPlan], named: NamedEvents
) -> Iterator[tuple[EvaluationPlan, NamedEvents]]:
    """Yield the branches that can have the named events, each with these by its variables."""
    for branch in branches:
        for placed in named.placed_in(branch.bound):
            yield branch, placed


def _branches(question: Question, named: NamedEvents) -> list[tuple[EvaluationPlan, NamedEvents]]:
    """Return the branches that can have the named events; of countless readings some."""
    if named.lengths:
        return [*_placed(_readings_of_lengths(question, named), named)]
    branches = [*_placed(question.branches, named)]
    if question.is_countless:
        taken = [name for name, events in named.by_variable.items() if events.rows]
        filled = branch_taking(question.plan, taken) if taken else None
        whole = [] if filled is None else [*_placed([filled], named)]
        if whole and all(placed.choice_of(branch) is not None for branch, placed in whole):
            branches = [*whole, *(each for each in branches if each[1].choice_of(each[0]) is None)]
    return branches


def _readings_of_lengths(question: Question, named: NamedEvents) -> list[EvaluationPlan]:
    """Return readings whose repeated groups stand as often as the lists that are named have places."""
    readings = question.plan.open_readings
    assert readings is not None
    for choices in (readings.covering_of(named.lengths), readings.choices_of(named.lengths)):
        fitting = [
            choice for choice in islice(choices, _MOST_READINGS)
            if any(True for _ in named.placed_in(readings.of(choice)))
        ]  # fmt: skip
        if fitting:
            return [plan_of_reading(question.plan, choice) for choice in fitting]
    return []


_MOST_READINGS: Final = 64
"""Of readings as long as the lists that are named at most so many are looked at."""


def _without_candidates(question: Question, named: NamedEvents) -> list[Reason]:
    """Return why no choice of events is even a miss: the variables that no event can be."""
    types = set(map(str, pc.unique(question.table.column(question.plan.names.type)).to_pylist()))
    reasons: dict[str, Reason] = {}
    for branch, placed in _branches(question, named):
        for part in branch.components:
            if part.types and part.variable not in placed.by_variable and not types.intersection(part.types):
                name, variable = " or ".join(map(quote_name, part.types)), list_of(part.variable)
                text = f"no event can be {variable}: none is of type {name}"
                reasons[variable] = Reason("candidates", name, (variable,), (), text)
    few = Reason("candidates", "events", (), (), "there are too few events for the pattern")
    return [*reasons.values()] or [few]


def _miss(question: Question, events: EventTimes, branch: EvaluationPlan, choice: Choice) -> Miss:
    """Return why a choice of events is no match."""
    rows = [choice[part.variable] for part in branch.components]
    times = ChoiceTimes(question, events, branch, rows)
    reasons = event_reasons(question, branch, choice)
    of_times = time_reasons(times)
    ticks: int | None = 0
    moves: tuple[Move, ...] = ()
    if of_times:
        ticks, moves = times.distance(), tuple(moves_of(times))
    elif not reasons:
        of_times = forbidding_reasons(times)
        amounts = [reason.ticks for reason in of_times]
        ticks = None if None in amounts or not amounts else max(amount or 0 for amount in amounts)
        moves = of_times[0].moves if len(of_times) == 1 else ()
        of_times = of_times or [_unknown(branch)]
    shown = {
        part.variable: _shown(question, branch, part.variable, choice) for part in question.plan.components
    }
    return Miss(shown, (*reasons, *of_times), ticks, question.duration(ticks), moves)


def _shown(question: Question, branch: EvaluationPlan, variable: str, choice: Choice) -> Any:
    """Return the id of the event of a variable, a list of all, or None if it is left out."""
    places = dict(branch.bound.places).get(variable)
    if places is not None:
        return [None if place is None else question.id_of(choice[place][0]) for place in places]
    if variable not in choice:
        return None
    ids = [question.id_of(row) for row in choice[variable]]
    kleene = any(part.kleene for part in branch.components if part.variable == variable)
    return ids if kleene else ids[0]


def _unknown(branch: EvaluationPlan) -> Reason:
    """Return the reason where each condition holds in some world, and none tells why not all do."""
    text = "each condition holds in some world, and no world meets all: the times' probabilities leave none"
    if branch.forbids:
        text += ", or other events forbid it in each"
    return Reason("together", "all conditions", (), (), text)
