"""A command says and writes the same on Spark as in process, but for the order of rows and what it is at."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from tests.reporting.pages import data_of
from tests.spark.traces import KEYED, random_trace
from uncertain_cep.cli import main
from uncertain_cep.spark import match, text_spans, write_matches, writing

SECONDS = re.compile(r" in [0-9.]+ s\b")
ENGINES = ("local", "spark")


@pytest.fixture(autouse=True)
def ready(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have commands use the session of all tests, and start no process that compiles kernels."""

    def nothing_aside() -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(lambda: None)

    monkeypatch.setattr("uncertain_cep.cli.spark_sessions.compiling_aside", nothing_aside)


def run(*arguments: object) -> tuple[list[str], bytes]:
    """Return the lines that a command says, but for its progress, and its output."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.stderr
    lines = SECONDS.sub("", result.stderr).splitlines()
    progress = [line for line in lines if line.startswith(("engine: ", "read ")) or line.endswith(" ...")]
    return [line for line in lines if line not in progress], result.stdout_bytes


def sorted_lines(text: bytes) -> list[bytes]:
    """Return the lines of a text in order, without the header of each file but the first."""
    header, *rows = text.splitlines(keepends=True)
    return [header, *sorted(row for row in rows if row != header)]


def same(tmp_path: Path, *arguments: object, out: str | None = None) -> tuple[list[str], bytes]:
    """Return the sentences and sorted lines of a command, after a check that they are the same on Spark."""
    said, texts = [], []
    for engine in ENGINES:
        place = tmp_path / engine / out if out else tmp_path
        put = ("-o", place, "--overwrite") if out else ()
        lines, text = run(*arguments, *put, "--engine", engine)
        if out:
            parts = [place] if place.is_file() else sorted(place.glob(f"part-*.{arguments[-1]}"))
            text = b"".join(part.read_bytes() for part in parts)
        said.append([line.replace(str(place), "OUT") for line in lines])
        texts.append(sorted_lines(text))
    assert said[0] == said[1]
    assert texts[0] == texts[1]
    return said[0], b"".join(texts[0])


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with blanks, quotes and line breaks in its texts, and numbers that Java writes in other ways."""
    table = random_trace(5, 400, keys=3, span=150).drop_columns("not used")
    names = [None, " x ", 'say "y"', "a\nb,c", "\\", ""]
    table = table.set_column(
        table.schema.get_field_index("name"),
        "name",
        pa.array([names[number % len(names)] for number in range(400)]),
    )
    file = tmp_path_factory.mktemp("trace") / "trace.parquet"
    pq.write_table(table, file)
    return file


RETURNED = "RETURN a.name, b.value / 3.0 AS part, 1e-7 * c.value AS small, 1e17 * c.value AS large, a.weight"


@pytest.mark.parametrize("format_name", ["csv", "json"])
@pytest.mark.parametrize("out", ["folder", None])
def test_text_is_the_same(tmp_path: Path, trace: Path, out: str | None, format_name: str) -> None:
    query = f"{KEYED} {RETURNED}"
    said, text = same(tmp_path, "match", query, trace, "--format", format_name, out=out)
    assert said[-1].startswith("202 matches")
    assert b" x " in text
    assert (b"e-07" in text) == (format_name == "json")


@pytest.mark.parametrize(
    "clause",
    [
        "ORDER BY CONFIDENCE DESC LIMIT 7",
        "OUTPUT NON OVERLAPPING",
        "RETURN EXPECTED COUNT BY key EVERY 10",
        "RETURN PROBABILITY BY key EVERY 10",
    ],
)
def test_choices_and_counts_are_the_same(tmp_path: Path, trace: Path, clause: str) -> None:
    same(tmp_path, "match", f"{KEYED} {clause}", trace, "--format", "csv", out="folder")


def test_lists_are_the_same(tmp_path: Path, trace: Path) -> None:
    query = "PATTERN SEQ(A a, B+ b[]) WHERE [key] WITHIN 5 RETURN b.*"
    for format_name in ("csv", "json"):
        same(tmp_path, "match", query, trace, "--format", format_name, out="folder")


