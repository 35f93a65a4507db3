"""``uc.why``: the factors of a confidence, each a conditional of those before, in the order of the pattern.

The events are brought into the pattern one after the other: that each happened, and that it came behind those
that have to be before it. Then the window is asked for, then each condition on times, and last that nothing
forbidden happened in between. Each step is a smaller question to the engine, of the events of the match
alone; a factor is the probability of one step over that of the step before, so that they multiply up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Final

import numpy as np
import pyarrow as pa

from uncertain_cep.boundary import public
from uncertain_cep.candidates.existence import existence
from uncertain_cep.config.tolerances import CONFIDENCE_TOLERANCE
from uncertain_cep.errors import OptionError
from uncertain_cep.executor import execute_within
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.query import Query, parse, query_of, values_of
from uncertain_cep.query.syntax import (
    Component,
    Conjunction,
    Disjunction,
    Duration,
    Expression,
    Pattern,
    Time,
    expressions_in,
)
from uncertain_cep.query.syntax import Sequence as Ordered
from uncertain_cep.reporting.in_words import length_of
from uncertain_cep.results.display import MatchTable, percent
from uncertain_cep.results.matched_events import matched_events
from uncertain_cep.results.order import finished
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.durations import Duration as Length
from uncertain_cep.traces.frames import as_arrow, event_table, library_of
from uncertain_cep.traces.spoiled_numbers import naming_spoiled_rows

__all__ = ["Factor", "Why", "factors_of", "why"]

_IN_BETWEEN: Final = "nothing forbidden happened in between"
_ELEMENT: Final = "."
"""Between a list and the number of an element: no variable has it in its name."""

_OTHERWISE: Final = "the conditions on times of lists"


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor of a confidence.

    Attributes
    ----------
    what : str
        What has to hold.
    probability : float
        That it does, given all before.
    product : float
        Of the factors up to here: the probability that all this holds.
    """

    what: str
    probability: float
    product: float


@dataclass(frozen=True, slots=True, repr=False)
class Why:
    """The factors of the confidence of a match, whose product it is.

    Attributes
    ----------
    factors : tuple of Factor
        In the order of the pattern; then the window, conditions on times, and what is forbidden.
    confidence : float

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 6]})
    >>> query = "PATTERN SEQ(A a, B b) WITHIN 4"
    >>> [factor.what for factor in uc.why(uc.match(events, query), events, query).factors]
    ['a before b', 'all within 4 ticks']
    """

    factors: tuple[Factor, ...]
    confidence: float

    def __repr__(self) -> str:
        return repr(self._shown())

    def _repr_html_(self) -> str:
        return f"{self._shown()._repr_html_()}<p>{escape(percent(self.confidence))}</p>"

    def _shown(self) -> MatchTable:
        columns = {
            "what": [factor.what for factor in self.factors],
            "probability": [percent(factor.probability) for factor in self.factors],
            "together": [percent(factor.product) for factor in self.factors],
        }
        return MatchTable(pa.table(columns), f"why {percent(self.confidence)}, each given all before:")


@public
def why(
    match: Any,
    events: Any,
    query: Query | str,
    *,
    names: Names | Mapping[str, str] | None = None,
    tick: Length | None = None,
    parameters: Mapping[str, Any] | None = None,
    sources: bool = True,
) -> Why:
    """Return why a match has its confidence: factors in the order of the pattern, whose product it is.

    Parameters
    ----------
    match : frame or mapping
        One row of what :func:`uncertain_cep.match` returned for this query, with its confidence.
    events : pyarrow.Table or RecordBatchReader, pandas or Polars DataFrame
        The events that were matched.
    query : Query or str
    names, tick, parameters, sources
        As they were for :func:`uncertain_cep.match`.

    Returns
    -------
    Why
        ``print`` and notebooks show it, :func:`uncertain_cep.plot.why` draws it.

    Raises
    ------
    OptionError
        If it is not one match, has no confidence, or is no match of the query in these events.
    QuerySyntaxError, QueryError, TraceError, ConfidenceCostError
        As of :func:`uncertain_cep.match`.

    Notes
    -----
    Each factor is a conditional of those before, so another order would have other factors. Each takes as
    long as the confidence of one match.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 6]})
    >>> query = "PATTERN SEQ(A a, B b) WITHIN 4"
    >>> result = uc.why(uc.match(events, query), events, query)
    >>> [round(factor.probability, 4) for factor in result.factors], result.confidence
    ([0.8125, 0.7692], 0.625)
    """
    if "pyspark" in (library_of(match), library_of(events)):
        raise OptionError("why reads frames in this process: collect the match and the events")
    options = MatchOptions(names=Names.of(names), tick=tick, sources=sources)
    parsed = query_of(query, values_of(parameters))
    row = _as_row(match)
    table = event_table(events, options.names)
    with naming_spoiled_rows(table):
        plan = make_plan(parsed, table.schema, options)
    return factors_of(plan, table, row, options)


