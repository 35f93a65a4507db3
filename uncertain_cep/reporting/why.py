"""``uc.why``: the factors of a confidence, each a conditional of those before, in the order of the pattern.

The events are brought into the pattern one after the other: that each happened, and that it came behind those
that have to be before it. Then the window is asked for, then each condition on times, and last that nothing
forbidden happened in between. Each step is a smaller question to the engine, of the events of the match
alone; a factor is the probability of one step over that of the step before, so that they multiply up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import pyarrow as pa

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.query import Query, query_of, values_of
from uncertain_cep.reporting.match_factors import steps_of_matches
from uncertain_cep.results.display import MatchTable, percent
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.durations import Duration as Length
from uncertain_cep.traces.frames import as_arrow, event_table, library_of
from uncertain_cep.traces.spoiled_numbers import naming_spoiled_rows

__all__ = ["Factor", "Why", "factors_of", "why"]


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
    options = MatchOptions(names=Names.of(names), tick=tick, sources=sources, takes_spans=True)
    parsed = query_of(query, values_of(parameters))
    row = _as_row(match)
    table = with_all_bounds(event_table(events, options.names), options.names.lower)
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
    (steps,) = steps_of_matches(plan, table, row, options, strict=True)
    factors: list[Factor] = []
    before = 1.0
    for what, product in zip(steps.what, steps.product[:, 0].tolist(), strict=True):
        factors.append(Factor(what, product / before if before > 0.0 else 0.0, product))
        before = product
    return Why(tuple(factors), before)
