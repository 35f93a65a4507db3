"""Open answers as tables: by the things that would decide most, and the most doubtful answers."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.resolving.open_answers import CLOCK, EXISTENCE, TIME, OpenAnswers
from uncertain_cep.results.projection import taken

__all__ = ["ANSWER_COLUMNS", "BY", "doubtful_answers", "nothing_open", "sources_table"]

Int64 = NDArray[np.int64]

BY: Final = ("source", "type", "event")
KINDS: Final = {TIME: "time", CLOCK: "clock", EXISTENCE: "existence"}

SOURCES: Final = pa.schema(
    [
        ("kind", pa.string()), ("name", pa.string()), ("answers", pa.int64()), ("brier_off", pa.float64()),
        ("share", pa.float64()), ("made_certain", pa.float64()),
    ]
)  # fmt: skip
ANSWER_COLUMNS: Final = (
    ("probability", pa.float64()), ("kind", pa.string()), ("name", pa.string()), ("brier_off", pa.float64()),
    ("made_certain", pa.float64()),
)  # fmt: skip
"""Of a doubtful answer, behind what it is about: the one thing that would decide most."""


def _text(column: pa.ChunkedArray, rows: Int64) -> pa.Array:
    """Return values of rows as text."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    values = taken(column, rows, kind)
    return pa.array([None if value is None else str(value) for value in values.to_pylist()], pa.string())


def names_of(plan: EvaluationPlan, answers: OpenAnswers, by: str) -> pa.Array:
    """Return the name of each thing that can be known, by "source", "type" or "event"."""
    table, names = answers.described.ticks.table, plan.names
    column = {"source": names.source, "type": names.type, "event": names.id}[by]
    if column in table.column_names:
        called = _text(table.column(column), answers.row)
    else:
        called = pa.nulls(len(answers.row), pa.string())
    if (source := plan.clock_names.source) is not None:
        clock = _text(table.column(source), answers.row)
        called = pc.if_else(pa.array(answers.kind == CLOCK), clock, called)
    return called


def sources_table(plan: EvaluationPlan, answers: OpenAnswers, by: str) -> pa.Table:
    """Return a row for each thing that can be known, that which decides most first.

    Columns: ``kind``; ``name``, null for events without a source; ``answers``, how many depend on it;
    ``brier_off``, how much their Brier scores fall on average once it is known, summed one at a time;
    ``share`` of all of that score; ``made_certain``, how many answers become certain on average.
    """
    columns = {
        "kind": pa.array(answers.kind),
        "name": names_of(plan, answers, by),
        "answer": pa.array(answers.answer),
        "brier_off": pa.array(answers.taken_off),
        "made_certain": pa.array(answers.made_certain),
    }
    table = pa.table(columns).group_by(["kind", "name"], use_threads=False)
    summed = table.aggregate([("answer", "count_distinct"), ("brier_off", "sum"), ("made_certain", "sum")])
    off = np.asarray(summed["brier_off_sum"])
    kinds = [KINDS[kind] for kind in summed["kind"].to_pylist()]
    total = float(answers.brier.sum())
    share = off / total if total > 0.0 else off
    made = np.asarray(summed["made_certain_sum"])
    names = summed["name"].combine_chunks()
    rows = pa.table(
        [pa.array(kinds, pa.string()), names, summed["answer_count_distinct"], off, share, made],
        schema=SOURCES,
    )
    return rows.sort_by([("brier_off", "descending"), ("kind", "ascending"), ("name", "ascending")])


def doubtful_answers(plan: EvaluationPlan, answers: OpenAnswers, by_match: bool, doubtful: int) -> pa.Table:
    """Return the answers whose probabilities are nearest to 1/2, each with what would decide most of it."""
    order = np.lexsort((np.arange(len(answers.code)), -np.round(answers.brier, 12)))
    order = order[answers.brier[order] > 1e-12][:doubtful]
    best = np.full(len(answers.code), -1)
    by_worth = np.argsort(answers.taken_off, kind="stable")
    best[answers.answer[by_worth]] = by_worth
    chosen = best[order]
    there = chosen >= 0
    names = names_of(plan, answers, "event")
    place = pa.array(np.maximum(chosen, 0), mask=~there)
    kinds = [KINDS[int(answers.kind[at])] if at >= 0 else None for at in chosen]

    def of_best(values: NDArray[np.float64]) -> pa.Array:
        return pa.array(np.where(there, np.append(values, 0.0)[chosen], 0.0))

    columns = _about(plan, answers, by_match, order)
    columns |= {
        "probability": pa.array(answers.probability[order]),
        "kind": pa.array(kinds, pa.string()),
        "name": names.take(place),
        "brier_off": of_best(answers.taken_off),
        "made_certain": of_best(answers.made_certain),
    }
    return pa.table(columns)


def _about(plan: EvaluationPlan, answers: OpenAnswers, by_match: bool, chosen: Int64) -> dict[str, pa.Array]:
    """Return the columns that tell what some answers are about."""
    if by_match:
        table, matches = answers.described.ticks.table, answers.described.matches
        return {
            part.variable: _text(
                table.column(plan.names.id), matches.first_rows(part.variable)[answers.code[chosen]]
            )
            for part in plan.components
        }
    columns = {
        key.column: answers.groups.column(number, answers.code[chosen], plan.output_schema.types[number])
        for number, key in enumerate(plan.bound.keys)
    }
    if plan.bound.every is not None:
        columns["bucket"] = plan.domain.times(answers.bucket[chosen])
    return columns


def nothing_open(plan: EvaluationPlan, by_match: bool) -> tuple[pa.Table, pa.Table]:
    """Return both tables of a query without answers."""
    if by_match:
        about = [pa.field(part.variable, pa.string()) for part in plan.components]
    else:
        about = list(plan.output_schema)[:-1]
    schema = pa.schema([*about, *(pa.field(name, kind) for name, kind in ANSWER_COLUMNS)])
    return SOURCES.empty_table(), schema.empty_table()
