"""Matches that differ in one event alone, as groups, and what would decide whether a group has a match."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.config.limits import GROUPED_MATCHES
from uncertain_cep.config.tolerances import CERTAIN
from uncertain_cep.errors import UncertainCepError, UncertainCepWarning
from uncertain_cep.plan import EvaluationPlan, MatchOptions, make_plan
from uncertain_cep.plan.grouping import of_matches
from uncertain_cep.query import Query
from uncertain_cep.query.syntax import GroupName, Position, Probability
from uncertain_cep.reporting.occurrences import (
    Occurrences,
    bounded_rows,
    grouped_matches,
    groups_of,
    keys_of_matches,
    occurrences_of,
)
from uncertain_cep.reporting.true_answers import codes_of_keys
from uncertain_cep.resolving.decided import decided
from uncertain_cep.resolving.shown import thing_of
from uncertain_cep.results.display import percent

__all__ = [
    "SharedEvents",
    "names_without_one",
    "query_by_others",
    "sentences_of",
    "shared_events",
    "varying",
]

Int64 = NDArray[np.int64]

_HERE = Position(1, 1)

HARDLY = 0.0005
"""A probability that is shown as less than .1%."""

DOUBTFUL = 500
"""Most groups of which a page says what would decide them: the most doubtful ones."""


@dataclass(frozen=True, slots=True)
class SharedEvents:
    """Groups of matches that have all events but one in common.

    Attributes
    ----------
    over : str
        The variable whose events differ.
    groups : Occurrences
        The groups of the matches that are shown; ``of_match`` is that of these.
    total : int
        How many groups all matches have.
    sentences : list of str
        What would decide each group; empty for one that is not doubtful, or where it is not known.
    """

    over: str
    groups: Occurrences
    total: int
    sentences: list[str]


def shared_events(
    plan: EvaluationPlan, table: pa.Table, matches: pa.Table, shown: Int64, options: MatchOptions
) -> SharedEvents | None:
    """Return the matches in groups that differ in one event; None if these are not half as many.

    Of more than ``GROUPED_MATCHES`` matches, how likely a group has one is between bounds.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
        The events.
    matches : pyarrow.Table
        All of them.
    shown : (n,) int64
        The numbers of the matches that the page has.
    options : MatchOptions
    """
    counts = {
        over: len(np.unique(codes_of_keys((matches,), names)))
        for over, names in names_without_one(plan, matches.num_rows).items()
    }
    over = varying(plan, counts, matches.num_rows)
    if over is None:
        return None
    query = query_by_others(plan, over)
    try:
        grouped = make_plan(query, table.schema, replace(options, undecided="bounds"))
        keys = keys_of_matches(grouped, plan, table, matches)
        each = grouped_matches(keys, matches.column("confidence"))
        if matches.num_rows <= GROUPED_MATCHES:
            rows = groups_of(grouped, table, options)
        else:
            rows = bounded_rows(grouped, plan, each)
        groups = None if rows is None else occurrences_of(grouped, rows, each, keys.take(pa.array(shown)))
    except UncertainCepError:
        return None
    if groups is None:
        return None
    return SharedEvents(over, groups, counts[over], sentences_of(query, groups, table, options))


def names_without_one(plan: EvaluationPlan, matches: int) -> dict[str, list[str]]:
    """Return for each variable the columns that matches of a group over it agree on; empty for one match."""
    variables = [part.variable for part in plan.components]
    if len(variables) < 2 or matches < 2:
        return {}
    keys = plan.partition_attributes
    return {over: [*keys, *(name for name in variables if name != over)] for over in variables}


def varying(plan: EvaluationPlan, counts: Mapping[str, int], matches: int) -> str | None:
    """Return the variable whose events differ within groups; None if these are not half as many as matches.

    Parameters
    ----------
    plan : EvaluationPlan
    counts : mapping
        For each variable how many groups there are over it.
    matches : int
    """
    over = min(counts, key=lambda name: counts[name], default=None)
    if over is None or 2 * counts[over] > matches:
        return None
    return None if any(part.kleene for part in plan.components if part.variable != over) else over


def query_by_others(plan: EvaluationPlan, over: str) -> Query:
    """Return the query that says how likely each group over a variable has a match."""
    by = tuple(GroupName(None, name, _HERE) for name in names_without_one(plan, 2)[over])
    return replace(of_matches(plan.query), probability=Probability(1, "probability", by, None, _HERE))


def sentences_of(query: Query, groups: Occurrences, table: pa.Table, options: MatchOptions) -> list[str]:
    """Return for each row of groups a sentence of what would decide it; empty where nothing is known.

    Parameters
    ----------
    query : Query
        That of the groups, with RETURN PROBABILITY.
    groups : Occurrences
    table : pyarrow.Table
        The events.
    options : MatchOptions
    """
    sentences = [""] * groups.rows.num_rows
    names = [name for name in groups.rows.column_names if name in _about(groups)]
    if int(groups.matches.sum()) > GROUPED_MATCHES:
        return sentences
    try:
        with warnings.catch_warnings():
            # Things too dear to weigh are left out.
            warnings.simplefilter("ignore", UncertainCepWarning)
            answers = decided(query, table, replace(options, undecided="error"), "event", DOUBTFUL).answers
    except UncertainCepError:
        return sentences
    codes = codes_of_keys((groups.rows.select(names), answers.select(names)), names)
    rows = {code: row for row, code in enumerate(codes[: groups.rows.num_rows].tolist())}
    things = answers.select(["kind", "name", "made_certain", "probability"]).to_pylist()
    for code, answer in zip(codes[groups.rows.num_rows :].tolist(), things, strict=True):
        if code in rows and answer["kind"] is not None:
            thing = thing_of(answer["kind"], "event", answer["name"])
            sentences[rows[code]] = f"Most depends on {thing}{_then(answer['made_certain'])}"
    return sentences


def _then(made_certain: float) -> str:
    """Return the end of a sentence: how likely a group is decided once a thing is known."""
    if made_certain >= CERTAIN:
        return ": once that is known, this is certain or ruled out."
    if made_certain < HARDLY:
        return ". Once that is known, this still stays open."
    chance = percent(made_certain)
    return f": once that is known, this is certain or ruled out with probability {chance}."


def _about(groups: Occurrences) -> list[str]:
    """Return the columns that tell groups apart."""
    return [*(key.column for key in groups.plan.bound.keys), *(["bucket"] if groups.plan.bound.every else [])]
