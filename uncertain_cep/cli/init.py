"""``uncertain-cep init``: a schema file and a first query for files that nobody has described."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from uncertain_cep.cli.arguments import traces_argument, written_here
from uncertain_cep.cli.command_help import HelpfulCommand
from uncertain_cep.cli.progress import note, show, working
from uncertain_cep.cli.startup import without_pandas
from uncertain_cep.errors import OptionError, QueryError, TraceError, UncertainCepWarning
from uncertain_cep.files.query_files import QUERY_ENDINGS

if TYPE_CHECKING:
    import pyarrow as pa

    from uncertain_cep.traces.proposing import ProposedEvents, ProposedSchema

__all__ = ["init"]

SCHEMA: Final = "schema.toml"
QUERY: Final = "first.query"

_FEW: Final = 2_000
"""Events that a query is tried on."""

_LONGEST: Final = 3_600 * 10**9


@click.command(cls=HelpfulCommand)
@traces_argument()
@click.option("-o", "--out", metavar="FOLDER", default=".", callback=written_here,
    help="The folder for the files. Default: this folder.")  # fmt: skip
@click.option("--input-format", metavar="F", help="The format of all traces, as for match.")
def init(traces: tuple[str, ...], out: str, input_format: str | None) -> None:
    """Look at traces and write a schema file and a first query for them.

    Comments in the schema say why each column and uncertainty was chosen. It asks nothing and overwrites
    nothing.
    """
    from uncertain_cep.traces.proposing import propose

    without_pandas()
    schema, query = Path(out, SCHEMA), Path(out, QUERY)
    if schema.parent.suffix in (".toml", *QUERY_ENDINGS) and not schema.parent.is_dir():
        raise OptionError(f"-o {out} names a file: give the folder that {SCHEMA} and {QUERY} go into")
    for place in (schema, query):
        if os.path.lexists(place):
            raise OptionError(f"{place} is there already: name another folder with -o")
    with working("looking at the files"):
        proposed = propose(traces, input_format)
        table = _fitting(proposed, input_format)
        query_text = _first_query(proposed, table)
    _write(schema, proposed.text)
    _write(query, query_text)
    for said in proposed.left_out:
        note(f"left out: {said}")
    note(f"{schema} and {query} are written: read the comments, and correct what you know better")
    if "-" in proposed.traces:
        note("the command reads standard input, so give it the same again")
    files = shlex.join(proposed.traces)
    options = "" if input_format is None else f" --input-format {shlex.quote(input_format)}"
    show(
        f"uncertain-cep match {shlex.quote(str(query))} {files} --schema {shlex.quote(str(schema))}{options}"
    )


def _write(place: Path, text: str) -> None:
    from uncertain_cep.cli.outputs import result_written_aside

    with result_written_aside(place, overwrite=False) as aside:
        aside.write_text(text, encoding="utf-8")


def _fitting(proposed: ProposedSchema, format: str | None) -> pa.Table:
    """Return the events that the schema makes of the traces, or raise their faults."""
    import tempfile

    from uncertain_cep.traces.reading import load_traces

    with tempfile.TemporaryDirectory(prefix="uncertain-cep-") as folder:
        place = Path(folder, SCHEMA)
        place.write_text(proposed.text, encoding="utf-8")
        loaded = load_traces(proposed.traces, place, format=format).with_checked_ids()
    if loaded.faults or loaded.table is None:
        raise TraceError(loaded.faults)
    return loaded.table


def _first_query(proposed: ProposedSchema, table: pa.Table) -> str:
    """Return a query that finds something in the events."""
    import pyarrow.compute as pc

    from uncertain_cep.api import match
    from uncertain_cep.query.expression_text import quote_name

    counts = sorted(table.column("type").value_counts().to_pylist(), key=lambda pair: -pair["counts"])
    types = [pair["values"] for pair in counts]
    if not types:
        raise OptionError("there are no events in the traces: give files that have some to look at")
    few = _few(table, types[:2])
    length = _length(few)
    for why, text in _queries(proposed.events, types, length, table):
        try:
            words = {word for word in types if quote_name(word) in text}
            sample = _few(table, sorted(words, key=types.index))
            with warnings.catch_warnings():
                # Of a query that nobody asked.
                warnings.simplefilter("ignore", UncertainCepWarning)
                match_count = match(sample, text, max_matches=10**6).num_rows
            if match_count:
                return f"-- {why}\n{text}\n"
        except (QueryError, TraceError, OptionError):
            continue
    raise OptionError(f"there are no events in the traces: {pc.count(table.column('type')).as_py()}")


def _few(table: pa.Table, types: list[str]) -> pa.Table:
    """Return the first events of some types."""
    import pyarrow as pa
    import pyarrow.compute as pc

    chosen = table.filter(pc.is_in(table.column("type"), pa.array(types, pa.string())))
    order = pc.sort_indices(chosen.column("lower"))
    return chosen.take(order.slice(0, _FEW))


def _length(table: pa.Table) -> str:
    """Return a length of time in which several events come, and which is longer than an interval."""
    import numpy as np
    import pyarrow as pa

    from uncertain_cep.timeline.durations import UNIT_NANOSECONDS

    bounds = [table.column(name).cast(pa.timestamp("ns")).cast(pa.int64()) for name in ("lower", "upper")]
    lower, upper = (np.asarray(bound) for bound in bounds)
    gap = float(np.median(np.diff(lower))) if len(lower) > 1 else 0.0
    length = max(10 * gap, 3 * float(np.median(upper - lower)), 1e6)
    units = [(name, UNIT_NANOSECONDS[name]) for name in ("ms", "s", "min", "h", "d")]
    name, unit = next((pair for pair in reversed(units) if pair[1] <= length), units[0])
    return f"{int(np.ceil(length / unit))} {name}"


def _queries(
    events: tuple[ProposedEvents, ...], types: list[str], length: str, table: pa.Table
) -> Iterator[tuple[str, str]]:
    """Yield queries, each with what it asks for; the most telling first."""
    from uncertain_cep.cli.tied_events import likeliest_ties
    from uncertain_cep.query.expression_text import quote_name

    ends = [one for one in events if one.pair == "end" and one.keys]
    for end in ends:
        begin = next((one for one in events if one.pair == "begin" and one.keys == end.keys), None)
        if begin is not None and set(begin.types + end.types) <= set(types):
            same = " AND ".join(f"a.{key} = b.{key}" for key in map(quote_name, end.keys))
            first, last = quote_name(begin.types[0]), quote_name(end.types[0])
            for within in ("1 h", "1 d", length):
                yield (
                    f"Begins and ends of the same {' and '.join(end.keys)}, at most {within} apart.",
                    f"PATTERN SEQ({first} a, {last} b)\nWHERE {same}\nWITHIN {within}\nLIMIT 20",
                )
    for tie in likeliest_ties(_few(table, types[:6]), types):
        first, second = quote_name(tie.first), quote_name(tie.second)
        same = f"a.{quote_name(tie.first_column)} = b.{quote_name(tie.second_column)}"
        for within in (length, "1 h", "1 d"):
            yield (
                f"{tie.second} at most {within} after {tie.first}, where {tie.first_column} of the one is "
                f"{tie.second_column} of the other.",
                f"PATTERN SEQ({first} a, {second} b)\nWHERE {same}\nWITHIN {within}\nLIMIT 20",
            )
    one, other = (types * 2)[:2]
    places = dict.fromkeys(each.host for each in events if each.host is not None)
    for within in (length, "1 h", "1 d"):
        for place in (*places, None):
            where = "" if place is None else f"\nWHERE a.{quote_name(place)} = b.{quote_name(place)}"
            same = "" if place is None else f", of the same {place}"
            yield (
                f"One event and then another at most {within} later{same}.",
                f"PATTERN SEQ({quote_name(one)} a, {quote_name(other)} b){where}\nWITHIN {within}\nLIMIT 20",
            )
    yield (
        f"Events of type {one}.",
        f"PATTERN SEQ({quote_name(one)} a)\nWITHIN {length}\nLIMIT 20",
    )