def _as_row(match: Any) -> pa.Table:
    """Return one match as a table of one row with its confidence."""
    if isinstance(match, dict):
        match = pa.table({str(name): [value] for name, value in match.items()})
    row = as_arrow(match)
    if row.num_rows != 1:
        raise OptionError(f"why is about one match, and there are {row.num_rows:,}: give one row")
    if "confidence" not in row.column_names or row.column("confidence").null_count:
        raise OptionError("the match has no confidence: give the row as match returned it")
    return row


def factors_of(plan: EvaluationPlan, table: pa.Table, row: pa.Table, options: MatchOptions) -> Why:
    """Return the factors of the confidence of a match, a table of one row."""
    question = _Question.of(plan, table, row, options)
    confidence = float(row.column("confidence")[0].as_py())
    factors: list[Factor] = []
    product = 1.0
    for what, probability in question.steps():
        factors.append(Factor(what, probability / product if product > 0.0 else 0.0, probability))
        product = probability
    is_close = abs(product - confidence) <= 1e3 * CONFIDENCE_TOLERANCE * confidence
    if (product < confidence and not is_close) or not (question.leaves_open or is_close):
        raise OptionError("this is no match of the query in these events, or not with this confidence")
    if question.leaves_open:
        factors.append(Factor(question.leaves_open, confidence / product, confidence))
    else:
        # The same but for rounding.
        last = factors[-1]
        before = factors[-2].product if len(factors) > 1 else 1.0
        factors[-1] = Factor(last.what, confidence / before, confidence)
    return Why(tuple(factors), confidence)


