"""Numbers of files that no type of numbers holds as they stand: codes such as 08, and long whole numbers."""

from __future__ import annotations

import gzip
import json
import threading
import warnings
from decimal import Decimal
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.traces.files import put, schema_of
from uncertain_cep.errors import TraceError, UncertainCepWarning
from uncertain_cep.traces import csv_files, json_files
from uncertain_cep.traces.exact_numbers import WatchedStream
from uncertain_cep.traces.formats import FileOptions, read_file

LONG = 12345678901234567890
"""Beyond int64; the next whole number has the same float64."""
QUERY = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 10"


def two(kind: str, folder: Path, first: str, second: str) -> Path:
    """Write two events whose column ``k`` holds these texts, without quotes, in a file of some format."""
    if kind == "json":
        rows = [f'{{"type": "{t}", "id": {n}, "lower": {n}, "upper": {n}, "k": {k}}}'
                for t, n, k in (("A", 1, first), ("B", 2, second))]  # fmt: skip
        return put(folder / "t.jsonl", "\n".join(rows))
    text = f"type,id,lower,upper,k\nA,1,1,1,{first}\nB,2,2,2,{second}\n"
    if kind == "gzip":
        path = folder / "t.csv.gz"
        path.write_bytes(gzip.compress(text.encode()))
        return path
    if kind == "tsv":
        return put(folder / "t.tsv", text.replace(",", "\t"))
    return put(folder / "t.csv", text)


@pytest.mark.parametrize("kind", ["csv", "gzip", "tsv", "json"])
@pytest.mark.parametrize(
    ("first", "second"), [(LONG, LONG + 1), (LONG, 5), (2**63, 2**63 + 1), (-(2**63) - 1, -(2**63) - 2)]
)
def test_whole_numbers_beyond_64_bits_are_text(tmp_path: Path, kind: str, first: int, second: int) -> None:
    events = uc.read_traces(two(kind, tmp_path, str(first), str(second)))
    assert events.column("k").to_pylist() == [str(first), str(second)]
    assert uc.match(events, QUERY).num_rows == 0
    assert uc.match(uc.read_traces(two(kind, tmp_path, str(first), str(first))), QUERY).num_rows == 1


@pytest.mark.parametrize("kind", ["csv", "gzip", "tsv", "json"])
def test_whole_numbers_within_64_bits_stay_numbers(tmp_path: Path, kind: str) -> None:
    events = uc.read_traces(two(kind, tmp_path, str(2**63 - 1), str(2**63 - 2)))
    assert events.schema.field("k").type == pa.int64()
    assert uc.match(events, QUERY).num_rows == 0


@pytest.mark.parametrize("kind", ["csv", "gzip", "tsv", "json"])
@pytest.mark.parametrize("long", [LONG, 2**53 + 1])
def test_long_whole_numbers_beside_decimal_ones_are_warned_of(tmp_path: Path, kind: str, long: int) -> None:
    path = two(kind, tmp_path, "0.5", str(long))
    with pytest.warns(UncertainCepWarning, match=f"column k: 1 whole numbers .* row 2, {long}.*read the col"):
        events = uc.read_traces(path)
    assert events.schema.field("k").type == pa.float64()
    schema = schema_of(
        tmp_path,
        '[types]\nk = "string"\n[[events]]\ntype_column = "type"\n'
        'uncertainty = { kind = "columns", lower = "lower", upper = "upper" }\n',
    )
    assert uc.read_traces(path, schema).column("k").to_pylist() == ["0.5", str(long)]


@pytest.mark.parametrize("kind", ["csv", "gzip", "tsv", "json"])
def test_ids_beyond_64_bits_are_text(tmp_path: Path, kind: str) -> None:
    path = two(kind, tmp_path, str(LONG), str(LONG + 1))
    schema = schema_of(
        tmp_path,
        '[[events]]\ntype_column = "type"\nid = "k"\nattributes = []\n'
        'uncertainty = { kind = "columns", lower = "lower", upper = "upper" }\n',
    )
    assert uc.read_traces(path, schema).column("id").to_pylist() == [str(LONG), str(LONG + 1)]


