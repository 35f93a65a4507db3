"""Stamps with a time zone beside stamps without one: hours may lie between what is meant and what is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import TraceError, warn
from uncertain_cep.traces.faulty_rows import row_faults

__all__ = ["check_rows_agree", "warn_of_naive", "zoned_rows"]

_ZONED: Final = r":.*(Z|z|[+-][0-9]{2}(:?[0-9]{2})?)$"

_FEW: Final = 3
"""Names that a warning lists."""


def zoned_rows(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which ISO 8601 texts have a time zone, null where there is no text."""
    return pc.match_substring_regex(text, _ZONED)


def check_rows_agree(values: pa.ChunkedArray, column: str) -> None:
    """Check that all stamps of a column of text have a time zone, or none has.

    Raises
    ------
    TraceError
        That names the rows without one.
    """
    text = values.cast(pa.string())
    zoned = zoned_rows(text)
    seen = pc.min_max(zoned)
    if seen["min"].as_py() == seen["max"].as_py():
        return
    message = (
        "it has no time zone, and other stamps of this column have one: give each a zone (Z, +02:00), or none"
    )
    naive = np.asarray(pc.fill_null(pc.invert(zoned), False).to_numpy())
    raise TraceError(row_faults(naive, message, column=column, values=text))


def warn_of_naive(found: Iterable[tuple[str, pa.DataType]], *, of: str = "") -> None:
    """Warn if some of what is put together are timestamps with a time zone, and others without.

    Parameters
    ----------
    found : iterable of (str, DataType)
        Names, of columns or of files, and the types of the stamps in them.
    of : str
        What the names have, if they are not the columns themselves.
    """
    stamps = [(name, dtype.tz) for name, dtype in found if pa.types.is_timestamp(dtype)]
    naive = list(dict.fromkeys(name for name, zone in stamps if zone is None))
    zoned = [(name, zone) for name, zone in stamps if zone is not None]
    if naive and zoned:
        shown = ", ".join(naive[:_FEW]) + (f" and {len(naive) - _FEW:,} more" if len(naive) > _FEW else "")
        name, zone = zoned[0]
        warn(
            f"no time zone in {of}{shown}, and {zone} in {name}: what has none is read as UTC; "
            "give all a zone, or none"
        )
