"""A summary of a trace in a few lines: types, times, resolutions, lengths, nulls, and oddities."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import UncertainCepError, ignoring
from uncertain_cep.timeline.domain import Names, TimeDomain, is_text
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS, format_duration
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray
from uncertain_cep.traces.stamp_columns import UNITS, names_host, resolution_of

__all__ = ["Profile", "TypeProfile", "profile_lines", "profile_of", "sound_part"]

_NAMES: Final = Names()
_MOST_TYPES: Final = 20
_MOST_COLUMNS: Final = 10
_MOST_NAMES: Final = 5
_FAR: Final = 20
"""How many times as long as the middle 98% of events take all of them have to take for some to be far off."""


@dataclass(frozen=True, slots=True)
class TypeProfile:
    """The events of one type.

    ``first`` and ``last`` are ticks; ``lengths`` the least, middle and greatest number of ticks of an
    interval; ``resolution`` the longest unit of which all lower bounds, or all upper ones, are whole numbers.
    """

    type: str | None
    events: int
    first: int
    last: int
    lengths: tuple[int, int, int]
    resolution: str


@dataclass(frozen=True, slots=True)
class Profile:
    """A summary of a trace.

    ``types`` are the most frequent first, ``places`` the attributes that name hosts, with how many names they
    have and the first of these in order, ``nulls`` the share of nulls of each attribute that has some,
    ``odd`` what looks so, each in one line.
    """

    types: tuple[TypeProfile, ...]
    places: tuple[tuple[str, int, tuple[str, ...]], ...]
    nulls: tuple[tuple[str, float], ...]
    odd: tuple[str, ...]
    domain: TimeDomain


def profile_of(table: pa.Table) -> Profile:
    """Return the profile of a sound table of events. O(n log n)."""
    domain = TimeDomain.of(table.schema, _NAMES)
    lower, upper = (
        domain.ticks_of_units(np.asarray(table.column(name).cast(pa.int64())))
        for name in (_NAMES.lower, _NAMES.upper)
    )
    types = table.column(_NAMES.type).cast(pa.string())
    counts = sorted(types.value_counts().to_pylist(), key=lambda pair: -pair["counts"])
    codes = np.asarray(pc.index_in(types, pa.array([pair["values"] for pair in counts], pa.string())))
    type_profiles = []
    for code, pair in enumerate(counts[:_MOST_TYPES]):
        of_type = codes == code
        lengths = upper[of_type] - lower[of_type] + 1
        type_profiles.append(
            TypeProfile(
                pair["values"],
                pair["counts"],
                int(lower[of_type].min()),
                int(upper[of_type].max()),
                (int(lengths.min()), int(np.median(lengths)), int(lengths.max())),
                _resolution(lower[of_type], upper[of_type], domain),
            )
        )
    model_columns = {getattr(_NAMES, part) for part in _NAMES.__dataclass_fields__} | {*SPAN_COLUMNS}
    attributes = [name for name in table.column_names if name not in model_columns]
    nulls = {name: table.column(name).null_count / max(table.num_rows, 1) for name in attributes}
    distinct = tuple(pair["values"] for pair in counts)
    odd = tuple(_oddities(table, lower, upper, type_profiles, distinct, nulls, domain))
    shares = sorted(((name, share) for name, share in nulls.items() if share), key=lambda pair: -pair[1])
    places = []
    for name in filter(names_host, attributes):
        with ignoring(pa.ArrowException):
            values = sorted(table.column(name).drop_null().cast(pa.string()).unique().to_pylist())
            places += [(name, len(values), tuple(values[:_MOST_NAMES]))] if values else []
    return Profile(tuple(type_profiles), tuple(places), tuple(shares), odd, domain)


def sound_part(table: pa.Table) -> pa.Table | None:
    """Return the events of a faulty table that have a type and an interval; None if its columns tell none."""
    try:
        domain = TimeDomain.of(table.schema, _NAMES)
        bounds_columns = [table.column(name) for name in (_NAMES.lower, _NAMES.upper)]
        counts = [np.asarray(times.cast(pa.int64()).fill_null(0)) for times in bounds_columns]
        bounds = [domain.ticks_of_units(ticks) for ticks in counts]
        types = table.column(_NAMES.type).cast(pa.string())
    except MemoryError:
        raise
    except (UncertainCepError, pa.ArrowException, KeyError):
        return None
    valid = [np.asarray(column.is_valid()) for column in (types, *bounds_columns)]
    return table.filter(pa.array(np.logical_and.reduce([*valid, bounds[0] <= bounds[1]])))


def _resolution(lower: IntArray, upper: IntArray, domain: TimeDomain) -> str:
    step = domain.tick_nanoseconds
    # Both bounds belong to an interval, so that a minute ends a tick before the next one.
    bounds = (lower, upper, upper + 1)
    if step is None:
        common = int(np.gcd.reduce(lower)) or 1
        return f"{common:,} tick{'s' if common > 1 else ''}"
    if max(int(np.abs(each).max(initial=0)) for each in bounds) * step >= 2**63:
        return format_duration(step)
    return "1" + min((resolution_of(each * step) for each in bounds), key=UNITS.index)


def _oddities(
    table: pa.Table,
    lower: IntArray,
    upper: IntArray,
    types: list[TypeProfile],
    names: tuple[str | None, ...],
    nulls: dict[str, float],
    domain: TimeDomain,
) -> Iterator[str]:
    if not len(lower):
        return
    low, high = np.quantile(lower, [0.01, 0.99])
    usual = max(high - low, float(np.median(upper - lower)), 1.0)
    far = (lower < low - _FAR * usual) | (lower > high + _FAR * usual)
    if far.any():
        number, first = int(far.sum()), int(np.flatnonzero(far)[0])
        when = _shown(int(lower[first]), domain)
        yield f"{number:,} events are far from all others in time, such as one at {when}"
    if domain.tick_nanoseconds is not None:
        years = lower * (domain.tick_nanoseconds / 1e9) / (365.25 * 86_400) + 1970
        out: BoolArray = (years < 1980) | (years > 2100)
        if out.any():
            yield f"{int(out.sum()):,} events are before 1980 or after 2100: is the unit of the stamps right?"
        late = lower * (domain.tick_nanoseconds / 1e9) > time.time() + 86_400
        if (late & ~out).any():
            first = int(lower[np.flatnonzero(late & ~out)[0]])
            number = int((late & ~out).sum())
            yield f"{number:,} events are still to come, such as one at {_shown(first, domain)}"
        for kind in types:
            unit = kind.resolution.removeprefix("1")
            certain = kind.lengths[2] == 1 and kind.events > 1
            if certain and UNIT_NANOSECONDS.get(unit, 0) >= UNIT_NANOSECONDS["s"] > domain.tick_nanoseconds:
                yield (
                    f"all times of {kind.type} are whole multiples of {kind.resolution}, but certain to "
                    f"{domain.describe()}: were they cut off? (granularity)"
                )
    for kind in types:
        if kind.lengths[2] > 1000 * kind.lengths[1]:
            times = kind.lengths[2] // kind.lengths[1]
            yield f"an interval of {kind.type} is {times:,} times as long as the middle one"
    yield from _odd_values(table, names, nulls)


def _odd_values(table: pa.Table, names: tuple[str | None, ...], nulls: dict[str, float]) -> Iterator[str]:
    plain: dict[str, str] = {}
    for name in names:
        key = (name or "").strip().casefold()
        if plain.setdefault(key, name or "") != (name or ""):
            yield f"the types {plain[key]!r} and {name!r} differ in capitals or spaces alone"
    columns = {name: table.column(name) for name in nulls}
    for name, column in columns.items():
        if nulls[name] == 1:
            yield f"{name} holds nothing"
        elif is_text(column.type) and table.num_rows > 1 and not nulls[name]:
            texts = column.cast(pa.string())
            if pc.any(pc.is_in(texts, pa.array(["NA", "N/A", "null", "NULL", "None", "nan", "-"]))).as_py():
                yield f"{name} holds texts such as NA, null or -: should they be nulls? (nulls)"
    alike = [name for name in table.column_names if name != _NAMES.id]
    # Lists, and types of users, are not compared.
    with ignoring(pa.ArrowException):
        kinds = [name for name in alike if not pa.types.is_null(table.schema.field(name).type)]
        distinct = table.select(kinds).group_by(kinds).aggregate([]).num_rows
        if distinct < table.num_rows:
            copies = table.num_rows - distinct
            yield f"{copies:,} events differ from another in nothing but the id: copies? (deduplicate)"


def _shown(tick: int, domain: TimeDomain) -> str:
    if domain.tick_nanoseconds is None:
        return f"{tick:,}"
    unit: Literal["ns", "us"] = "ns" if domain.tick_nanoseconds % 1000 else "us"
    units = tick * domain.tick_nanoseconds // UNIT_NANOSECONDS[unit]
    text = str(np.datetime64(0, unit) + np.timedelta64(units, unit)).replace("T", " ")
    return text.removesuffix(".000000000").removesuffix(".000000")


def _length(ticks: int, domain: TimeDomain) -> str:
    """Return how far the last tick of an interval is behind the first one, such as 4 s for ``±2s``."""
    if ticks == 1:
        return "certain"
    if domain.tick_nanoseconds is None:
        return f"{ticks - 1:,} tick{'s' if ticks != 2 else ''}"
    # A minute that ends a microsecond before the next one is a minute to a reader.
    nanoseconds = float(f"{(ticks - 1) * domain.tick_nanoseconds:.4g}")
    unit = next(name for name in UNITS if nanoseconds >= UNIT_NANOSECONDS[name])
    return f"{nanoseconds / UNIT_NANOSECONDS[unit]:.4g} {unit}"


def profile_lines(profile: Profile) -> Iterator[str]:
    """Yield the lines that show a profile."""
    domain = profile.domain
    head = ("type", "events", "first", "last", "resolution", "first to last: least", "middle", "most")
    rows: list[tuple[str, ...]] = [head]
    for kind in profile.types:
        lengths = (_length(length, domain) for length in kind.lengths)
        times = (_shown(kind.first, domain), _shown(kind.last, domain))
        rows.append((str(kind.type), f"{kind.events:,}", *times, kind.resolution, *lengths))
    widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
    for row in rows if profile.types else []:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
    for name, count, names in profile.places:
        more_names = f" and {count - len(names):,} more" if count > len(names) else ""
        yield f"{name}: {', '.join(names)}{more_names}"
    if profile.nulls:
        shown = ", ".join(f"{name} {share:.1%}" for name, share in profile.nulls[:_MOST_COLUMNS])
        more = len(profile.nulls) - _MOST_COLUMNS
        yield f"nulls: {shown}" + (f" and {more} more columns" if more > 0 else "")
    for said in profile.odd:
        yield f"odd: {said}"
