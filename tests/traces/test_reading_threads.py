"""Files of every format become the same events, faults, warnings and counts with any number of threads."""

from __future__ import annotations

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from benchmarks.readers import LOGS
from tests.traces.readers.samples import SAMPLES
from uncertain_cep.errors import TraceError
from uncertain_cep.traces import cells, csv_files, intervals, json_files, text_lines
from uncertain_cep.traces.readers import READERS, source
from uncertain_cep.traces.reading import load_traces

_HEAD: Final = 'tick = "1ms"\n{extract}[[events]]\ntype = "Line"\ntime = "time"\nmissing = "{missing}"\n'
_RULES: Final = (
    'uncertainty = { kind = "as_written" }\n',
    'uncertainty = { kind = "plus_minus", by = "20ms" }\n',
    'uncertainty = { kind = "columns", lower = "time", upper = "time + 1s" }\n',
)
_OF_ROWS: Final = (
    *_RULES,
    'uncertainty = { kind = "columns", lower = "time", upper = "time + slack" }\nunit = "us"\n',
    'uncertainty = { kind = "columns", lower = "time - slack", upper = "time + more" }\nunit = "us"\n',
    'uncertainty = { kind = "exact" }\nduration = "slack"\nunit = "us"\n',
)
_SOUND: Final = ("2024-05-31T10:00:00.", "2024-05-31T10:00:01,", '{"time":"2024-05-31T10:00:00.')
_STAMPS: Final = (
    *("2024-05-31T10:00:00.0005", "2024-05-31T10:00:00.0009", "2024-05-31T10:00:01", "2024-05-31T23:59:60"),
    *("2024-05-31T10:00:00Z", "2024-05-31T10:00:00+02:00", "", "x", "2024-10-27T02:30:00"),
)


def _log_lines(name: str) -> tuple[str, ...]:
    line = LOGS[name]
    usual = [
        line.replace("@s", f"{second:02}:{second:02}")
        .replace("@n", str(second))
        .replace("@m", f"{second:03}")
        for second in (1, 2, 3, 59)
    ]
    whole = [each.replace("@k", "7").rstrip("\n") for each in usual]
    turned = [
        each.replace("Oct", "Jan").replace("2015-10", "2015-13").replace("F mess", "P mess") for each in whole
    ]
    return (*whole, *turned, "\tat a.B(C.java:1)", "Caused by: x", "", "no line of this form é", "\xff")


_LINES: Final = {
    **{name: tuple(text.splitlines()) for name, text in SAMPLES.items() if name in READERS},
    **{name: _log_lines(name) for name in LOGS},
    "csv": tuple(f"{stamp},{slacks}" for slacks in ("0,1500", "1500,0", "1000,0") for stamp in _STAMPS),
    "jsonl": (
        *(f'{{"time":"{stamp}","slack":0,"more":1500}}' for stamp in _STAMPS),
        *(f'{{"time":"{stamp}","slack":1500,"more":-1}}' for stamp in _STAMPS),
        *('{"time":null,"slack":2000}', '{"slack":1}', "{"),
        '{"time":"2024-05-31T10:00:02","slack":2.5,"a":{"b":[1]}}',
    ),
}  # fmt: skip
_ENDS: Final = {"csv": ".csv", "jsonl": ".jsonl"}


