"""The things that would decide the answers of a query, to look at: one sentence, and the tables behind it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.plurals import counted
from uncertain_cep.resolving.open_answers import OpenAnswers
from uncertain_cep.results.display import MatchTable, visible

__all__ = ["Deciding", "sentence_of", "thing_of"]

_SHOWN = 10
"""Rows of a table that are printed."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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

    def __repr__(self) -> str:
        """Return the sentence, and the first rows of both tables."""
        return "\n\n".join((visible(self.sentence), *map(repr, self._shown())))

    def _repr_html_(self) -> str:
        tables = "".join(table._repr_html_() for table in self._shown())
        return f"<p>{escape(self.sentence)}</p>{tables}"

    def _shown(self) -> list[MatchTable]:
        """Return the first rows of the tables that have any."""
        return [
            MatchTable(_with_few_digits(table.slice(0, _SHOWN)), f"{caption}{_cut(table.num_rows)}:")
            for table, caption in zip(self._tables, _CAPTIONS, strict=True)
            if table.num_rows
        ]


_CAPTIONS: Final = (
    "known one at a time, the first what decides most",
    "the most doubtful answers, each with what would decide most of it",
)


def _cut(rows: int) -> str:
    return f" ({_SHOWN} of {rows:,})" if rows > _SHOWN else ""


def _with_few_digits(table: pa.Table) -> pa.Table:
    """Return a table with shares as percentages, and other numbers rounded."""
    for number, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            values = table.column(number).to_pylist()
            if field.name == "share":
                rounded = pa.array([f"{value:.2%}" for value in values], pa.string())
            else:
                rounded = pa.array([round(value, 3) for value in values], pa.float64())
            table = table.set_column(number, field.name, rounded)
    return table


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
    thing = thing_of(first[0]["kind"], by, first[0]["name"])
    return f"{text} Most depends on {thing} ({first[0]['share']:.2%}). {_advice(shares)}"


_THINGS: Final = {
    "time": "times of events within their intervals",
    "clock": "offsets of clocks",
    "existence": "whether events happened",
}


def _falling(pair: tuple[str, float]) -> float:
    return -pair[1]


def thing_of(kind: str, by: str, name: str | None) -> str:
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
