"""The things that would decide the answers of a query, to look at: one sentence, and the tables behind it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.plurals import counted
from uncertain_cep.resolving.open_answers import OpenAnswers

__all__ = ["Deciding", "sentence_of"]

_SHOWN = 10
"""Rows of a table that are printed."""


@dataclass(frozen=True, slots=True, eq=False)
class Deciding:
    """The things that would decide the answers of a query.

    Attributes
    ----------
    sentence : str
        What would decide most.
    sources : frame
        For each clock, and each source, type or event: ``kind`` (``clock``, ``time`` or ``existence``),
        ``name``, ``answers`` (how many depend on it), ``brier_off`` (how much the expected Brier scores
        P (1 - P) of the answers fall once it is known, summed), ``share`` of all of that, and
        ``made_certain`` (how many answers become certain, on average). That which decides most comes first.
        Each is the effect of knowing one event's time, or one clock, and nothing else: effects do not add up
        to that of knowing several.
    answers : frame
        The most doubtful answers: what they are about, their ``probability``, and the ``kind`` and ``name``
        of the one thing that would decide most, with its ``brier_off`` and how likely it makes the answer
        certain.
    count : int
        How many answers there are.
    open : float
        The sum of their Brier scores.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [0, 5], "upper": [9, 5]})
    >>> uc.deciding(events, "PATTERN SEQ(A a, B b) WITHIN 99").open
    0.25
    """

    sentence: str
    sources: Any
    answers: Any
    count: int
    open: float
    _tables: tuple[pa.Table, pa.Table]

    def __str__(self) -> str:
        """Return the sentence, and the first rows of both tables."""
        sources, answers = self._tables
        parts = [self.sentence]
        if sources.num_rows:
            parts.append(_as_text(sources))
        if answers.num_rows:
            parts.append(
                "the most doubtful answers, and what would decide most of each:\n" + _as_text(answers)
            )
        return "\n\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        tables = [_as_html(table) for table in self._tables if table.num_rows]
        return "".join((f"<p>{escape(self.sentence)}</p>", *tables))


def _cells(table: pa.Table) -> list[list[str]]:
    """Return the first rows of a table as text, under its header."""
    columns = []
    for field, column in zip(table.schema, table.slice(0, _SHOWN).columns, strict=True):
        values = column.to_pylist()
        if field.name == "share":
            cells = [f"{value:.2%}" for value in values]
        elif pa.types.is_floating(field.type):
            cells = [f"{value:.3f}" for value in values]
        else:
            cells = ["" if value is None else str(value) for value in values]
        columns.append([field.name, *cells])
    return [list(row) for row in zip(*columns, strict=True)]


def _as_text(table: pa.Table) -> str:
    rows = _cells(table)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    is_number = [
        pa.types.is_floating(field.type) or pa.types.is_integer(field.type) for field in table.schema
    ]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_number, strict=True)
        ).rstrip()
        for row in rows
    ]
    left_out = table.num_rows - len(rows) + 1
    if left_out > 0:
        lines.append(f"... and {left_out:,} more")
    return "\n".join(lines)


def _as_html(table: pa.Table) -> str:
    header, *rows = _cells(table)
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def sentence_of(answers: OpenAnswers | None, sources: pa.Table, by: str) -> str:
    """Return a sentence of the things that would decide most of some answers."""
    if answers is None:
        return "There is no match, so nothing is open."
    count = counted(len(answers.code), "answer")
    total = float(answers.brier.sum())
    if total <= 1e-12 * len(answers.code):
        return f"All of {count} are certain." if len(answers.code) > 1 else "The one answer is certain."
    shares = dict.fromkeys(("time", "clock", "existence"), 0.0)
    for row in sources.select(["kind", "share"]).to_pylist():
        shares[row["kind"]] += row["share"]
    said = "; ".join(
        f"{_THINGS[kind]} {share:.2%}" for kind, share in sorted(shares.items(), key=_falling) if share > 0.0
    )
    text = f"Of what is open in {count} (Brier score {total:.4g}), one known at a time takes off: {said}."
    first = sources.slice(0, 1).to_pylist()
    if not first or first[0]["share"] <= 0.0:
        return text
    thing = _called(first[0]["kind"], by, first[0]["name"])
    return f"{text} Most depends on {thing} ({first[0]['share']:.2%}). {_advice(shares)}"


_THINGS: Final = {
    "time": "times of events within their intervals",
    "clock": "offsets of clocks",
    "existence": "whether events happened",
}


def _falling(pair: tuple[str, float]) -> float:
    return -pair[1]


def _called(kind: str, by: str, name: str | None) -> str:
    """Return the thing that a row of the table speaks of."""
    if kind == "clock":
        return f"the clock {name}"
    word = "when" if kind == "time" else "whether"
    if name is None:
        return f"{word} events without a source happened"
    return {
        "source": f"{word} the events of {name} happened",
        "type": f"{word} events of type {name} happened",
        "event": f"{word} event {name} happened",
    }[by]


def _advice(shares: dict[str, float]) -> str:
    """Return a sentence that advises."""
    times, clocks = shares["time"], shares["clock"]
    if max(times, clocks) < shares["existence"]:
        return "Find out whether these events happened."
    if clocks > times:
        return "Better clocks would decide most."
    if clocks > 0.1 * times:
        return "Narrower intervals, as of more frequent samples, would decide most; better clocks help, too."
    more = "; better clocks would change little" if clocks > 0.0 else ""
    return f"Narrower intervals, as of more frequent samples, would decide most{more}."
