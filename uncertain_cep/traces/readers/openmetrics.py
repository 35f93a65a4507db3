"""Samples in the text format of OpenMetrics and Prometheus, with their stamps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.running.in_order import in_order
from uncertain_cep.traces.cells import reading_threads
from uncertain_cep.traces.readers.metric_series import (
    NO_STEP,
    SERIES_ATTRIBUTES,
    Series,
    finite,
    labelled,
    series_batch,
)
from uncertain_cep.traces.readers.source import Source, numbered_lines, shown_text

__all__ = ["ATTRIBUTES", "events"]

ATTRIBUTES: Final = SERIES_ATTRIBUTES

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
_LARGEST: Final = 2.0**53


class _Read(NamedTuple):
    """Samples: distinct texts before the values, which of these each has, values, and ms since 1970."""

    heads: list[str]
    codes: Any
    values: Any
    times: Any


def events(source: Source) -> Iterator[pa.RecordBatch]:
    """Yield the samples, of the type of their name; their labels are further attributes.

    A sample at T tells of (T - step, T]. The step is the least distance between stamps of the series so far;
    the first sample of a series has that of the second, and tells of T if there is none.
    """
    heads = _Heads()
    steps = _Steps()
    for before, block, columns in in_order(reading_threads(), source.blocks(), _in_columns):
        samples, ended = (columns, False) if columns is not None else heads.read(block, before)
        if samples.heads:
            series = heads.numbers(samples.heads)
            if series is None:
                samples, ended = heads.read(block, before)
                series = heads.numbers(samples.heads)
            numbers = np.array(series, np.int64)[samples.codes]
            followed = steps.follow(numbers, samples.values, samples.times)
            # A batch without events would have no labels, and the first batch tells their names.
            if len(followed[0]):
                yield series_batch(source.further, heads.series, *followed)
        if ended:
            break
    yield series_batch(source.further, heads.series, *steps.alone())


def _in_columns(lines: tuple[int, bytes]) -> tuple[int, bytes, _Read | None]:
    """Return some lines and their samples; None for these if they have to be read one by one."""
    return *lines, _columns(lines[1])


def _columns(block: bytes) -> _Read | None:
    if b"# EOF" in block:
        return None
    try:
        text = pa.array([block.decode()], pa.large_string())
        lines = pc.ascii_trim_whitespace(pc.list_flatten(pc.split_pattern(text, "\n")))
        lines = lines.filter(pc.and_(pc.not_equal(lines, ""), pc.invert(pc.starts_with(lines, "#"))))
        parts = pc.utf8_split_whitespace(lines, max_splits=2, reverse=True)
        if pc.any(pc.not_equal(pc.list_value_length(parts), 3)).as_py():
            return None
        pieces = pc.list_flatten(parts)
        places = np.arange(0, len(pieces), 3)
        heads = pieces.take(pa.array(places)).dictionary_encode()
        values = np.asarray(pieces.take(pa.array(places + 1)).cast(pa.float64()))
        times = np.asarray(pieces.take(pa.array(places + 2)).cast(pa.float64()))
    except MemoryError:
        raise
    except (UnicodeDecodeError, pa.ArrowException):
        return None
    if not ((times >= 0) & (times < _LARGEST)).all():
        return None
    return _Read(heads.dictionary.to_pylist(), np.asarray(heads.indices), values, _in_ms(times))


def _in_ms(times: Any) -> Any:
    return np.rint(np.where(times < _SECONDS_BELOW, times * 1000, times)).astype(np.int64)


class _Heads:
    """Names with labels, and the number of the series of each: a series has one text in all its samples."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._of_texts: dict[str, int] = {}
        self.series: list[Series] = []

    def numbers(self, heads: list[str]) -> list[int] | None:
        """Return the numbers of the series of names with labels; None if one of them is no such name."""
        numbers = []
        for head in heads:
            number = self._number(head)
            if number is None:
                return None
            numbers.append(number)
        return numbers

    def _number(self, head: str) -> int | None:
        number = self._numbers.get(head)
        if number is None:
            match = _matched(f"{head} 0 0")
            # A head with a comment or a stamp in it is text of another place of the line.
            if match is None or _head_of(match) != head:
                return None
            labels = {
                label: _ESCAPE.sub(lambda escape: _NEWLINE.get(escape[1], escape[1]), text)
                for label, text in _LABEL.findall(match[2] or "")
            }
            text = labelled(match[1], labels)
            number = self._of_texts.setdefault(text, len(self.series))
            if number == len(self.series):
                self.series.append(Series(match[1], labels, text))
            if len(self._numbers) < _MOST_SERIES:
                self._numbers[head] = number
        return number

    def read(self, block: bytes, before: int) -> tuple[_Read, bool]:
        """Return the samples of lines, one by one, and whether an end stands behind them."""
        heads: dict[str, int] = {}
        rows = []
        ended = False
        for row, line in numbered_lines(block, before):
            if line.startswith(b"#"):
                ended = line == b"# EOF"
                if ended:
                    break
                continue
            head, value, time = _sample(line, row)
            rows.append((heads.setdefault(head, len(heads)), value, time))
        codes, values, times = zip(*rows, strict=True) if rows else ((), (), ())
        read = _Read(
            list(heads),
            np.array(codes, np.int64),
            np.array([np.nan if value is None else value for value in values]),
            _in_ms(np.array(times, float)),
        )
        return read, ended


