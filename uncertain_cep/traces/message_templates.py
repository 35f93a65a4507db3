"""Templates of messages: types of events by their words, and columns of the parts that vary.

A template is a text in which ``<*>`` stands for what varies within a word, and ``<**>``, at the end alone,
for the rest of the line. It fits a text whose first line it fits as a whole; of several the first that fits
counts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.faulty_rows import IntArray

__all__ = [
    "ANYTHING",
    "MOST_PARTS",
    "OTHER",
    "TEMPLATE",
    "VARYING",
    "Templates",
    "parts_in",
    "template_columns",
    "template_fault",
    "with_templates",
]

Templates = tuple[str, tuple[tuple[str, str], ...]]
"""A column, and the names and templates of its texts, in the order in which they are tried."""

VARYING: Final = "<*>"
ANYTHING: Final = "<**>"
TEMPLATE: Final = "template"
"""The column of the names of templates."""
OTHER: Final = "Other"
"""The name of what no template fits."""
MOST_PARTS: Final = 20
"""Parts of a template that become columns: p1, p2 and so on."""

_FIRST_WORD: Final = r"^[ \t]*(?P<word>[^ \t\r\n]*)"


def parts_in(template: str) -> int:
    """Return how many columns a template makes."""
    return min(template.count(VARYING) + template.endswith(ANYTHING), MOST_PARTS)


def template_columns(templates: Templates | None) -> list[str]:
    """Return the columns that templates make."""
    if templates is None:
        return []
    count = max(parts_in(template) for _, template in templates[1])
    return [TEMPLATE, *(f"p{number}" for number in range(1, count + 1))]


def template_fault(template: str) -> str | None:
    """Return the fault of a template, if it has one."""
    if not template.strip() or "\n" in template:
        return "must be a text of one line, such as 'user <*> logged in'"
    if ANYTHING in template.removesuffix(ANYTHING):
        return f"has {ANYTHING}, which stands for the rest of a line, before its end"
    return None


@cache
def _expression(template: str) -> str:
    """Return the expression of a template, as RE2 reads it; its groups are p1, p2 and so on."""
    anything = template.endswith(ANYTHING)
    pieces = template.removesuffix(ANYTHING).split(VARYING)
    parts = [_plain(pieces[0])]
    for number, piece in enumerate(pieces[1:], 1):
        group = f"(?P<p{number}>\\S+?)" if number <= MOST_PARTS else "\\S+?"
        parts.append(group + _plain(piece))
    if anything:
        parts.append(f"(?P<p{len(pieces)}>[^\\n]*)" if len(pieces) <= MOST_PARTS else "[^\\n]*")
    # A template without parts needs a group, too.
    return f"^[ \\t]*(?P<whole>){''.join(parts)}[ \\t\\r]*(?:\\n|$)"


def _plain(text: str) -> str:
    return re.sub(r"[ \t]+", r"[ \\t]+", re.sub(r"([\\.^$*+?()\[\]{}|])", r"\\\1", text))


def with_templates(
    table: pa.Table, templates: Templates | None, file: str, columns: Collection[str] | None = None
) -> pa.Table:
    """Return a table with a column of the names of templates, and columns of the parts that vary.

    Those that are not in ``columns`` (None: all are) may be left out. A TraceError says that the table has
    such a column already. Each template looks at the texts that begin with its first word.
    """
    if templates is None or templates[0] not in table.column_names:
        return table
    column, named = templates
    made = template_columns(templates)
    if columns is not None and not {*made} & {*columns}:
        return table
    if taken := [name for name in made if name in table.column_names]:
        message = "[templates] makes a column of this name, but the file has one: rename it"
        raise TraceError([TraceFault(message, file=file, column=name) for name in taken])
    text = table.column(column).cast(pa.string())
    numbers, groups = _matched(text, [template for _, template in named], made[1:])
    names = pa.array([*(name for name, _ in named), OTHER], pa.string())
    table = table.append_column(TEMPLATE, names.take(pa.array(numbers)))
    for name, values in groups.items():
        if columns is None or name in columns:
            table = table.append_column(name, values)
    return table


def _matched(
    text: pa.ChunkedArray, templates: Sequence[str], parts: Sequence[str]
) -> tuple[IntArray, dict[str, pa.Array]]:
    """Return the number of each text's template, (n,) int64, and the columns of what varies."""
    whole = text.combine_chunks() if text.num_chunks != 1 else text.chunk(0)
    numbers = np.full(len(whole), len(templates), np.int64)
    buckets = _by_first_word(whole)
    pieces: dict[str, list[tuple[IntArray, pa.Array]]] = {name: [] for name in parts}
    for number, template in enumerate(templates):
        first = template.split()[0]
        # A first word that varies may be any.
        keys = [*buckets] if VARYING in first or ANYTHING in first else [first] if first in buckets else []
        for key in keys:
            rows = buckets[key]
            groups = pc.extract_regex(whole.take(pa.array(rows)), _expression(template))
            fits = np.asarray(groups.is_valid())
            if not fits.any():
                continue
            numbers[rows[fits]] = number
            buckets[key] = rows[~fits]
            chosen = groups.filter(pa.array(fits))
            for place in range(1, parts_in(template) + 1):
                pieces[f"p{place}"].append((rows[fits], chosen.field(f"p{place}")))
    return numbers, {name: _spread(values, len(whole)) for name, values in pieces.items()}


def _by_first_word(text: pa.Array) -> dict[str, IntArray]:
    """Return the rows of the texts that begin with each word; null texts are in none."""
    words = pc.struct_field(pc.extract_regex(text, _FIRST_WORD), "word").dictionary_encode()
    codes = np.asarray(words.indices.fill_null(-1)).astype(np.int64)
    order = np.argsort(codes, kind="stable")
    begins = np.searchsorted(codes[order], np.arange(len(words.dictionary) + 1))
    return {
        word: order[begins[code] : begins[code + 1]] for code, word in enumerate(words.dictionary.to_pylist())
    }


def _spread(pieces: Iterable[tuple[IntArray, pa.Array]], count: int) -> pa.Array:
    """Return a column of ``count`` texts in which those of each piece stand in its rows, and null else."""
    places = np.zeros(count, np.int64)
    values: list[pa.Array] = [pa.nulls(1, pa.string())]
    length = 1
    for rows, piece in pieces:
        places[rows] = length + np.arange(len(rows))
        values.append(piece.cast(pa.string()))
        length += len(rows)
    return pa.concat_arrays(values).take(pa.array(places))
