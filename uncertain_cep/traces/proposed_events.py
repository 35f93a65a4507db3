"""One table of a schema for files that nobody has described: each choice, with a comment that says why.

Where a choice could be another one, the comment says what would tell. Where nothing in the files can tell,
the interval is the one that holds in all cases: what is then certain, or impossible, is so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.query.expression_text import quote_name
from uncertain_cep.timeline.domain import EVENT_COLUMNS, is_text
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS, format_duration
from uncertain_cep.traces.absent_times import holds_times_of_day
from uncertain_cep.traces.alike_files import (
    Group,
    camel_case,
    host_column,
    pair_of,
    series_of,
)
from uncertain_cep.traces.log_forms import Base
from uncertain_cep.traces.message_templates import TEMPLATE
from uncertain_cep.traces.stamp_columns import StampColumn, regular_spacing, words_of
from uncertain_cep.traces.time_sums import named_column
from uncertain_cep.traces.toml_texts import listed, quoted

__all__ = ["FINEST", "ProposedEvents", "events_of_group"]

FINEST: Final = "us"
_TYPES: Final = (
    "type", "kind", "event", "eventtype", "activity", "level", "action", "eventname", "transition", "step",
    "phase", "stage", "state", "status", "operation",
)  # fmt: skip
"""Names of columns that tell types; the last ones count where no other is there."""
_SURE_TYPES: Final = _TYPES[:8]
_MOST_TYPES: Final = 50
_DAY: Final = UNIT_NANOSECONDS["d"]
_COMMA: Final = "^-?[0-9]+,[0-9]+$"
_NAMES_TIME: Final = re.compile(
    r"(?i)time|date|stamp|when|(?:^|_|[a-z])(?:ts|at)$|start|begin|end|finish|launch"
)
_SHORT_DAY: Final = re.compile("[0-9]{2}[-/][0-9]{2}[-/][0-9]{2}[^0-9]")


@dataclass(frozen=True, slots=True)
class ProposedEvents:
    """One table of the schema.

    ``types`` are the types of its events, the usual ones first; ``keys`` attributes whose values few rows
    share; ``host`` one that names where an event comes from; ``pair`` is begin, end or nothing; ``length`` is
    that of the intervals, nanoseconds.
    """

    text: str
    types: tuple[str, ...]
    keys: tuple[str, ...] = ()
    host: str | None = None
    pair: str = ""
    length: int = 0


@dataclass(frozen=True, slots=True)
class _Rule:
    """An uncertainty as it stands in a schema, its length in nanoseconds, and why."""

    text: str
    length: int
    why: tuple[str, ...]


def _rule(stamp: StampColumn, spacing: int | None) -> _Rule:
    if spacing is not None and not (stamp.days and spacing == _DAY):
        return _of_series(format_duration(spacing), spacing)
    if len(stamp.written) > 1:
        said = f"Stamps are written to {' or '.join(stamp.written)}: each stands for all of it."
        return _Rule('{ kind = "as_written" }', UNIT_NANOSECONDS[stamp.written[-1]], (said,))
    unit = stamp.written[0]
    length = UNIT_NANOSECONDS[unit]
    if length < UNIT_NANOSECONDS[FINEST]:
        said = f"The stamps tell {unit}, and no clock is so exact: say how far it may be off."
        return _Rule(f'{{ kind = "plus_minus", by = "1{FINEST}" }}', UNIT_NANOSECONDS[FINEST], (said,))
    if stamp.days:
        said = "The stamps are days: what is dated so happened on that day."
        more = ['If a value is of the day before: kind = "window", length = "1d".'] if spacing else []
        more += _which_metric("1d") if spacing else ()
    else:
        said = f"The stamps are whole multiples of 1{unit}: the rest is cut off."
        half = f', by = "{format_duration(length // 2)}"' if length > UNIT_NANOSECONDS[FINEST] else ""
        more = [f'If they are rounded instead: kind = "plus_minus"{half}.'] if half else []
    return _Rule(f'{{ kind = "granularity", of = "1{unit}" }}', length, (said, *more))


def _which_metric(length: str) -> tuple[str, ...]:
    """Return the question of what moment a value of a metric tells, for comments, with all answers."""
    return (
        "Is a value an average, a maximum, a sample or a counter (docs/uncertainty.md)? A maximum, and the "
        "increase of a counter, is of one moment: window. A sample is of its stamp: exact.",
        f'An average, or a rate, is of all of that time: kind = "period", length = "{length}".',
    )


def _of_series(length: str, spacing: int) -> _Rule:
    """Return the rule of samples, of which it is not known what they are samples of."""
    return _Rule(
        f'{{ kind = "plus_minus", by = "{length}" }}',
        spacing,
        (
            f"The stamps of a series are {length} apart, as those of a metric. Does a value tell of the "
            f"{length} before its stamp or after it? The files do not say, so both are taken.",
            f'If it is before: kind = "window", length = "{length}". If it is after: kind = "granularity", '
            f'of = "{length}".',
            *_which_metric(length),
        ),
    )


_SHARED_IDS: Final = frozenset(
    (
        *(
            "pid",
            "tid",
            "ppid",
            "uid",
            "gid",
            "euid",
            "flow",
            "session",
            "thread",
            "process",
            "user",
            "trace",
        ),
        *(
            "parent",
            "request",
            "connection",
            "conn",
            "device",
            "client",
            "correlation",
            "transaction",
            "order",
        ),
    )
)
"""Names of what several events may share, though those of a short file do not."""


def _is_shared(name: str) -> bool:
    """Tell whether a column of ids, by its name, is of what several events share."""
    words = words_of(name)
    return "".join(words) in _SHARED_IDS or any(word in _SHARED_IDS for word in words)


def _key(table: pa.Table, stamps: Sequence[StampColumn]) -> tuple[str | None, bool]:
    """Return the column of ids that tells most rows apart, if it tells most, and whether none comes twice."""
    times = {stamp.name for stamp in stamps}
    counts = {}
    for name in table.column_names:
        column = table.column(name)
        plain = is_text(column.type) or pa.types.is_integer(column.type)
        if plain and name not in times and re.search(r"(?i)id$", name) and not column.null_count:
            counts[name] = pc.count_distinct(column).as_py()
    best = max(counts, key=lambda name: counts[name], default=None)
    if best is None or 2 * counts[best] <= table.num_rows:
        return None, False
    return best, counts[best] == table.num_rows and not _is_shared(best)


def _type_column(group: Group, stamps: Sequence[StampColumn]) -> str | None:
    """Return the column of types, by its name: one of several values before one that is always the same."""
    table = group.table
    if TEMPLATE in table.column_names and len(stamps) == 1:
        return TEMPLATE
    items = group.explode[-1] if group.explode else ""
    names = [name for name in table.column_names if name.startswith(items)]
    for words in (_SURE_TYPES, _TYPES) if len(stamps) == 1 else ():
        counts = {}
        for name in names:
            plain = re.sub(r"[^a-z]", "", name.rpartition(".")[2].lower())
            column = table.column(name)
            if plain in words and is_text(column.type) and not column.null_count:
                counts[name] = pc.count_distinct(column).as_py()
        fitting = [name for name, count in counts.items() if count <= _MOST_TYPES]
        if fitting:
            return str(next((name for name in fitting if counts[name] > 1), fitting[0]))
    return None


def events_of_group(
    group: Group,
    stamps: Sequence[StampColumn],
    name: str,
    glob: str | None,
    types: Mapping[str, pa.DataType | None],
    file_column: str | None,
    offsets: Sequence[str] = (),
) -> list[ProposedEvents]:
    """Return a table of the schema for each column of stamps of some files.

    ``name`` is the type of the events where no column tells it; ``glob`` fits the names of the files (None:
    all); ``types`` are those of the columns of all groups (None: they do not agree); ``offsets`` are comments
    on tables of the offsets of clocks.
    """
    table = group.table
    key, is_unique = _key(table, stamps)
    host, kinds = host_column(table), _type_column(group, stamps)
    attributes, said = _attributes(group, stamps, kinds, name, types)
    named = next((new for new, old in attributes.items() if old == key), None)
    place = next((new for new, old in attributes.items() if old == host), file_column)
    if file_column is not None:
        attributes[file_column] = file_column
    spacing = _spacing(group, stamps)
    made = []
    for stamp, suffix in zip(stamps, _suffixes(stamps), strict=True):
        rule = _rule(stamp, spacing)
        type_names = tuple(_usual(table.column(kinds))) if kinds else (f"{name}{suffix}",)
        text = ["[[events]]"]
        text += [] if glob is None else [f"files = {quoted(glob)}"]
        if kinds:
            if kinds == TEMPLATE:
                text.append("# Each template is a type of events.")
            else:
                text.append(f"# Each value of {kinds} is a type of events.")
            text.append(f"type_column = {quoted(kinds)}")
        else:
            text += [
                "# All rows are of one type, by the name of the file.",
                f"type = {quoted(type_names[0])}",
            ]
        text += _id(table, key if is_unique else None, suffix)
        text += _time(group, stamp, stamps)
        text += [f"# {each}" for each in rule.why]
        if host is not None and not spacing:
            text.append(
                f"# Stamps may come from several clocks ({host}). If these are off by more, look for their "
                'offsets, kind = "clock_offset", or give a bound, kind = "plus_minus".'
            )
        if host is not None:
            text += [line.replace("{host}", quoted(host)) for line in offsets]
        text.append(f"uncertainty = {rule.text}")
        text += [f"# {each}" for each in said]
        text.append(f"attributes = {_in_toml(attributes)}")
        keys = () if named is None else (named,)
        made.append(
            ProposedEvents("\n".join(text), type_names, keys, place, pair_of(stamp.title), rule.length)
        )
    return made


def _suffixes(stamps: Sequence[StampColumn]) -> list[str]:
    """Return a suffix for the types of each column of stamps; empty if there is one column."""
    if len(stamps) == 1:
        return [""]
    short = [camel_case(words_of(stamp.title)) for stamp in stamps]
    return short if len({text.lower() for text in short}) == len(short) else [stamp.name for stamp in stamps]


def _spacing(group: Group, stamps: Sequence[StampColumn]) -> int | None:
    """Return how far apart the stamps of samples are, in nanoseconds; None if the rows are no samples."""
    times = {part for stamp in stamps for part in (stamp.name, *stamp.columns)}
    # Records without a number are no samples, however regular: those of each day, say.
    is_measured = any(
        pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        for field in group.table.schema
        if field.name not in times
    )
    return regular_spacing(series_of(group, stamps[0])) if is_measured and len(stamps) == 1 else None


def _id(table: pa.Table, key: str | None, suffix: str) -> list[str]:
    if key is not None:
        return [
            f"# No value of {key} comes twice.",
            f"id = {quoted(f'{{{key}}}:{suffix}' if suffix else key)}",
        ]
    if "id" in table.column_names:
        # A column of this name would be taken for one of ids.
        return ["# Values of id come several times: rows are numbered instead.", "id = false"]
    return ["# No column tells all rows apart: they are numbered."]


def _time(group: Group, stamp: StampColumn, stamps: Sequence[StampColumn]) -> list[str]:
    """Return the lines of a schema that name the column of times and its format."""
    text = []
    if len(stamps) > 1:
        text.append(f"# A row has {len(stamps)} times: each becomes an event of its own.")
        text += _as_span(stamps)
    if group.other_times:
        names = ", ".join(other.name for other in group.other_times)
        text.append(f"# {names} holds times, too. Are events of it, name it here.")
        text += _as_span([stamp, *group.other_times])
    if stamp.columns:
        text.append(f"# {' and '.join(stamp.columns)} together are the stamp.")
        text.append(f"time = {listed([*stamp.columns[:-1], named_column(stamp.columns[-1])])}")
    else:
        text.append(f"time = {quoted(named_column(stamp.name))}")
    if stamp.since_start:
        text.append(f"# Numbers are {stamp.unit} since a start, and are shown as such after 1970-01-01.")
        text.append(f'unit = "{stamp.unit}"')
    elif stamp.unit is not None:
        by_size = "" if _NAMES_TIME.search(stamp.name) else ", and nothing else tells that they are times"
        text.append(f"# Numbers of this size are {stamp.unit} since 1970{by_size}.")
        text.append(f'unit = "{stamp.unit}"')
    text += _order_of_days(stamp)
    if group.form is not None and _SHORT_DAY.match(first := str(group.table.column(stamp.name)[0])):
        text.append(f"# {first} is read as year, month and day, as Spark and Hadoop write it.")
    if group.form is not None and group.form.since_start:
        text.append("# Times are seconds since a start, and are shown as such after 1970-01-01.")
    if group.form is not None and not group.form.is_usual:
        text.append(f"time_format = {listed(stamp.formats or ('iso',))}")
    elif stamp.formats and group.form is None:
        text.append(f"time_format = {listed(stamp.formats)}")
    if group.base.text is not None:
        text += _base(group.base, group.base.text)
    if stamp.zone is not None:
        text.append(
            f"# Some stamps tell a time zone, always {stamp.zone}, and others tell none: these are taken to "
            "be of it, too."
            if stamp.zoned
            else "# This zone stands beside all stamps."
        )
        text.append(f"time_zone = {quoted(stamp.zone)}")
    elif not stamp.zoned:
        text.append(
            '# The stamps tell no time zone and are read as UTC: time_zone = "Europe/Berlin" names another.'
        )
    if stamp.absent:
        text.append("# Values of 0 and less stand for no time.")
        text.append(f"where = {quoted(f'{quote_name(stamp.name)} > 0')}")
    if stamp.nulls:
        text.append("# Some rows have no such time: they are left out.")
        text.append('missing = "drop"')
    return text


def _as_span(stamps: Sequence[StampColumn]) -> list[str]:
    """Return a comment that names the begin and the end of rows that may last, if there are such columns."""
    single = [stamp for stamp in stamps if not stamp.columns]
    ends = {pair_of(stamp.name): stamp for stamp in single}
    named = [(ends["begin"], ends["end"])] if ends.keys() >= {"begin", "end"} else []
    pairs = [*named, *(pair for pair in permutations(single, 2) if _lasts(*pair))]
    if not pairs:
        return []
    begin, end = (quoted(named_column(stamp.name)) for stamp in pairs[0])
    why = "" if named else f"{pairs[0][1].name} is never before {pairs[0][0].name}. "
    return [f"# {why}One event that lasts instead: begin = {begin}, end = {end}, and no time."]


def _lasts(begin: StampColumn, end: StampColumn) -> bool:
    """Tell whether all rows have both times, none its end before its begin, and some have it later."""
    if begin.nulls or end.nulls or len(begin.counts) != len(end.counts):
        return False
    lengths = end.counts - begin.counts
    return bool((lengths >= 0).all() and (lengths > 0).any())


def _order_of_days(stamp: StampColumn) -> list[str]:
    if not stamp.alternatives:
        return []
    alternatives = " or ".join(", ".join(forms) for forms in stamp.alternatives)
    reason = (
        "By this one alone the rows are in order of time."
        if stamp.in_order
        else "By this one alone no stamp lies after the last change of the file."
        if stamp.in_past
        else "A day beyond 12 would tell, or rows in order of time."
    )
    return [
        f"# Day and month cannot be told apart: all stamps fit {alternatives}, too. {reason} Whoever wrote "
        "the file knows."
    ]


def _base(base: Base, begin: str) -> list[str]:
    what = "day" if "-" in begin else "year"
    if base.is_told:
        return ["# The stamps tell no year. Other days in their lines do.", f"year = {begin}"]
    text = [
        f"# The log tells no {what}. This is the latest one of the first stamp with which no stamp lies "
        "after the last change of the file."
    ]
    if base.ahead:
        text.append(
            f"# With the {what} after it the last stamp would lie less than a day behind that change. If "
            "the clock is of another time zone, take that one."
        )
    if what == "day":
        text.append(
            "# It changes where the time of day goes back by more than 12 hours: fixed_date = true says no."
        )
    return [*text, f"{'date' if what == 'day' else 'year'} = {begin}"]


def _attributes(
    group: Group,
    stamps: Sequence[StampColumn],
    kinds: str | None,
    name: str,
    types: Mapping[str, pa.DataType | None],
) -> tuple[dict[str, str], list[str]]:
    """Return the columns that are attributes, by their names in events, and what to say of others."""
    table = group.table
    times = {part for stamp in stamps for part in (stamp.name, *stamp.columns)} | dict(group.joined).keys()
    columns = [column for column in table.column_names if column not in times and column != kinds]
    nested = [column for column in columns if pa.types.is_nested(table.schema.field(column).type)]
    # The forms of logs have columns that a log may lack.
    empty = [column for column in columns if group.form and table.column(column).null_count == table.num_rows]
    kept = [column for column in columns if column not in nested and column not in empty]
    attributes = {
        (plain if types.get(column) is not None else f"{name}_{plain}"): column
        for column in kept
        for short in [_short(column, kept, group.explode)]
        for plain in [short if short not in EVENT_COLUMNS else f"raw_{short}"]
    }
    said = []
    if nested:
        said.append(f"Left out, as fields within fields: {', '.join(nested)}. Name them by their path, a.b.")
    if empty:
        said.append(f"Left out, as they hold nothing: {', '.join(empty)}.")
    if renamed := [old for new, old in attributes.items() if new == f"raw_{old.rpartition('.')[2]}"]:
        said.append(f"Events have columns called {', '.join(renamed)} themselves, so these get other names.")
    if several := [old for old in kept if types.get(old) is None]:
        said.append(f"Files hold different types in {', '.join(several)}, so each gets a name of its own.")
    if texts := [old for old in kept if _with_comma(table.column(old))]:
        said.append(f"Numbers with a comma are text: {', '.join(texts)}.")
    if clocks := [old for old in kept if holds_times_of_day(table.column(old))]:
        said.append(f"Times of day without a day are attributes: {', '.join(clocks)}.")
    return attributes, said


def _short(column: str, columns: Sequence[str], lists: Sequence[str]) -> str:
    """Return the last part of the path of a field of items, if no other column has it."""
    last = column.rpartition(".")[2]
    same = [name for name in columns if name.rpartition(".")[2] == last]
    return last if lists and len(same) == 1 else column


def _with_comma(column: pa.ChunkedArray) -> bool:
    if not is_text(column.type):
        return False
    return bool(pc.all(pc.match_substring_regex(column.slice(0, 100), _COMMA), min_count=1).as_py())


def _usual(types: pa.ChunkedArray) -> list[str]:
    counts = sorted(types.value_counts().to_pylist(), key=lambda pair: -pair["counts"])
    return [pair["values"] for pair in counts]


def _in_toml(attributes: Mapping[str, str]) -> str:
    if all(new == old for new, old in attributes.items()):
        return listed(list(attributes))
    return "{ " + ", ".join(f"{quoted(new)} = {quoted(old)}" for new, old in attributes.items()) + " }"
