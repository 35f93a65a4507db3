"""Find the usual form of a log, and the year or the day of a log that names none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.timeline.durations import UNIT_NANOSECONDS
from uncertain_cep.traces.formats import naming_file
from uncertain_cep.traces.stamp_columns import stamp_column
from uncertain_cep.traces.text_lines import CONTINUATION, PRESETS, RESTS, record_blocks
from uncertain_cep.traces.time_formats import TimeFormat, told_with
from uncertain_cep.traces.unpacking import unpacked

__all__ = ["TIME", "base_of", "form_of"]

TIME: Final = "time"
"""The column of the stamps of all forms."""

_DAY: Final = UNIT_NANOSECONDS["d"]
_FARTHEST_ZONE: Final = 14 * UNIT_NANOSECONDS["h"]
_LEAST_SHARE: Final = 0.3
"""Of the lines of a log those that have its form, at least."""
_MOST_RECORDS: Final = 1_000
_MOST_BASES: Final = 40
"""Years, at most, that a log lies back."""


def form_of(path: Path) -> tuple[str | None, float]:
    """Return the form of logs that most records of a file have, if any, and the share of these records."""
    shares = {}
    with naming_file(path), unpacked(path) as stream:
        blocks: list[pa.Array] = []
        for records, _ in record_blocks(stream, CONTINUATION):
            blocks.append(records)
            if sum(map(len, blocks)) >= _MOST_RECORDS:
                break
    lines = pa.chunked_array(blocks, pa.string()).slice(0, _MOST_RECORDS)
    for name, preset in PRESETS.items():
        fits = np.zeros(len(lines), np.bool_)
        for pattern in (pattern for pattern in preset.patterns if pattern not in RESTS):
            fits |= np.asarray(pc.match_substring_regex(lines, re.sub(r"\(\?P<\w+>", "(?:", pattern)))
        shares[name] = float(fits.mean()) if len(lines) else 0.0
    best = max(shares, key=lambda name: shares[name])
    return (best if shares[best] >= _LEAST_SHARE else None), shares[best]


def base_of(path: Path, column: pa.ChunkedArray, forms: Sequence[str]) -> tuple[str | None, bool]:
    """Return the latest year, or day, of the first stamp for which none lies after the file's last change.

    Also whether the next one is ruled out by so little that a clock of another time zone would explain it.
    """
    # Logs have the time of the place where they are written, which may be this one.
    local = datetime.fromtimestamp(path.stat().st_mtime, UTC).astimezone().replace(tzinfo=None)
    changed = np.datetime64(local, "ns")
    for unit, leap in (("Y", "2024"), ("D", "2024-02-29")):
        if not TimeFormat(told_with(forms, leap), leap).fits(column).all():
            continue
        begin, next_late = changed.astype(f"M8[{unit}]"), _DAY
        for _ in range(_MOST_BASES):
            stamps = stamp_column(TIME, column, TimeFormat(told_with(forms, str(begin)), str(begin)))
            late = _DAY if stamps is None else int(stamps.counts.max()) - int(changed.astype(np.int64))
            if late <= 0:
                return str(begin), (late + _DAY if unit == "D" else next_late) <= _FARTHEST_ZONE
            # All stamps of days move together; a year may lack 29 February.
            begin, next_late = begin - (1 if unit == "Y" or stamps is None else -(-late // _DAY)), late
    return None, False