@dataclass(frozen=True, slots=True)
class _Question:
    """The pattern of a match with an event for each component, and its events, each of a type of its own."""

    query: Query
    plan: EvaluationPlan
    table: pa.Table
    options: MatchOptions
    pattern: Pattern
    leaves: tuple[Component, ...]
    conditions: tuple[Expression, ...]
    """Those on times of single events."""
    leaves_open: str
    """What the steps do not ask for; empty if nothing is left."""

    @classmethod
    def of(cls, plan: EvaluationPlan, table: pa.Table, row: pa.Table, options: MatchOptions) -> _Question:
        (batch_of_match,) = [batch for batch in matched_events(plan, table, row) if len(batch.row)]
        members: dict[str, list[int]] = {}
        for component, number in zip(
            batch_of_match.component.tolist(), range(len(batch_of_match.row)), strict=True
        ):
            members.setdefault(batch_of_match.variables[component], []).append(number)
        pattern = _with_events(plan.query.pattern, members, Ordered)
        assert pattern is not None
        name = plan.names.type
        labels = pa.array([f"e{number}" for number in range(len(batch_of_match.row))])
        taken = table.take(pa.array(batch_of_match.row))
        taken = taken.set_column(taken.schema.get_field_index(name), name, labels)
        numbers = pa.array(np.arange(len(batch_of_match.row)))
        taken = taken.set_column(taken.schema.get_field_index(plan.names.id), plan.names.id, numbers)
        single = {part.variable for part in plan.components if not part.kleene} & members.keys()
        on_times = [
            (condition, {*map(_mentioned, expressions_in(condition))} - {""})
            for condition in plan.query.where
            if any(isinstance(part, Time) for part in expressions_in(condition))
        ]
        # One that mentions what is left out or negated is not asked of the events of the match.
        conditions = tuple(condition for condition, of in on_times if of <= single)
        several = any(of <= members.keys() and not of <= single for _, of in on_times)
        forbids = any(part.forbids for part in plan.or_free)
        left_open = _IN_BETWEEN if forbids else _OTHERWISE if several else ""
        leaves = tuple(_leaves(pattern))
        return cls(plan.query, plan, taken, options, pattern, leaves, conditions, left_open)

    def steps(self) -> Iterator[tuple[str, float]]:
        """Yield the conditions of a match one after the other, and how likely all up to each hold."""
        exists = existence(self.table, self.plan.names.probability)
        product = 1.0
        for count, leaf in enumerate(self.leaves, 1):
            number = int(leaf.types[0][1:])
            chance = 1.0 if exists is None else float(exists.probability[number])
            if chance < 1.0:
                product *= chance
                yield f"{_shown(leaf.variable)} happened", product
            before = _before(self.pattern, leaf.variable)
            if before:
                product = self._probability(count, (), None)
                yield f"{' and '.join(map(_shown, before))} before {_shown(leaf.variable)}", product
        window = self.query.window
        if len(self.leaves) > 1 and window is not None:
            yield f"all within {length_of(window)}", self._probability(len(self.leaves), (), window)
        for count, condition in enumerate(self.conditions, 1):
            yield self._text(condition), self._probability(len(self.leaves), self.conditions[:count], window)
        if len(self.leaves) == 1 and product == 1.0 and not self.conditions:
            yield f"{_shown(self.leaves[0].variable)} happened", 1.0

    def _probability(self, count: int, conditions: tuple[Expression, ...], window: Duration | None) -> float:
        """Return how likely the first events are in order, within a window, and meet conditions."""
        names = {leaf.variable for leaf in self.leaves[:count]}
        pattern = _only(self.pattern, names)
        assert pattern is not None
        plan = self._plan(pattern, conditions, self._longest() if window is None else window)
        rows = finished(plan, execute_within(plan, self.table, self.options, None))
        return float(rows.column("confidence")[0].as_py()) if rows.num_rows else 0.0

    def _plan(self, pattern: Pattern, conditions: tuple[Expression, ...], window: Duration) -> EvaluationPlan:
        if isinstance(pattern, Component):
            pattern = Ordered((pattern,), pattern.position)
        query = replace(parse("PATTERN SEQ(A a) WITHIN 1"), pattern=pattern, where=conditions, window=window)
        return make_plan(query, self.table.schema, self.options)

    def _text(self, condition: Expression) -> str:
        """Return a condition on times as a query writes it."""
        plan = self._plan(self.pattern, (condition,), self._longest())
        return " and ".join(part.text(plan.domain) for part in plan.bound.times)

    def _longest(self) -> Duration:
        """Return a window that never binds."""
        names, domain, window = self.plan.names, self.plan.domain, self.query.window
        assert window is not None
        low, high = (domain.ticks(self.table.column(name)) for name in (names.lower, names.upper))
        ticks = int(high.max() - low.min()) + 2
        if window.nanoseconds is None:
            return Duration(ticks, None, None, window.position)
        seconds = ticks * (domain.tick_nanoseconds or 1) // 10**9 + 1
        # A whole number of ticks, whatever their length.
        seconds *= max(1, (domain.tick_nanoseconds or 1) // 10**9)
        return Duration(seconds, "seconds", seconds * 10**9, window.position)


_Around = type[Ordered] | type[Conjunction]


def _with_events(pattern: Pattern, members: Mapping[str, Sequence[int]], around: _Around) -> Pattern | None:
    """Return a pattern of the events of a match, one for each component; None where it has none."""
    if isinstance(pattern, Component):
        if pattern.negated or pattern.variable not in members:
            return None
        numbers = members[pattern.variable]
        singles = [
            Component(
                (f"e{number}",),
                f"{pattern.variable}{_ELEMENT}{place}" if pattern.kleene else pattern.variable,
                kleene=False,
                negated=False,
                position=pattern.position,
            )
            for place, number in enumerate(numbers, 1)
        ]
        return singles[0] if len(singles) == 1 else around(tuple(singles), pattern.position)
    kind: _Around = Ordered
    if isinstance(pattern, Conjunction):
        kind = Conjunction
    elif isinstance(pattern, Disjunction):
        kind = around
    items = [part for item in pattern.items if (part := _with_events(item, members, kind)) is not None]
    if not items:
        return None
    return items[0] if len(items) == 1 else kind(tuple(items), pattern.position)


def _shown(variable: str) -> str:
    """Return a variable as a query writes it, or an element of a list."""
    name, _, place = variable.partition(_ELEMENT)
    return f"{name}[{place}]" if place else name


def _mentioned(part: Expression) -> str:
    """Return the variable that a part of an expression mentions, or nothing."""
    return str(getattr(part, "variable", ""))


def _leaves(pattern: Pattern) -> Iterator[Component]:
    if isinstance(pattern, Component):
        yield pattern
    else:
        for item in pattern.items:
            yield from _leaves(item)


def _only(pattern: Pattern, names: set[str]) -> Pattern | None:
    """Return the part of a pattern that has some variables."""
    if isinstance(pattern, Component):
        return pattern if pattern.variable in names else None
    items = tuple(part for item in pattern.items if (part := _only(item, names)) is not None)
    if not items:
        return None
    return items[0] if len(items) == 1 else replace(pattern, items=items)


def _before(pattern: Pattern, variable: str) -> list[str]:
    """Return the variables that have to be just before one, in the order of the pattern."""
    if isinstance(pattern, Component):
        return []
    for place, item in enumerate(pattern.items):
        if variable in {leaf.variable for leaf in _leaves(item)}:
            inner = _before(item, variable)
            if inner or not isinstance(pattern, Ordered) or not place:
                return inner
            return _last(pattern.items[place - 1])
    return []


def _last(pattern: Pattern) -> list[str]:
    """Return the variables that can be last."""
    if isinstance(pattern, Component):
        return [pattern.variable]
    items = pattern.items[-1:] if isinstance(pattern, Ordered) else pattern.items
    return [name for item in items for name in _last(item)]