def test_a_uri_gets_the_same_text(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "local_path", lambda _: None)
    frame = spark.range(0, 6, 1, 3).select((f.col("id") / 4).alias("n"), f.lit(" x").alias("t"))
    for frames in (frame, frame.filter("n > 9")):
        write_matches(frames, (tmp_path / "out").as_uri(), "csv", overwrite=True)
        rows = frames.toArrow()
        sink = pa.BufferOutputStream()
        pyarrow.csv.write_csv(rows, sink)
        text = b"".join(part.read_bytes() for part in sorted((tmp_path / "out").glob("part-*.txt")))
        assert sorted_lines(text) == sorted_lines(sink.getvalue().to_pybytes())
    write_matches(frame, (tmp_path / "out").as_uri(), "json", overwrite=True)
    lines = b"".join(part.read_bytes() for part in (tmp_path / "out").glob("part-*.txt")).splitlines()
    assert sorted(json.loads(line)["n"] for line in lines) == [0, 0.25, 0.5, 0.75, 1, 1.25]


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file without events that may be long behind all others."""
    table = random_trace(12, 160, keys=2, span=60).drop_columns("not used")
    file = tmp_path_factory.mktemp("short") / "trace.parquet"
    pq.write_table(table.filter(pc.less(pc.subtract(table["upper"], table["lower"]), 20)), file)
    return file


LATE = "PATTERN SEQ(A a, B b, !D n) WHERE [key] WITHIN 9"


@pytest.mark.parametrize("option", [(), ("--known-until", "50")])
@pytest.mark.parametrize("format_name", ["parquet", "csv"])
def test_undecided_matches_are_counted(
    tmp_path: Path, short: Path, option: tuple[str, ...], format_name: str
) -> None:
    said = []
    for clause in ("", " LIMIT 1000"):
        command = ("match", LATE + clause, short, *option)
        outs = [tmp_path / f"{engine}{clause}" for engine in ENGINES]
        lines = [
            run(*command, "-o", out, "--format", format_name, "--engine", engine)[0]
            for out, engine in zip(outs, ENGINES, strict=True)
        ]
        shown = [
            [line.replace(str(out), "OUT") for line in each] for out, each in zip(outs, lines, strict=True)
        ]
        assert shown[0] == shown[1]
        said += shown[0][:-1]
    text = "left out as undecided" if option else "with a negation whose gap can end behind the last event"
    assert [text in line for line in said] == [True, True]
    assert "at least" in said[1]


def test_reports_say_the_same(tmp_path: Path, short: Path) -> None:
    out = tmp_path / "page.html"
    pages = []
    for engine in ENGINES:
        said = run(
            "report", LATE, short, "--known-until", "50", "-o", out, "--overwrite", "--engine", engine
        )[0]
        pages.append(said)
    assert pages[0] == pages[1]
    assert "left out as undecided" in pages[0][0]


def keyed_and_not(folder: Path, ending: str) -> list[Path]:
    """Return two files, of which only the first has a key."""
    keyed = [{"type": "A", "id": n, "lower": n, "upper": n, "host": "x"} for n in range(4)]
    bare = [{"type": "B", "id": 10 + n, "lower": n, "upper": n} for n in range(4)]
    files = [folder / f"one.{ending}", folder / f"other.{ending}"]
    for file, rows in zip(files, (keyed, bare), strict=True):
        if ending == "parquet":
            pq.write_table(pa.Table.from_pylist(rows), file)
        elif ending == "csv":
            pa.csv.write_csv(pa.Table.from_pylist(rows), file)
        else:
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return files


LACKING = {
    "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 9": "ties b: its events are in no match",
    "PATTERN SEQ(A a, ANY b) WHERE [host] WITHIN 9": "ties b: its events are in no match",
    "PATTERN SEQ(A a, !B n, A b) WHERE a.host = b.host AND n.host = a.host WITHIN 9": (
        "ties n: its events forbid none"
    ),
    "PATTERN SEQ(A a, A b) WHERE [host] WITHIN 9": None,
}


@pytest.mark.parametrize(
    "ending", ["jsonl", *(pytest.param(each, marks=pytest.mark.thorough) for each in ("csv", "parquet"))]
)
def test_a_file_without_the_key_is_named(tmp_path: Path, ending: str) -> None:
    files = keyed_and_not(tmp_path, ending)
    reported, *_ = LACKING
    for query, warning in LACKING.items():
        for command in ("match", "report") if query == reported else ("match",):
            out = tmp_path / {"match": "matches", "report": "page.html"}[command]
            lines = [
                run(command, query, *files, "-o", out, "--overwrite", "--engine", engine)[0]
                for engine in ENGINES
            ]
            assert lines[0] == lines[1]
            said = [line for line in lines[1] if "it has no column" in line]
            assert len(said) == (warning is not None)
            if warning is not None:
                assert said[0].endswith(f"{files[1]}: it has no column host, by which the query {warning}")


def test_spans_of_a_file_have_its_columns_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_spans, "BYTES_PER_SPAN", 150)
    one, other = keyed_and_not(tmp_path, "jsonl")
    rows = [json.loads(line) for line in other.read_text().splitlines()]
    file = tmp_path / "third.jsonl"
    for number, row in enumerate(rows * 3):
        row = {**row, "id": 20 + number} | ({"host": "x"} if number == 5 else {})
        with file.open("a") as text:
            text.write(json.dumps(row) + "\n")
    query = "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 9"
    lines = [run("match", query, one, other, file, "--engine", engine)[0] for engine in ENGINES]
    assert lines[0] == lines[1]
    assert [line for line in lines[1] if "it has no column" in line] == [
        f"warning: {other}: it has no column host, by which the query ties b: its events are in no match"
    ]


ROUNDED = {
    "double": ("[n]", "column n is a key of floats beyond 2^53, where one float stands for several whole"),
    "float": ("[n]", "column n is a key of floats beyond 2^24, where one float stands for several whole"),
    "negated": ("a.m = b.m AND c.n = a.n", None),
    "both": ("a.n = b.n AND c.n = a.n", "column n is a key of floats beyond 2^53"),
    "decimal": ("a.n < b.n", "column n holds decimal numbers beyond 2^53, which comparisons round"),
    "local": ("b.n > 3", "column n holds decimal numbers beyond 2^53, which comparisons round"),
    "equal": ("a.n = b.n", None),
    "small": ("[n]", None),
    "nan": ("[n]", None),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_rounded_numbers_are_warned_of(spark: SparkSession, tmp_path: Path, name: str) -> None:
    condition, warning = ROUNDED[name]
    is_decimal = name in ("decimal", "local", "equal")
    dtype = pa.decimal128(20, 0) if is_decimal else pa.float32() if name == "float" else pa.float64()
    large = {"float": 2**24, "small": 2**53 - 1}.get(name, 2**53 + 2)
    numbers = [
        *map(float, (-large, -large, 5, 6 if is_decimal else 5)),
        7.0 if is_decimal else math.nan,
        None,
    ]
    if name == "nan":
        numbers = [math.nan] * 6
    rows = len(numbers)
    table = pa.table(
        {
            "type": ["A", "B"] * (rows // 2), "id": range(rows), "lower": range(rows), "upper": range(rows),
            "m": [1.0] * rows, "n": pa.array(numbers, pa.float64()).cast(dtype),
        }
    )  # fmt: skip
    file = tmp_path / "trace.parquet"
    pq.write_table(table, file)
    negated = ", !B c" if name in ("negated", "both") else ""
    query = f"PATTERN SEQ(A a{negated}, B b) WHERE {condition} WITHIN 3"
    for format_name in ("parquet", "csv"):
        out = tmp_path / format_name
        command = ("match", query, file, "-o", out, "--overwrite", "--format", format_name)
        lines = [run(*command, "--engine", engine)[0] for engine in ENGINES]
        assert lines[0] == lines[1]
        said = [line for line in lines[1] if "column n" in line]
        assert len(said) == (warning is not None)
        assert warning is None or said[0].startswith(f"warning: {warning}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        match(spark.createDataFrame(table), query, slice_length=2)
    assert [f"warning: {one.message}" for one in caught if "column n" in str(one.message)] == said


STAMPED = """\
tick = "1s"
[[events]]
files = "log.*"
type_column = "kind"
id = "id"
time = "at"
uncertainty = { kind = "plus_minus", by = "3s" }
missing = "drop"
where = "kind != 'X'"
[[events]]
files = "spans.*"
type = "C"
id = "id"
uncertainty = { kind = "columns", lower = "begin", upper = "end" }
"""


@pytest.mark.parametrize(
    ("ending", "spans"),
    [
        ("csv", False),
        ("jsonl", True),
        pytest.param("csv", True, marks=pytest.mark.thorough),
        pytest.param("jsonl", False, marks=pytest.mark.thorough),
    ],
)
def test_reports_know_raw_stamps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, spans: bool
) -> None:
    if spans:
        monkeypatch.setattr(text_spans, "BYTES_PER_SPAN", 200)
    draw = np.random.default_rng(3)
    at = np.datetime64("2026-01-05T08:00:00", "s") + draw.integers(0, 300, 60).astype("timedelta64[s]")
    log = pa.table(
        {
            "kind": draw.choice(["A", "B", "X"], 60), "id": range(60),
            "at": pa.array([None if n % 9 == 0 else f"{one}Z" for n, one in enumerate(at)]),
            "stamp": draw.integers(0, 2, 60),
        }
    )  # fmt: skip
    ends = [(one, one + np.timedelta64(n % 2, "s")) for n, one in enumerate(at[:12])]
    events = pa.table(
        {
            "id": range(100, 112), "begin": [f"{begin}Z" for begin, _ in ends],
            "end": [f"{end}Z" for _, end in ends],
        }
    )  # fmt: skip
    files = [tmp_path / f"{name}.{ending}" for name in ("log", "spans")]
    for file, table in zip(files, (log, events), strict=True):
        if ending == "csv":
            pa.csv.write_csv(table, file)
        else:
            file.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    schema = tmp_path / "schema.toml"
    schema.write_text(STAMPED)
    query = "PATTERN SEQ(A a, B b, C c) WITHIN 40 seconds"
    facts = []
    for engine in ENGINES:
        out = tmp_path / "page.html"
        run("report", query, *files, "--schema", schema, "-o", out, "--overwrite", "--engine", engine)
        facts.append(data_of(out.read_text(encoding="utf-8")))
    here, there = facts
    assert here["raw"]["missed"]
    is_event = pc.and_(log["at"].is_valid(), pc.not_equal(log["kind"], "X"))
    assert here["raw"]["stamped"] == 6 + int(pc.sum(is_event).as_py())
    assert there["raw"] == here["raw"]
    assert there["totals"] == pytest.approx(here["totals"])
    stamps = [dict(zip(one["events"]["id"], one["events"]["stamp"], strict=True)) for one in facts]
    # In this process the page has other events of that time, too, and nothing else besides.
    near = {here["events"]["id"][place] for _, places in here["found_nearby"] for place in places}
    assert {one: stamp for one, stamp in stamps[0].items() if one in stamps[1]} == stamps[1]
    assert stamps[0].keys() - stamps[1].keys() <= near
    assert None in stamps[0].values()


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "PATTERN SEQ(A a, B b) WHERE [key] AND a.value > 1e6 WITHIN 9",
            "without a.value > 1",
        ),
        (
            "PATTERN SEQ(A a, B b) WHERE a.value < 0 AND a.value > 0 WITHIN 9",
            "without a.value < 0 or a.",
        ),
        ("PATTERN SEQ(A a, B b, C c) WHERE TIME(b) - TIME(a) > 5 WITHIN 2", "without"),
        (
            "PATTERN SEQ(A a, Z z) WITHIN 9",
            "without any one of its conditions there would be no match either",
        ),
    ],
)
@pytest.mark.parametrize("sampled", [1024, 50])
def test_the_condition_that_leaves_none_is_named(
    tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch, query: str, reason: str, sampled: int
) -> None:
    for module in ("explanation.nothing", "spark.no_match"):
        monkeypatch.setattr(f"uncertain_cep.{module}.SAMPLED_FOR_NOTHING", sampled)
    said = []
    for engine in ENGINES:
        lines, _ = run("match", query, trace, "-o", tmp_path / "out", "--overwrite", "--engine", engine)
        said.append([line for line in lines if line.startswith("without ")])
    assert said[0] == said[1]
    if sampled == 1024:
        assert said[1][0].startswith(reason)
    elif said[1]:
        assert said[1][0].endswith("among the first 50 events")