@st.composite
def _files(draw: st.DrawFn) -> tuple[str, bytes, str | None]:
    """Draw the format of a file, what is in it, and the schema that it is read by."""
    name = draw(st.sampled_from(sorted(_LINES)))
    if name in READERS:
        lines = list(_LINES[name])
        for place in draw(st.lists(st.integers(0, len(lines) - 1), max_size=4)):
            kept = draw(
                st.sampled_from([[lines[place], lines[place]], [], [lines[place][:-2]], [lines[place], ""]])
            )
            lines[place : place + 1] = kept or [""]
        return name, "\n".join(lines).encode(), None
    # Most lines are sound.
    sound = [line for line in _LINES[name] if line.startswith(_SOUND)] or _LINES[name][:4]
    chosen = draw(st.lists(st.sampled_from(sound), min_size=1, max_size=24))
    lines = chosen + draw(st.lists(st.sampled_from(_LINES[name]), max_size=2))
    lines = draw(st.permutations(lines))
    head = "time,slack,more\n" if name == "csv" else ""
    extract = f'[extract]\nline = "{name}"\n' if name in LOGS else ""
    schema = _HEAD.format(extract=extract, missing=draw(st.sampled_from(["error", "drop"])))
    rule = draw(st.sampled_from(_RULES if name in LOGS else _OF_ROWS))
    if "duration" in rule:
        schema = schema.replace('time = "time"', 'begin = "time"')
    schema += rule
    if name == "syslog":
        schema += draw(st.sampled_from(["year = 2015\n", "year = 2015\nfixed_date = true\n"]))
    if name in _ENDS and draw(st.booleans()):
        schema += 'time_zone = "Europe/Prague"\n'
    return name, (head + "\n".join(lines)).encode("latin-1" if "\xff" in lines else "utf-8"), schema


def _loaded(path: Path, schema: Path | None, format: str | None, threads: int, size: int) -> Any:
    """Return all that is known of a file that so many threads read, in blocks of so many bytes and rows."""
    before = pa.cpu_count()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        patch.setattr(cells, "available_cores", lambda: threads)
        for module, name in ((source, "_BLOCK"), (text_lines, "_BLOCK"), (json_files, "JSON_BLOCK")):
            patch.setattr(module, name, 64 * size)
        patch.setattr(intervals, "_BLOCK", size)
        patch.setattr(csv_files, "LONG", 64 * size)
        pa.set_cpu_count(max(threads, before))
        try:
            loaded = load_traces(path, schema, format=format)
        except TraceError as error:
            return error.faults, [str(one.message) for one in caught]
        finally:
            pa.set_cpu_count(before)
    table = loaded.table
    rows = None if table is None else (str(table.schema), repr(table.to_pylist()))
    counts = (loaded.rows, loaded.dropped, loaded.floored, loaded.duplicates, loaded.merged, loaded.tick)
    return rows, loaded.faults, counts, repr(loaded.origin), [str(one.message) for one in caught]


_TWO_FAULTS: Final = (
    "log4j",
    b"2015-10-17 15:00:00,000 INFO [m] a.B: x\n" * 3 + b"\xff",
    _HEAD.format(extract='[extract]\nline = "(?P<line>[0-9]+)"\n', missing="error") + _RULES[0],
)
"""No block can be read, and a later one has no text either."""
_FLOORED: Final = (
    "csv",
    b"time,slack,more\n2024-05-31T10:00:01,0,1500\n2024-05-31T10:00:01,1500,0\n",
    _HEAD.format(extract="", missing="error") + _OF_ROWS[4],
)
"""One row, or the other, has a length of no whole ticks, for one of the bounds each."""


@given(_files(), st.sampled_from([1, 2, 5, 1 << 16]))
@example(_TWO_FAULTS, 1)
@example(_FLOORED, 1)
def test_any_number_of_threads_reads_the_same(file: tuple[str, bytes, str | None], size: int) -> None:
    name, data, schema_text = file
    with TemporaryDirectory() as folder:
        path, schema = Path(folder, f"t{_ENDS.get(name, '.log')}"), Path(folder, "s.toml")
        path.write_bytes(data)
        if schema_text is not None:
            schema.write_text(schema_text)
        named = None if schema_text is not None else name
        one, *of_several = (
            _loaded(path, schema if schema_text is not None else None, named, threads, size)
            for threads in (1, 2, 5)
        )
    kind = "faults" if len(one) == 2 or one[1] else "floored" if one[2][2] else "rows"
    event(f"{name}: {kind}")
    for several in of_several:
        assert several == one


def test_every_format_of_lines_is_in_the_property() -> None:
    assert not READERS.keys() - _LINES.keys()
