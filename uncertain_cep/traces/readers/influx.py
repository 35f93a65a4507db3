"""Points in the line protocol of InfluxDB: files of Telegraf, and exports of ``influxd inspect``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.readers.event_columns import in_batches
from uncertain_cep.traces.readers.metric_series import labelled
from uncertain_cep.traces.readers.source import Source, shown_text

__all__ = ["ATTRIBUTES", "BEGINS", "events"]

ATTRIBUTES: Final = pa.schema([])

_NAME: Final = r"(?:[^\s,=\\#\"{}]|\\.)"
_VALUE: Final = r"(?:\"(?:[^\"\\]|\\.)*\"|[-+]?[0-9][0-9.eE+-]*[iu]?|[tTfF]|[tT]rue|[fF]alse|TRUE|FALSE)"
_POINT: Final = (
    rf"(?P<name>(?:[^\s,\\#\"{{}}]|\\.)+)(?P<tags>(?:,{_NAME}+={_NAME}+)*)"
    rf" +(?P<fields>{_NAME}+={_VALUE}(?:,{_NAME}+={_VALUE})*) +(?P<time>-?[0-9]{{1,19}})"
)
BEGINS: Final = (
    r"(?:#[^\n]*\n|[ \t\r]*\n|CREATE DATABASE[^\n]*\n)*"
    + re.sub(r"\?P<\w+>", "?:", _POINT).replace("-?[0-9]{1,19}", "[0-9]{10,19}")
    + r"[ \t\r]*(?:\n|\Z)"
)
"""A point behind comments. Its stamp is of this century."""

_LINE: Final = re.compile(_POINT, re.DOTALL)
_PAIR: Final = re.compile(rf"({_NAME}+)=({_VALUE}|{_NAME}+)", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\([,= \"\\])")
_STATEMENTS: Final = (b"#", b"CREATE DATABASE")

_UNITS: Final = {10: 10**9, 13: 10**6, 16: 10**3}
"""Nanoseconds of the stamp's last digit, by its digits; others are nanoseconds."""


@in_batches(ATTRIBUTES)
def events(source: Source) -> Iterator[tuple[Any, ...]]:
    """Yield the points, of the type of their measurement; tags and fields are further attributes.

    A point tells of its stamp, which has as many digits as it is exact: of seconds the whole second.
    """
    for row, line in source.lines():
        if line.startswith(_STATEMENTS):
            continue
        try:
            match = _LINE.fullmatch(line.decode())
        except UnicodeDecodeError:
            raise _fault("its text is not UTF-8: convert the file", row, line) from None
        if match is None:
            message = "it is no point: a measurement with tags, fields and a stamp are expected"
            raise _fault(message, row, line)
        unit = _UNITS.get(len(match["time"]), 1)
        time = int(match["time"]) * unit
        if not 0 <= time < 2**63 - unit:
            raise _fault("the stamp is out of range", row, line)
        tags = {_plain(tag): _plain(value) for tag, value in _PAIR.findall(match["tags"])}
        name = _plain(match["name"])
        fields = {_plain(field): _value(value, row, line) for field, value in _PAIR.findall(match["fields"])}
        yield name, f"{labelled(name, tags)}:{match['time']}", time, time + unit - 1, tags | fields


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def _value(text: str, row: int, line: bytes) -> str | int | float | bool:
    if text[0] == '"':
        return _plain(text[1:-1])
    if text[0] in "tTfF":
        return text[0] in "tT"
    try:
        return int(text[:-1]) if text[-1] in "iu" else float(text)
    except ValueError:
        raise _fault("the value of a field is no number", row, line) from None


def _fault(message: str, row: int, line: bytes) -> TraceError:
    return TraceError(TraceFault(message, row=row, value=shown_text(line)))