def test_trees_of_objects_are_read_whole(tmp_path: Path) -> None:
    leaf = {"name": "c", "at": "2026-01-05T08:00:00Z", "id": LONG}
    tree = {"name": "a", "children": [{"name": "b", "children": [leaf] * 3}, {"name": "d", "children": []}]}
    path = put(tmp_path / "t.jsonl", json.dumps(tree) + "\n")
    table = read_file(path)
    table.validate(full=True)
    first, second = table.column("children")[0].as_py()
    assert [each["id"] for each in first["children"]] == [str(LONG)] * 3
    assert {each["at"].isoformat() for each in first["children"]} == {"2026-01-05T08:00:00+00:00"}
    assert second["children"] == []


def test_fields_within_fields_and_lists(tmp_path: Path) -> None:
    rows = [{"o": {"id": LONG + n}, "l": [LONG + n, 1]} for n in range(2)]
    path = put(tmp_path / "t.jsonl", "\n".join(map(json.dumps, rows)))
    table = read_file(path, None, fields=["o.id"])
    assert table.column("o.id").to_pylist() == [str(LONG), str(LONG + 1)]
    assert table.column("l").to_pylist() == [[str(LONG), "1"], [str(LONG + 1), "1"]]


CODES = [
    ("08", "8"), ("8", "08"), ("007", "7"), ("-01", "-1"), (" 08", "8"), ("+08", "8"), ("00", "0"),
    ("08.50", "8.5"), ('"08"', "8"),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["csv", "gzip", "tsv"])
@pytest.mark.parametrize(("first", "second"), CODES)
def test_columns_with_a_leading_zero_are_text(tmp_path: Path, kind: str, first: str, second: str) -> None:
    events = uc.read_traces(two(kind, tmp_path, first, second))
    assert events.column("k").to_pylist() == [first.strip('"'), second.strip('"')]
    assert uc.match(events, QUERY).num_rows == 0


@pytest.mark.parametrize("value", ["0", "0.5", "-0", "10", "1e05", "2026-01-05", "08:00:00", "0x0f"])
def test_other_columns_are_what_they_were(tmp_path: Path, value: str) -> None:
    events = uc.read_traces(two("csv", tmp_path, value, value))
    assert not pa.types.is_string(events.schema.field("k").type)


def test_a_leading_zero_anywhere_in_a_file_or_its_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "LONG", 1)
    lines = [f"A,{n},{n},{n},{n}" for n in range(1, 2000)]
    path = put(tmp_path / "t.csv", "\n".join(["type,id,lower,upper,k", *lines, "A,0,1,1,08", ""]))
    events = uc.read_traces(path)
    assert events.column("k").to_pylist() == [*map(str, range(1, 2000)), "08"]
    assert events.schema.field("id").type == pa.int64()


@pytest.mark.parametrize("decimal", [False, True])
def test_blocks_of_json_lines_have_one_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decimal: bool
) -> None:
    values: list[float] = [0.5 if decimal else 1, *range(5), LONG, 2**53 + 1]
    rows = [{"k": value} for value in values]
    path = put(tmp_path / "t.jsonl", "\n".join(map(json.dumps, rows)))
    outcomes = []
    for size in (1 << 26, 8):
        monkeypatch.setattr(json_files, "JSON_BLOCK", size)
        monkeypatch.setattr(json_files, "_PIECE", size)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            outcomes.append((read_file(path).column("k"), [str(one.message) for one in caught]))
    assert outcomes[0] == outcomes[1]
    column, said = outcomes[0]
    assert len(said) == decimal
    if decimal:
        assert "2 whole numbers" in said[0]
        assert f"row 7, {LONG}" in said[0]
    else:
        assert column.to_pylist() == [str(row["k"]) for row in rows]


@pytest.mark.parametrize("first", ["csv", "json"])
@pytest.mark.parametrize("value", ["08", str(LONG)])
def test_a_column_is_text_in_all_files_of_a_table(tmp_path: Path, first: str, value: str) -> None:
    numbers = two(first, tmp_path / "a", "8", "9")
    codes = two("csv", tmp_path / "b", value, "10")
    for paths in ([numbers, codes], iter([numbers, codes])):
        events = uc.read_traces(paths)  # type: ignore[arg-type]
        assert events.column("k").to_pylist() == ["8", "9", value, "10"]


def test_rows_of_several_kinds_have_one_type(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "A,12,1\nB,08,2\n")
    options = FileOptions(columns=("kind", "code"), columns_by=("kind", (("A", ("x",)), ("B", ("y",)))))
    table = read_file(path, None, options)
    assert table.column("code").to_pylist() == ["12", "08"]
    assert table.column("x").to_pylist() == [1, None]


