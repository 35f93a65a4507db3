"""Files of lines longer than what a worker of Spark may hold: its memory, and its events a second."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.figures import Options, Results, at_most
from benchmarks.isolated import run_isolated
from benchmarks.resident import peaks_below, seconds_below

__all__ = ["measure"]

_BYTES: Final = 1 << 30
_REST: Final = "x" * 950
_LINES: Final = {
    "jsonl": ("", '{{"id":{0},"time":{1},"host":"h{2}","rest":"' + _REST + '"}}\n'),
    "csv": ("id,time,host,rest\n", "{0},{1},h{2}," + _REST + "\n"),
    "log": ("", "{1} h{2} {0} " + _REST + "\n"),
}
"""What a file begins with, and a line of a number, a stamp in ms and one of a hundred hosts."""

_SCHEMA: Final = """
tick = "1ms"
{extract}
[[events]]
type = "Line"
id = "{{id}}"
time = "time"
unit = "ms"
attributes = ["host"]
uncertainty = {{ kind = "plus_minus", by = "5ms" }}
"""
_EXTRACT: Final = """
[extract]
line = '^(?P<time>[0-9]+) h(?P<host>[0-9]+) (?P<id>[0-9]+) '
[types]
time = "int"
"""
_HELD: Final = 1000.0
"""Most MiB that a worker may hold: its libraries, its events, and a block of the file."""


def _written(path: Path, begin: str, line: str, size: int) -> int:
    """Write a file of about so many bytes, and return its lines."""
    number = 0
    with path.open("w", encoding="utf-8") as file:
        file.write(begin)
        while file.tell() < size:
            file.writelines(
                line.format(place, 1_700_000_000_000 + place, place % 100)
                for place in range(number, number + 1000)
            )
            number += 1000
    return number


def _read(path: str, schema: str) -> tuple[int, float]:
    """Return the most bytes that a worker of Spark held, and the seconds that workers took."""
    from uncertain_cep.spark import get_session, read_traces

    session = get_session("local[1]")
    try:
        before = sum(seconds_below("python"))
        read_traces(session, path, schema).write.format("noop").mode("overwrite").save()
        return max(peaks_below("python")), sum(seconds_below("python")) - before
    finally:
        session.stop()


def measure(options: Options) -> Results:
    """Measure a worker that reads 1 GiB: once to find out types and faults, and once for its events."""
    results = Results()
    if not hasattr(os, "sched_getaffinity"):
        results.failures.append("memory of workers: needs Linux' /proc")
        return results
    for name, (begin, line) in _LINES.items():
        with TemporaryDirectory(prefix="uncertain-cep-benchmark-") as folder:
            path, schema = Path(folder, f"lines.{name}"), Path(folder, "schema.toml")
            rows = _written(path, begin, line, int(_BYTES * options.scale))
            schema.write_text(_SCHEMA.format(extract=_EXTRACT if name == "log" else ""), encoding="utf-8")
            held, seconds = run_isolated(_read, str(path), str(schema))
            note = f"{path.stat().st_size / 2**20:,.0f} MiB, {rows:,} events"
        results.add(f"{name}: most memory of a worker", held / 2**20, "MiB", at_most(_HELD), note=note)
        results.add(f"{name}: of a worker's processor time", rows / seconds / 1e6, "M events/s", note=note)
    return results
