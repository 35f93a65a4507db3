"""``uc.calibration``: whether answers happened as often as was said."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError
from uncertain_cep.expressions.codes import codes_of, nulls_as_key
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.plan.options import is_whole
from uncertain_cep.plurals import counted
from uncertain_cep.query import Query, query_of, values_of
from uncertain_cep.reporting.true_answers import NOT_NAMED, Truth, places_among, true_answers
from uncertain_cep.results.display import MatchTable, visible
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.durations import Duration
from uncertain_cep.traces.frames import as_arrow, event_table, library_of, like
from uncertain_cep.traces.spoiled_numbers import naming_spoiled_rows

__all__ = ["Calibration", "binned", "calibration", "calibration_of"]

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Bools = NDArray[np.bool_]

BINS: Final = 10
"""Bins of equal length between 0 and 1, unless the caller says otherwise."""

_VALUES: Final = ("confidence", "probability")
"""Columns that say how likely an answer is."""

_NO_ANSWERS: Final = "There is no answer to judge."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Calibration:
    """How often answers happened, beside what was said of them.

    Attributes
    ----------
    sentence : str
        Both sums, and where they differ most.
    bins : frame
        A row for each bin of probabilities that has answers: ``lower`` and ``upper``, ``answers`` (how many),
        ``said`` (their mean probability), ``happened`` (the share that did), ``std_error`` (of that share,
        if ``said`` were right).
    count : int
        How many answers were judged.
    said : float
        How many of them were expected to happen: the sum of their probabilities.
    happened : int
        How many did.
    brier : float
        The mean square of the difference: 0 is perfect; NaN without answers.
    missing : int
        How many answers happened that are not among those judged, such as those that LIMIT cut off.
    outside : int
        How many events have a true time outside their interval, so that answers may be wrong.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> matches = pa.table({"confidence": [0.25, 0.25, 0.25, 1.0]})
    >>> result = uc.calibration(matches, [True, False, False, True])
    >>> result.said, result.happened, round(result.brier, 3)
    (1.75, 2, 0.172)
    """

    sentence: str
    bins: Any
    count: int
    said: float
    happened: int
    brier: float
    missing: int
    outside: int
    _table: pa.Table

    def __repr__(self) -> str:
        return f"{visible(self.sentence)}\n{self._shown()!r}" if self.count else self.sentence

    def _repr_html_(self) -> str:
        shown = self._shown()._repr_html_() if self.count else ""
        return f"<p>{escape(self.sentence)}</p>{shown}"

    def _shown(self) -> MatchTable:
        columns: dict[str, Any] = {"from": [], "to": [], "answers": [], "said": [], "happened": []}
        for row in self._table.to_pylist():
            for name, value in (("from", row["lower"]), ("to", row["upper"])):
                columns[name].append(f"{100 * value:.4g}%")
            columns["answers"].append(row["answers"])
            columns["said"].append(percent_of(row["said"]))
            columns["happened"].append(percent_of(row["happened"]))
        columns["std_error"] = [float(f"{value:.3g}") for value in self._table["std_error"].to_pylist()]
        return MatchTable(pa.table(columns), "of answers by their probability, how many happened:")


@public
def calibration(
    matches: Any,
    truth: Any,
    *,
    events: Any = None,
    query: Query | str | None = None,
    bins: int = BINS,
    by: str | None = None,
    names: Names | Mapping[str, str] | None = None,
    tick: Duration | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Calibration:
    """Compare the probabilities of answers with how many of these answers happened.

    Of those of which 0.7 was said, seven in ten should have happened.

    Parameters
    ----------
    matches : frame
        What :func:`uncertain_cep.match` returned, or some of its rows: matches, or the groups of RETURN
        PROBABILITY.
    truth : frame, column name, or sequence of bool
        What happened. A frame: what :func:`uncertain_cep.match` returned for the same query where times are
        certain; an answer that is there happened. With ``events`` and ``query``, the name of their column of
        true times: the query is then matched at those times. An event without a true time did not happen. Of
        events that last a tuple of two, of true begins and true ends; an event that does not last has its
        time in the first.
        Without events, the name of a column of ``matches`` that says of each row whether it happened, or a
        bool for each row.
    events : frame, optional
        The events that were matched, with their true times.
    query : Query or str, optional
        The query that they were matched with. Its HAVING, LIMIT and OUTPUT are left out.
    bins : int
        Number of bins of equal length between 0 and 1.
    by : str, optional
        A column of ``matches``, such as the host: answers with different values are independent of each
        other. It makes standard errors honest where answers share events. Default: every answer is taken to
        be independent of the others, so that errors are too small where they share some.
    names, tick, parameters
        As for :func:`uncertain_cep.match`.

    Returns
    -------
    Calibration
        ``print`` and notebooks show it, :func:`uncertain_cep.plot.calibration` draws it.

    Raises
    ------
    OptionError
        If a column is not there, ``truth`` does not fit the matches or the events, or a value has no meaning.
    QuerySyntaxError, QueryError, TraceError
        As of :func:`uncertain_cep.match`.

    Notes
    -----
    O(answers log answers), and with true times one more call of match, whose times are certain.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({
    ...     "type": ["A", "B", "B"], "id": [7, 8, 9], "lower": [1, 3, 0], "upper": [4, 4, 9], "at": [4, 4, 5],
    ... })
    >>> query = "PATTERN SEQ(A a, B b) WITHIN 20"
    >>> result = uc.calibration(uc.match(events, query), "at", events=events, query=query)
    >>> result.count, result.said, result.happened
    (2, 1.275, 1)
    """
    if not is_whole(bins) or bins < 1:
        raise OptionError(f"bins={bins!r}: it must be a whole number, at least 1")
    if (events is None) != (query is None):
        raise OptionError("give the events and the query that they were matched with, or none of both")
    if "pyspark" in map(library_of, (matches, truth, events)):
        raise OptionError("calibration reads frames in this process: collect the matches, with toArrow()")
    table = as_arrow(matches)
    if query is None:
        column = next((name for name in _VALUES if name in table.column_names), "confidence")
        happened, missing, outside = *_as_given(table, truth), 0
    else:
        parsed, options = (
            query_of(query, values_of(parameters)),
            MatchOptions(names=Names.of(names), tick=tick, takes_spans=True),
        )
        column = "confidence" if parsed.probability is None else parsed.probability.name
        happened, missing, outside = _at_column(table, truth, events, parsed, options)
    _check_column(table, column)
    result = binned(_probabilities(table, column), happened, bins, _clusters(table, by))
    return replace(result, bins=like(result.bins, matches), missing=missing, outside=outside)


def calibration_of(
    plan: EvaluationPlan, table: pa.Table, answers: pa.Table, options: MatchOptions, truth: Truth
) -> Calibration:
    """Return the calibration of all answers of a plan, by the columns of true times of its events."""
    clause = plan.query.probability
    happened, missing, outside = _at_true_times(plan, table, answers, options, truth)
    probability = _probabilities(answers, "confidence" if clause is None else clause.name)
    result = binned(probability, happened, BINS, np.arange(len(probability)))
    return replace(result, missing=missing, outside=outside)


def _probabilities(answers: pa.Table, column: str) -> Float64:
    """Return how likely answers are, (n,) float64, NaN where that is undecided."""
    return np.asarray(answers.column(column).cast(pa.float64()).fill_null(math.nan).to_numpy())


def _check_column(table: pa.Table, name: str) -> None:
    if name not in table.column_names:
        raise OptionError(f"the matches have no column {name}: they have {', '.join(table.column_names)}")


def _at_column(
    matches: pa.Table, truth: Any, events: Any, query: Query, options: MatchOptions
) -> tuple[Bools, int, int]:
    """Return a mask of matches that happened, and how often others did and times are outside."""
    if query.expected_count is not None:
        raise OptionError("the query returns expected counts: ask for matches, or with RETURN PROBABILITY")
    names = truth if isinstance(truth, tuple) else (truth,)
    if len(names) > 2 or not names or not all(isinstance(name, str) for name in names):
        raise OptionError(
            f"truth={truth!r}: with events, it is the name of their column of true times, or of true begins "
            "and ends"
        )
    table = with_all_bounds(event_table(events, options.names), options.names.lower)
    with naming_spoiled_rows(table):
        plan = make_plan(query, table.schema, options)
        return _at_true_times(plan, table, matches, options, truth)


def _at_true_times(
    plan: EvaluationPlan, table: pa.Table, matches: pa.Table, options: MatchOptions, truth: Truth
) -> tuple[Bools, int, int]:
    """Return a mask of matches that happened, and how often others did and times are outside."""
    there = true_answers(plan, table, options, truth)
    happened = places_among(matches, there.answers, there.keys) >= 0
    return happened, there.answers.num_rows - int(happened.sum()), there.outside


def _as_given(matches: pa.Table, truth: Any) -> tuple[Bools, int]:
    """Return a mask of the matches that happened, as the caller says, and the number of other true ones."""
    if isinstance(truth, str):
        _check_column(matches, truth)
        truth = matches.column(truth)
    bools = _bools(truth)
    if bools is not None:
        if len(bools) != matches.num_rows:
            raise OptionError(f"truth has {len(bools):,} values, and there are {matches.num_rows:,} matches")
        return bools, 0
    those_true = as_arrow(truth)
    keys = [
        name for name in matches.column_names if name in those_true.column_names and name not in NOT_NAMED
    ]
    if not keys:
        raise OptionError(
            "the matches and those that happened share no column that names events: give what match returned "
            "for one query, or a bool for each row"
        )
    happened = places_among(matches, those_true, keys) >= 0
    return happened, those_true.num_rows - int(happened.sum())


def _bools(truth: Any) -> Bools | None:
    """Return bools of a sequence, a series or an array; None of anything else."""
    if isinstance(truth, pa.Array | pa.ChunkedArray):
        values: Any = truth.to_pylist()
    elif isinstance(truth, list | tuple) or (hasattr(truth, "dtype") and hasattr(truth, "__len__")):
        values = list(truth)
    else:
        return None
    if not all(isinstance(value, bool | np.bool_) for value in values):
        raise OptionError("truth must be true or false for each row, and no row may be without")
    return np.array(values, dtype=np.bool_)


def _clusters(matches: pa.Table, by: str | None) -> Int64:
    """Return a number for the cluster of each answer, (n,) int64."""
    if by is None:
        return np.arange(matches.num_rows)
    if not isinstance(by, str):
        raise OptionError(f"by={by!r}: it must be the name of a column of the matches")
    _check_column(matches, by)
    return nulls_as_key(codes_of([matches.column(by)])[0][0])


def binned(probability: Float64, happened: Bools, bins: int, cluster: Int64) -> Calibration:
    """Return the calibration of answers.

    Parameters
    ----------
    probability : (n,) float64
        NaN where it is undecided: such answers are left out.
    happened : (n,) bool
    bins : int
    cluster : (n,) int64
        Those of different clusters are independent.
    """
    judged = ~np.isnan(probability)
    probability, happened, cluster = probability[judged], happened[judged], cluster[judged]
    count = len(probability)
    number = np.clip(np.floor(probability * bins), 0, bins - 1).astype(np.int64)
    answers = np.bincount(number, minlength=bins)
    said = np.bincount(number, probability, bins)
    came = np.bincount(number, happened, bins)
    # The variance of a sum is that of the sums of clusters, each of mean 0 if what was said is right.
    code = np.unique(cluster, return_inverse=True)[1].reshape(-1) * bins + number
    of_cluster = np.bincount(code, happened - probability, minlength=bins * (int(code.max(initial=0)) + 1))
    error = np.sqrt((of_cluster.reshape(-1, bins) ** 2).sum(axis=0))
    there = np.flatnonzero(answers)
    table = pa.table(
        {
            "lower": there / bins,
            "upper": (there + 1) / bins,
            "answers": answers[there],
            "said": said[there] / answers[there],
            "happened": came[there] / answers[there],
            "std_error": error[there] / answers[there],
        }
    )
    brier = float(np.mean((probability - happened) ** 2)) if count else math.nan
    total, number_of_true = float(said.sum()), int(happened.sum())
    sentence = _sentence(table, total, number_of_true, brier)
    return Calibration(sentence, table, count, total, number_of_true, brier, 0, 0, table)


def _sentence(table: pa.Table, said: float, happened: int, brier: float) -> str:
    rows = table.to_pylist()
    if not rows:
        return _NO_ANSWERS
    count = sum(row["answers"] for row in rows)
    text = (
        f"{counted(count, 'answer')}: {said:,.1f} expected, {happened:,} happened (Brier score {brier:.3g})."
    )
    worst = max(rows, key=lambda row: abs(row["happened"] - row["said"]) * row["answers"])
    return (
        f"{text} They differ most where {100 * worst['lower']:.4g}% to {100 * worst['upper']:.4g}% was said: "
        f"of {counted(worst['answers'], 'answer')}, {percent_of(worst['said'])} on average, "
        f"{percent_of(worst['happened'])} happened."
    )


def percent_of(share: float) -> str:
    """Return a share as a percentage with at most one digit behind the point."""
    return f"{100 * share:.1f}".removesuffix(".0") + "%"