def test_times_are_numbers_however_they_are_written(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "type,at,took,p\nA,0010,05,01\nB,0012.5,06,00\n")
    schema = schema_of(
        tmp_path,
        'tick = "100ms"\n[[events]]\ntype_column = "type"\ntime = "at + took"\nunit = "s"\n'
        'probability = "p"\n'
        'uncertainty = { kind = "exact" }\n',
    )
    events = uc.read_traces(path, schema)
    assert events.column("lower").cast(pa.timestamp("ms")).cast(pa.int64()).to_pylist() == [15000, 18500]
    assert events.column("probability").to_pylist() == [1, 0]


_VALUES = st.from_regex(r"[-+ ]?[0-9]{1,3}(\.[0-9])?|[0-9]{2}:[0-9]{2}|x0[0-9]|", fullmatch=True)


@given(
    rows=st.lists(st.tuples(_VALUES, _VALUES), min_size=1, max_size=8),
    size=st.integers(1, 20),
    delimiter=st.sampled_from(",;\t"),
)
def test_every_leading_zero_is_seen(rows: list[tuple[str, str]], size: int, delimiter: str) -> None:
    text = "".join(f"{one}{delimiter}{other}\n" for one, other in rows).encode()
    stream = WatchedStream(pa.BufferReader(text), delimiter)
    while stream.read(size):
        pass
    values = [value.lstrip("-+ ") for row in rows for value in row]
    expected = any(value[:1] == "0" and value[1:2].isdigit() for value in values)
    assert stream.has_zero == expected


class _Slow:
    """A stream whose read goes on until it may end."""

    def __init__(self, done: list[str]) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()
        self._done = done

    def read(self, _: int) -> bytes:
        self.begun.set()
        assert self.may_end.wait(60)
        self._done.append("read")
        return b"1"

    def close(self) -> None:
        self._done.append("closed")


def test_no_read_goes_on_when_a_stream_is_closed() -> None:
    """A thread that reads ahead would take the bytes of the file that is opened next."""
    done: list[str] = []
    slow = _Slow(done)
    stream = WatchedStream(slow, ",")
    threads = [threading.Thread(target=stream.read, args=(1,)), threading.Thread(target=stream.close)]
    threads[0].start()
    assert slow.begun.wait(60)
    threads[1].start()
    threads[1].join(0.1)
    slow.may_end.set()
    for thread in threads:
        thread.join()
    assert done == ["read", "closed"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_keys_of_frames(make: type) -> None:
    columns = {"type": ["A", "B"], "id": [1, 2], "lower": [1, 2], "upper": [1, 2]}
    with pytest.warns(UncertainCepWarning, match="column k is a key of floats beyond 2"):
        uc.match(make({**columns, "k": [float(2**53), float(2**53)]}), QUERY)
    with pytest.raises(TraceError, match=r"'k': holds an integer beyond int64.*make the column text"):
        uc.match(make({**columns, "k": pa.array([LONG, LONG + 1], pa.uint64()).to_numpy()}), QUERY)
    # Ids of any exact type are told apart.
    ids = pa.array([LONG, LONG + 1], pa.uint64()).to_numpy()
    matches = uc.match(make({**columns, "id": ids}), "PATTERN SEQ(A a, B b) WITHIN 10")
    assert (int(str(matches["a"][0])), int(str(matches["b"][0]))) == (LONG, LONG + 1)


def test_decimal_numbers_of_frames() -> None:
    columns = {"type": ["A", "B"], "id": [1, 2], "lower": [1, 2], "upper": [1, 2]}
    events = pa.table({**columns, "k": pa.array([Decimal(LONG), Decimal(LONG + 1)], pa.decimal128(20, 0))})
    assert uc.match(events, QUERY).num_rows == 0
    with pytest.warns(UncertainCepWarning, match="column k holds decimal numbers beyond 2.53"):
        uc.match(events, "PATTERN SEQ(A a, B b) WHERE a.k < b.k WITHIN 10")
    small = pa.table({**columns, "k": pa.array([Decimal("1.5"), Decimal("2.5")], pa.decimal128(20, 2))})
    assert uc.match(small, "PATTERN SEQ(A a, B b) WHERE a.k < b.k WITHIN 10").num_rows == 1
