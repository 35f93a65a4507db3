"""Every format, and files that are damaged in every way."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.formats import FileOptions, TraceFile, column_names, list_files, read_file

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b,c", None], "value": [0.5, None, 2.0]})
CSV = b'id,name,value\n1,a,0.5\n2,"b,c",\n3,,2\n'
JSON = (
    b'{"id": 1, "name": "a", "value": 0.5}\n'
    b'{"id": 2, "name": "b,c"}\n\n'
    b'{"value": 2.0, "id": 3, "name": null}\n'
)


def faults(path: Path, options: FileOptions = FileOptions()) -> tuple[TraceFault, ...]:  # noqa: B008
    with pytest.raises(TraceError) as caught:
        read_file(path, None, options)
    assert all(fault.file == str(path) for fault in caught.value.faults)
    assert "Traceback" not in str(caught.value)
    return caught.value.faults


def write(path: Path, content: bytes) -> Path:
    if path.suffix == ".gz":
        content = gzip.compress(content)
    elif path.suffix == ".bz2":
        content = bz2.compress(content)
    elif path.suffix == ".zst":
        content = pa.compress(content, codec="zstd", asbytes=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("packed", ["", ".gz", ".bz2", ".zst"])
@pytest.mark.parametrize(
    ("name", "content"), [("t.csv", CSV), ("t.jsonl", JSON), ("t.ndjson", JSON), ("T.JSON", JSON)]
)
def test_text_formats(tmp_path: Path, name: str, content: bytes, packed: str) -> None:
    path = write(tmp_path / f"{name}{packed}", content)
    assert read_file(path).equals(ROWS)
    assert read_file(path, ["value", "id", "other"]).column_names == ["id", "value"]


def test_parquet(tmp_path: Path) -> None:
    pq.write_table(ROWS.replace_schema_metadata({"k": "v"}), tmp_path / "t.parquet")
    assert read_file(tmp_path / "t.parquet").equals(ROWS)
    assert read_file(tmp_path / "t.parquet").schema.metadata == {b"k": b"v"}
    assert read_file(tmp_path / "t.parquet", {"value"}).column_names == ["value"]


def test_delimiters_byte_order_marks_and_line_ends(tmp_path: Path) -> None:
    assert read_file(write(tmp_path / "t.tsv", b"\xef\xbb\xbfa\tb\r\n1\t2\r\n")).to_pylist() == [
        {"a": 1, "b": 2}
    ]
    path = write(tmp_path / "t.csv", b"a;b\n1;2\n")
    assert read_file(path, None, FileOptions(delimiter=";")).to_pylist() == [{"a": 1, "b": 2}]


def test_only_the_empty_text_is_null_unless_told(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", b"a,b\nNA,\n-,1\n")
    assert read_file(path).to_pylist() == [{"a": "NA", "b": None}, {"a": "-", "b": 1}]
    assert read_file(path, None, FileOptions(nulls=("NA", "-"))).column("a").null_count == 2


def test_values_may_hold_line_breaks(tmp_path: Path) -> None:
    # Long enough that Arrow, which splits the file into blocks first, splits inside a value.
    path = write(tmp_path / "t.csv", b"a,b\n" + b'"x\ny",1\n' * 300_000)
    table = read_file(path)
    assert table.num_rows == 300_000
    assert set(table.column("a").unique().to_pylist()) == {"x\ny"}


def test_types_can_be_given(tmp_path: Path) -> None:
    text = b"a,b,c,d,e\n007,1,2,true,2024-01-01T00:00:00+01:00\n,,,,\n"
    types = FileOptions(
        types=(("a", "string"), ("b", "float"), ("c", "int"), ("d", "bool"), ("e", "timestamp"), ("x", "int"))
    )
    table = read_file(write(tmp_path / "t.csv", text), None, types)
    assert [str(field.type) for field in table.schema] == [
        "string",
        "double",
        "int64",
        "bool",
        "timestamp[ns]",
    ]
    first, second = table.to_pylist()
    assert first["a"] == "007"
    assert str(first["e"]).startswith("2023-12-31 23:00:00")
    assert set(second.values()) == {None}
    pq.write_table(pa.table({"a": [7, 8]}), tmp_path / "t.parquet")
    assert read_file(tmp_path / "t.parquet", None, types).column("a").to_pylist() == ["7", "8"]


def test_a_value_of_another_type_than_given_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", b"a,b\n1,2\nx,3\n4,5\ny,6\n")
    raised_faults = faults(path, FileOptions(types=(("a", "int"),)))
    assert [(fault.row, fault.column, fault.value) for fault in raised_faults] == [
        (2, "a", "'x'"),
        (4, "a", "'y'"),
    ]
    pq.write_table(pa.table({"a": [[1]]}), tmp_path / "t.parquet")
    (fault,) = faults(tmp_path / "t.parquet", FileOptions(types=(("a", "bool"),)))
    assert fault.message == "its type is list<element: int64>, which cannot be read as bool"


def test_broken_csv_rows_are_all_named(tmp_path: Path) -> None:
    raised_faults = faults(write(tmp_path / "t.csv", b"a,b,c\n1,2,x\n1,2\n\n3,4,5,6\n7,8,9\n"))
    assert [(fault.row, fault.value) for fault in raised_faults] == [(2, "'1,2'"), (3, "'3,4,5,6'")]
    assert raised_faults[0].message == "it has 2 values for 3 columns: correct it"
    many_faults = faults(write(tmp_path / "m.csv", b"a,b\n" + b"1\n" * 100))
    assert len(many_faults) == 21
    assert many_faults[-1].message == "80 more rows are broken like these"


def test_broken_json_lines_are_all_named(tmp_path: Path) -> None:
    lines = (
        b'{"a": 1, "b": null}\n{"a": 2, "a": 3}\nnot json\n\n[1]\n{"a": "x"}\n{"a": {"b": 1}}\n{"a": [2]}\n'
        b'{"a": true}\n{"a": \xff}'
    )
    raised_faults = faults(write(tmp_path / "t.jsonl", lines))
    assert [(fault.row, fault.column) for fault in raised_faults] == [
        (2, "a"), (3, None), (4, None), (5, "a"), (6, "a"), (7, "a"), (8, "a"), (9, None),
    ]  # fmt: skip
    assert "names it twice" in raised_faults[0].message
    assert raised_faults[1].message == "the line is no JSON: Expecting value at character 1"
    assert raised_faults[2].message.startswith("the line is no JSON object")
    assert raised_faults[3].message == "it holds text, but a number in row 1: give the column one type"
    assert raised_faults[4].value == "{...}"
    assert "UTF-8" in raised_faults[-1].message
    many_faults = faults(write(tmp_path / "m.jsonl", b"x\n" * 100))
    assert len(many_faults) == 20


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "the file is empty"),
        ("t.csv.gz", b"", "the file is empty"),
        ("t.jsonl", b"", "the file is empty"),
        ("t.csv", b"a,b,a\n1,2,3\n", "two columns have this name"),
        ("t.csv", b"a,b\n1,\xff\n", "its text is not UTF-8"),
        ("t.parquet", b"", "cannot be read, it is damaged or cut off"),
        ("t.parquet", b"PAR1 no parquet", "cannot be read, it is damaged or cut off"),
        ("t.jsonl", b'{"type": "A", "\xff": 1}\n', "its text is not UTF-8"),
        ("t.xlsx", b"", "its format is not known by its name"),
        ("trace", b"", "its format is not known by its name"),
    ],
)
def test_files_that_are_none(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    assert message in faults(write(tmp_path / name, content))[0].message


def test_names_of_columns_that_are_no_text(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"renamed": [1]}), file)
    file.write_bytes(file.read_bytes().replace(b"renamed", b"\xff\xfe\xfdamed"))
    assert "the name of a column is no UTF-8 text" in faults(file)[0].message


def test_files_that_are_cut_off(tmp_path: Path) -> None:
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 100_000)
    for name, content in (
        ("t.csv.gz", packed[: len(packed) // 2]),
        ("u.csv.gz", b"a,b\n1,2\n"),
        ("v.jsonl.gz", gzip.compress(JSON)[:-12]),
    ):
        (tmp_path / name).write_bytes(content)
        assert "damaged or cut off" in faults(tmp_path / name)[0].message
    pq.write_table(pa.table({"a": range(1000)}), tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[:-100])
    assert "damaged or cut off" in faults(tmp_path / "t.parquet")[0].message
    (tmp_path / "t.parquet").write_bytes(whole[:100] + b"\xff" * 200 + whole[300:])
    assert "damaged or cut off" in faults(tmp_path / "t.parquet")[0].message


def test_files_that_are_not_there(tmp_path: Path) -> None:
    assert faults(tmp_path / "t.csv")[0].message == "there is no such file: check the path"
    assert faults(tmp_path / "t.parquet")[0].message == "there is no such file: check the path"
    files, raised_faults = list_files([tmp_path / "t.csv", tmp_path])
    assert files == []
    missing, empty = raised_faults
    assert missing.message == "there is no such file: check the path"
    assert empty.message.startswith("the folder holds no file of .csv, ")


def test_files_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    # Changing the file's mode would not stop a test that runs as root.
    monkeypatch.setattr(pa, "input_stream", refuse)
    assert "permissions" in faults(write(tmp_path / "t.csv", CSV))[0].message


def test_a_header_without_rows_is_an_empty_table(tmp_path: Path) -> None:
    table = read_file(write(tmp_path / "t.csv", b"a,b\n"))
    assert (table.num_rows, table.column_names) == (0, ["a", "b"])


def test_folders(tmp_path: Path) -> None:
    for folder in ("out/day=1/host=a%20b", "out/day=2/host=__HIVE_DEFAULT_PARTITION__", "out/_temporary"):
        (tmp_path / folder).mkdir(parents=True)
        pq.write_table(ROWS, tmp_path / folder / "part-0.parquet")
    write(tmp_path / "out" / "_SUCCESS", b"")
    write(tmp_path / "out" / ".hidden.csv", CSV)
    write(tmp_path / "out" / "notes.txt", b"hello")
    files, raised_faults = list_files([str(tmp_path / "out")])
    assert not raised_faults
    assert [file.path.parent.parent.name for file in files] == ["day=1", "day=2"]
    assert column_names(files[0]) == ["id", "name", "value", "day", "host"]
    table = read_file(files[0])
    assert table.column("day").to_pylist() == [1, 1, 1]
    assert table.column("host").to_pylist() == ["a b"] * 3
    assert read_file(files[1], ["host"]).column("host").to_pylist() == [None] * 3
    assert read_file(files[0], ["id", "day"]).column_names == ["id", "day"]


def test_globs_match_names_ends_of_paths_and_folders_given() -> None:
    file = TraceFile(Path("data/run/tasks.parquet/part-0.parquet"), Path("data/run"))
    for pattern in ("*.parquet", "part-*", "tasks.parquet", "tasks.parquet/part-*", "t*s.parquet"):
        assert file.matches(pattern)
    for pattern in ("data", "*.csv", "metrics.parquet"):
        assert not file.matches(pattern)
    assert TraceFile(file.path, file.path.parent).matches("tasks.parquet")


def test_column_types_follow_the_whole_file(tmp_path: Path) -> None:
    # The first number that is not whole comes after the first block.
    path = tmp_path / "t.csv"
    pacsv.write_csv(
        pa.table({"a": pa.array([1] * 400_000 + [5]), "b": pa.array([1.0] * 400_000 + [0.5])}), path
    )
    assert [str(field.type) for field in read_file(path).schema] == ["int64", "double"]


EXTRACT = FileOptions(
    types=(("attempt", "int"),), extract=(("name", r"^(?P<job>[a-z]+)_(?P<attempt>[0-9]+)$"),)
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", b"id,name\n1,map_7\n2,none\n3,\n"),
        ("t.jsonl", b'{"id": 1, "name": "map_7"}\n{"id": 2, "name": "none"}\n{"id": 3}\n'),
    ],
)
def test_columns_are_cut_out_of_others(tmp_path: Path, name: str, content: bytes) -> None:
    path = write(tmp_path / name, content)
    table = read_file(path, None, EXTRACT)
    assert table.column_names == ["id", "name", "job", "attempt"]
    assert table.column("job").to_pylist() == ["map", None, None]
    assert table.column("attempt").to_pylist() == [7, None, None]
    assert read_file(path, {"attempt", "id"}, EXTRACT).column_names == ["id", "attempt"]
    if name == "t.csv":
        assert column_names(TraceFile(path, path), EXTRACT) == ["id", "name", "job", "attempt"]


def test_columns_that_cannot_be_cut_out(tmp_path: Path) -> None:
    assert (
        "but the file has one"
        in faults(write(tmp_path / "t.csv", b"name,job\nmap_7,x\n"), EXTRACT)[0].message
    )
    lists = faults(write(tmp_path / "t.jsonl", b'{"name": ["x"]}\n'), EXTRACT)
    assert lists[0].message == "its type is list<item: string>, and [extract] needs text"
