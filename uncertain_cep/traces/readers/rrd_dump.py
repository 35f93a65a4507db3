"""XML that ``rrdtool dump`` writes: archives of rows, one a step, of the values of data sources."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.readers.event_columns import in_batches
from uncertain_cep.traces.readers.source import Source
from uncertain_cep.traces.readers.xml_elements import parsed_elements

__all__ = ["ATTRIBUTES", "events"]

ATTRIBUTES: Final = pa.schema(
    [
        ("file", pa.string()),
        ("folder", pa.string()),
        ("source", pa.string()),
        ("function", pa.string()),
        ("step_s", pa.int64()),
        ("value", pa.float64()),
    ]
)


_NONE: Final = frozenset[str]()


@in_batches(ATTRIBUTES)
def events(source: Source) -> Iterator[tuple[Any, ...]]:
    """Yield the known values of all archives.

    The last row of an archive is of the last whole step before the last update; a row at T tells of
    (T - step, T]. Ganglia calls every data source sum and names the file after the metric, so the type of its
    events is the name of the file.
    """
    place = Path(source.path)
    file = place.name.partition(".")[0]
    names: list[str] = []
    rows: list[tuple[float, ...]] = []
    values: list[float] = []
    header: dict[str, int] = {}
    function, per_row, archive = "", 1, 0
    path: list[str] = []
    for begins, element in parsed_elements(source, "rrd", _NONE):
        if begins:
            path.append(element.tag)
            continue
        match path[1:]:
            case ["step" | "lastupdate" as key]:
                header[key] = _whole(element)
            case ["ds", "name"]:
                names.append((element.text or "").strip())
            case ["rra", "cf"]:
                function = (element.text or "").strip()
            case ["rra", "pdp_per_row"]:
                per_row = _whole(element)
            case ["rra", "database", "row", "v"]:
                values.append(_number(element))
            case ["rra", "database", "row"]:
                if len(values) != len(names):
                    message = f"the row has {len(values)} values for {len(names)} data sources"
                    raise TraceError(TraceFault(message, row=element.sourceline))
                rows.append(tuple(values))
                values = []
            case ["rra"]:
                if not header.keys() >= {"step", "lastupdate"}:
                    message = "an archive stands before <step> and <lastupdate>"
                    raise TraceError(TraceFault(message, row=element.sourceline))
                width = header["step"] * per_row
                last = header["lastupdate"] // width * width
                archive += 1
                for number, row in enumerate(rows):
                    time = last - (len(rows) - 1 - number) * width
                    for name, value in zip(names, row, strict=True):
                        if math.isfinite(value):
                            kind = file if name == "sum" else name
                            yield (
                                *(kind, f"{place.parent.name}/{file}/{name}:{archive}:{time}"),
                                *(time - width + 1, time, file, place.parent.name, name, function, width),
                                *(value, {}),
                            )
                rows = []
        path.pop()


def _whole(element: Any) -> int:
    text = (element.text or "").strip()
    if not (text.isascii() and text.isdigit() and len(text) < 18 and int(text)):
        message = f"<{element.tag}> needs a whole number of 1 or more"
        raise TraceError(TraceFault(message, row=element.sourceline, value=repr(text[:60])))
    return int(text)


def _number(element: Any) -> float:
    try:
        return float((element.text or "").strip())
    except ValueError:
        message = "it is no number"
        raise TraceError(
            TraceFault(message, row=element.sourceline, value=repr((element.text or "")[:60]))
        ) from None
