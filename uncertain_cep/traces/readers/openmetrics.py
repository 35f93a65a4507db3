"""Samples in the text format of OpenMetrics and Prometheus, with their stamps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.readers.event_columns import in_batches
from uncertain_cep.traces.readers.metric_series import finite, labelled
from uncertain_cep.traces.readers.source import Source, shown_text

__all__ = ["ATTRIBUTES", "events"]

ATTRIBUTES: Final = pa.schema([("value", pa.float64()), ("step_ms", pa.int64())])

_SAMPLE: Final = re.compile(
    r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*?)\})?[ \t]+(\S+)(?:[ \t]+([-+0-9.eE]+))?(?:[ \t]+#.*)?", re.DOTALL
)
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
_LABELS: Final = re.compile(rf"(?:{_LABEL.pattern}\s*(?:,\s*|\Z))*", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)")
_NEWLINE: Final = {"n": "\n"}
_MOST_SERIES: Final = 100_000
"""Series whose labels are kept."""

_SECONDS_BELOW: Final = 100_000_000_000
"""The text of Prometheus has stamps in ms, that of OpenMetrics in s; this is in 1973 or 5138."""

Sample = tuple[str, dict[str, str], str, float | None, int]
"""The name, the labels, the series, the value and the ms since 1970."""


@in_batches(ATTRIBUTES)
def events(source: Source) -> Iterator[tuple[Any, ...]]:
    """Yield the samples, of the type of their name; their labels are further attributes.

    A sample at T tells of (T - step, T]. The step is the least distance between stamps of the series so far;
    the first sample of a series has that of the second, and tells of T if there is none.
    """
    # The last stamp of each series, the step, and its first sample while there is no second.
    latest: dict[str, tuple[int, int | None, Sample | None]] = {}
    samples = _Samples()
    for row, line in source.lines():
        if line.startswith(b"#"):
            if line == b"# EOF":
                break
            continue
        sample = samples.read(line, row)
        series, time = sample[2], sample[4]
        before = latest.get(series)
        if before is None:
            latest[series] = time, None, sample
            continue
        last, step, first = before
        distance = abs(time - last)
        if distance and (step is None or distance < step):
            step = distance
        if first is not None and step is not None:
            yield _event(*first, step)
            first = None
        yield _event(*sample, step)
        latest[series] = time, step, first
    for _, _, first in latest.values():
        if first is not None:
            yield _event(*first, None)


def _event(
    name: str, labels: dict[str, str], series: str, value: float | None, time: int, step: int | None
) -> tuple[Any, ...]:
    return name, f"{series}:{time}", time - (step or 1) + 1, time, value, step, labels


class _Samples:
    """Reads samples, and keeps what their names and labels say: a series has the same text in all of them."""

    def __init__(self) -> None:
        self._series: dict[str, tuple[str, dict[str, str], str]] = {}

    def read(self, line: bytes, row: int) -> Sample:
        """Return the sample of a line."""
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise _fault("its text is not UTF-8: convert the file", row, line) from None
        head, *numbers = text.rsplit(None, 2)
        series = self._series.get(head) if len(numbers) == 2 else None
        if series is None:
            match = _SAMPLE.fullmatch(text)
            if match is None or (match[2] and not _LABELS.fullmatch(match[2])):
                message = "it is no sample: a name, labels in braces, a value and a stamp are expected"
                raise _fault(message, row, line)
            if match[4] is None:
                raise _fault("the sample has no stamp: write it, or read what a server keeps", row, line)
            labels = {
                label: _ESCAPE.sub(lambda escape: _NEWLINE.get(escape[1], escape[1]), text)
                for label, text in _LABEL.findall(match[2] or "")
            }
            series = match[1], labels, labelled(match[1], labels)
            if numbers == [match[3], match[4]] and len(self._series) < _MOST_SERIES:
                self._series[head] = series
            numbers = [match[3], match[4]]
        try:
            value, time = finite(numbers[0]), float(numbers[1])
        except ValueError:
            raise _fault("the value or the stamp is no number", row, line) from None
        if not 0 <= time < 2**53:
            raise _fault("the stamp is out of range", row, line)
        return *series, value, round(time * 1000 if time < _SECONDS_BELOW else time)


def _fault(message: str, row: int, line: bytes) -> TraceError:
    return TraceError(TraceFault(message, row=row, value=shown_text(line)))
