"""Any bytes in a file: it is read, or refused with what is wrong and where."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uncertain_cep as uc
from tests.fuzz.fuzzing import Fuzzer, allowed, mutated, pieces_left_out

CSV: tuple[bytes, ...] = (
    b'type,id,lower,upper,x\nA,1,1,2,a\nB,2,3,5,"b, c"\nA,3,4,9,\n',
    b"type,id,lower,upper\nA,a1,2026-01-05 08:00:00Z,2026-01-05T08:00:01Z\n"
    b"B,b,2026-01-05T00:00Z,2026-01-06T00:00Z\n",
    b"ts;host;level;n\n1700000000;web-1;ERROR;1\n1700000001;web-2;;2.5\n",
)
JSON = (
    b'{"type": "A", "id": 1, "lower": 1, "upper": 2, "pmf": [0.5, 0.5], "x": null}\n'
    b'{"type": "B", "id": 2, "lower": 3, "upper": 5}\n',
    b'{"type": "A", "id": "a", "lower": "2026-01-05T08:00:00Z", "upper": "2026-01-05T08:00:01.5-01:00"}\n',
    b'[{"ts": 1.5, "host": {"name": "a"}},\n {"tags": [{"ts": 2}]}]\n',
    b'{\n"ts": "12:30",\n"tags": []}\n{"ts": "12:31"}',
    b'{"ts": 1700000000, "host": {"name": "web-1"}, "tags": ["a"]}\n{"ts": 1.7e9, "host": null}\n',
)
LOGS = (
    b"<34>Oct 11 22:14:15 web-1 su[123]: failed\n\tat x\nOct  1 22:14:16 b kernel: y\r\n",
    b"2016-10-06T00:17:09.66Z stdout P one\n2016-10-06T00:17:10+02:00 stdout F two\n",
)
PACK: dict[str, Callable[[bytes], bytes]] = {
    "zst": lambda data: bytes(pa.compress(data, "zstd", asbytes=True)),
    "bz2": bz2.compress,
    "xz": lzma.compress,
}
SCHEMAS = (
    b'tick = "1ms"\n[[events]]\ntype = "A"\ntime = "ts"\nunit = "s"\n'
    b'uncertainty = { kind = "plus_minus", by = "500ms" }\nwhere = "host = \'web-1\'"\n'
    b'[events.attributes]\nlevel = "level"\n',
    b'columns = ["t", "k"]\ndeduplicate = true\n[columns_by.k]\nA = ["x"]\n'
    b'[[events]]\ntype_column = "variable"\nvalue_columns = ["x", "l*"]\ntime = "t + x"\n'
    b'time_format = ["epoch_ms", "%b %d %H:%M:%S", "iso"]\nyear = 2015\ntime_zone = "Europe/Berlin"\n'
    b'uncertainty = { kind = "as_written" }\ntypes = { x = "float" }\n',
    b'explode = "tags"\nfile_column = "f"\ncontinuation = "^ "\n'
    b'[extract]\nline = ["syslog", "(?P<time>.*)"]\n'
    b'[[events]]\ntype = "L"\ntime = "time"\nyear = 2015\nuncertainty = { kind = "as_written" }\n',
    b'[[events]]\ntype = "L"\ntime = "ts"\nid = "host.name"\ndate = 2015-10-17\ntime_format = "%H:%M"\n'
    b'uncertainty = { kind = "exact" }\n',
    b'[[events]]\ntype_column = "host"\nid = "n"\ntime = "ts"\nunit = "s"\nmissing = "drop"\n'
    b'[events.uncertainty_by.level]\nERROR = { kind = "exact" }\nINFO = { kind = "exact" }\n',
)
_BYTES = [
    *(b"", b",", b";", b"\n", b"\r\n", b'"', b"'", b"[", b"]", b"{", b"}", b":", b"\\", b"\t", b" ", b"\x00"),
    *(
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"\xff\xfe",
        b"null",
        b"true",
        b"NaN",
        b"Infinity",
        b"-",
        b".",
    ),
    *(b"1e400", b"-0", b"99999999999999999999", b"9223372036854775807", b"0.1", b"2026-02-30", b"24:00:00"),
    *(
        b"0001-01-01",
        b"9999-12-31T23:59:59.999999999Z",
        b"+99:99",
        b"\\ud800",
        b"[[events]]",
        b"=",
        b"#",
        b"type",
    ),
    *(b"lower", b"id", b"tick", b"pmf", b"x" * 5000, b"[" * 2000, b'{"a":' * 500),
]


@dataclass(frozen=True)
class File:
    """A file by its name, and a schema file if there is one."""

    name: str
    content: bytes
    schema: bytes | None = None


@cache
def parquet() -> tuple[bytes, ...]:
    """Return sound files of several writers' options."""
    tables = [
        pa.table(
            {"type": ["A", "B"], "id": [1, 2], "lower": [1, 3], "upper": [2, 5], "pmf": [[0.5, 0.5], None]}
        ),
        pa.table({"ts": pa.array([1, 2], pa.timestamp("ms")), "host": ["a", "b"], "level": ["ERROR", None]}),
    ]
    made = []
    for table in tables:
        for options in ({}, {"compression": "zstd"}, {"use_dictionary": False, "version": "1.0"}):
            sink = io.BytesIO()
            pq.write_table(table, sink, **options)
            made.append(sink.getvalue())
    return tuple(made)