def _sample(line: bytes, row: int) -> tuple[str, float | None, float]:
    """Return the name with labels, the value and the stamp of a line."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise _fault("its text is not UTF-8: convert the file", row, line) from None
    match = _matched(text)
    if match is None:
        message = "it is no sample: a name, labels in braces, a value and a stamp are expected"
        raise _fault(message, row, line)
    if match[4] is None:
        raise _fault("the sample has no stamp: write it, or read what a server keeps", row, line)
    try:
        value, time = finite(match[3]), float(match[4])
    except ValueError:
        raise _fault("the value or the stamp is no number", row, line) from None
    if not 0 <= time < _LARGEST:
        raise _fault("the stamp is out of range", row, line)
    return _head_of(match), value, time


def _matched(text: str) -> re.Match[str] | None:
    """Return the parts of a sample's text: name, labels, value, stamp; None if it is no sample."""
    match = _SAMPLE.fullmatch(text)
    return None if match is None or (match[2] and not _LABELS.fullmatch(match[2])) else match


def _head_of(match: re.Match[str]) -> str:
    """Return the name with its labels, as they are written."""
    return match[1] if match[2] is None else f"{match[1]}{{{match[2]}}}"


class _Steps:
    """The last stamp of each series, its step so far, and its first sample while it has no step."""

    def __init__(self) -> None:
        self._last = np.zeros(0, np.int64)
        self._step = np.zeros(0, np.int64)
        self._value = np.zeros(0)
        self._first = np.zeros(0, np.int64)
        """The stamp of the first sample; -1: it has been returned, -2: there is none yet."""

    def follow(self, series: Any, values: Any, times: Any) -> tuple[Any, ...]:
        """Return the samples that have a step, behind those before: series, values, times and steps, (k,).

        ``series`` (n,) int64 are numbers; those of new series are behind the numbers of all before.
        """
        self._grow(int(series.max()) + 1)
        order = np.argsort(series, kind="stable")
        of, at = series[order], times[order]
        begins = np.flatnonzero(np.diff(of, prepend=-1))
        segment = np.cumsum(np.diff(of, prepend=-1) != 0) - 1
        ids = of[begins]
        is_new = self._first[ids] == -2
        distance = np.abs(np.diff(at, prepend=0))
        distance[begins] = np.where(is_new, 0, np.abs(at[begins] - self._last[ids]))
        distance[distance == 0] = NO_STEP
        distance[begins] = np.minimum(distance[begins], self._step[ids])
        step = _least_so_far(distance, segment)
        # The first sample of a series waits for a step, at its place in the file.
        waits = np.zeros(len(of), np.bool_)
        waits[begins] = is_new
        self._first[ids[is_new]] = at[begins][is_new]
        self._value[ids[is_new]] = values[order][begins][is_new]
        pending = np.flatnonzero((self._first[of] >= 0) & (step != NO_STEP))
        released = pending[np.unique(segment[pending], return_index=True)[1]]
        later = np.flatnonzero(~waits)
        place = np.concatenate([2 * order[released], 2 * order[later] + 1])
        rows = np.argsort(place, kind="stable")
        sorted_values = values[order]
        result = (
            np.concatenate([of[released], of[later]])[rows],
            np.concatenate([self._value[of[released]], sorted_values[later]])[rows],
            np.concatenate([self._first[of[released]], at[later]])[rows],
            np.concatenate([step[released], step[later]])[rows],
        )
        self._first[of[released]] = -1
        ends = np.append(begins[1:], len(of)) - 1
        self._last[ids], self._step[ids] = at[ends], step[ends]
        return result

    def alone(self) -> tuple[Any, ...]:
        """Return the samples that are the only ones of their stamp in their series."""
        series = np.flatnonzero(self._first >= 0)
        return series, self._value[series], self._first[series], np.full(len(series), NO_STEP)

    def _grow(self, count: int) -> None:
        more = max(count - len(self._last), 0)
        # Room for as many again, so that a new series costs little.
        more = more and max(more, len(self._last))
        self._last = np.append(self._last, np.zeros(more, np.int64))
        self._step = np.append(self._step, np.full(more, NO_STEP))
        self._value = np.append(self._value, np.zeros(more))
        self._first = np.append(self._first, np.full(more, -2))


def _least_so_far(values: Any, segment: Any) -> Any:
    """Return the least of each value, (n,) int64, and those before it in its segment, (n,) from 0 on."""
    distinct, ranks = np.unique(values, return_inverse=True)
    # Every rank of a segment is below those of the segments before.
    keys = ranks + (segment[-1] - segment) * len(distinct)
    return distinct[np.minimum.accumulate(keys) - (segment[-1] - segment) * len(distinct)]


def _fault(message: str, row: int, line: bytes) -> TraceError:
    return TraceError(TraceFault(message, row=row, value=shown_text(line)))