def file(draw: random.Random) -> File:
    """Return a file that is sound, nearly so, or not at all."""
    schema = mutated(draw, draw.choice(SCHEMAS), _BYTES) if draw.random() < 0.4 else None
    kind = draw.choice(
        ("csv", "csv", "tsv", "json", "jsonl", "parquet", "csv.gz", "json.zst", "csv.bz2", "log", "log.xz")
    )
    if kind == "parquet":
        return File("t.parquet", mutated(draw, draw.choice(parquet()), _BYTES), schema)
    sound = LOGS if kind.startswith("log") else JSON if kind.startswith("json") else CSV
    content = mutated(draw, draw.choice(sound), _BYTES)
    if kind.endswith(".gz"):
        content = mutated(draw, gzip.compress(content, mtime=0), _BYTES)
    elif "." in kind:
        content = mutated(draw, PACK[kind.partition(".")[2]](content), _BYTES)
    return File(f"t.{kind}", content, schema)


def read(case: File) -> None:
    """Read a file in every way."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, case.name)
        path.write_bytes(case.content)
        schema = None
        if case.schema is not None:
            schema = Path(folder, "schema.toml")
            schema.write_bytes(case.schema)
        allowed(lambda: uc.read_traces(path, schema))
        allowed(lambda: uc.validate([path], schema, query="PATTERN SEQ(A a, B b) WITHIN 5"))


def smaller(case: File) -> Iterator[File]:
    """Yield the file with less in it."""
    if case.schema is not None:
        yield replace(case, schema=None)
        yield from (replace(case, schema=schema) for schema in pieces_left_out(case.schema))
    yield from (replace(case, content=content) for content in pieces_left_out(case.content))


FILES = Fuzzer(file, read, smaller)


def test_sound_files_are_read(tmp_path: Path) -> None:
    """The fuzzer begins with files that say something."""
    for content in (*CSV[:2], *JSON[:2], *parquet()[:3]):
        name = "t.parquet" if content.startswith(b"PAR1") else "t.json" if content[:1] in b"{[" else "t.csv"
        (tmp_path / name).write_bytes(content)
        assert uc.read_traces(tmp_path / name).num_rows, json.dumps(name)
    for content, schema in ((CSV[2], SCHEMAS[0]),):
        (tmp_path / "t.csv").write_bytes(content.replace(b";", b","))
        (tmp_path / "s.toml").write_bytes(schema)
        assert uc.read_traces(tmp_path / "t.csv", tmp_path / "s.toml").num_rows


def test_a_sample_of_files() -> None:
    FILES.run(60, seed=1)


@pytest.mark.thorough
def test_files() -> None:
    FILES.run(50_000)
