"""``format=`` is what the files are, whatever their names; a schema may be its path."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uncertain_cep as uc
from tests.traces.files import put
from uncertain_cep.traces.formats import FILE_FORMATS as ALL_FORMATS

# Logs have no columns before a schema cuts them out.
FILE_FORMATS = tuple(name for name in ALL_FORMATS if name not in ("log", "text"))

ROWS = [
    {"type": "A", "id": 1, "lower": 1, "upper": 3, "host": "x,y"},
    {"type": "B", "id": 2, "lower": 4, "upper": 4, "host": "z"},
]
COMMAS = 'type,id,lower,upper,host\nA,1,1,3,"x,y"\nB,2,4,4,z\n'
TABS = "type\tid\tlower\tupper\thost\nA\t1\t1\t3\tx,y\nB\t2\t4\t4\tz\n"
LINES = (
    '{"type": "A", "id": 1, "lower": 1, "upper": 3, "host": "x,y"}\n'
    '{"type": "B", "id": 2, "lower": 4, "upper": 4, "host": "z"}\n'
)
TEXTS = {"csv": COMMAS, "tsv": TABS, "json": LINES, "jsonl": LINES, "ndjson": LINES}
SCHEMA = """
[[events]]
type_column = "type"
id = "id"
uncertainty = { kind = "columns", lower = "lower", upper = "upper" }
attributes = ["host"]
"""


def write(path: Path, format_name: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if format_name in TEXTS:
        return put(path, TEXTS[format_name])
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    return path


@pytest.mark.parametrize("format_name", FILE_FORMATS)
@pytest.mark.parametrize(
    "name", ["trace", "trace.log", "trace.csv", "trace.parquet", "trace.tsv", "trace.json"]
)
def test_a_given_format_is_read_whatever_the_name(tmp_path: Path, name: str, format_name: str) -> None:
    file = write(tmp_path / name, format_name)
    assert uc.read_traces(file, format=format_name).to_pylist() == ROWS
    assert uc.read_traces([file], put(tmp_path / "s.toml", SCHEMA), format=format_name).to_pylist() == ROWS
    assert uc.validate(file, format=format_name) == []


@pytest.mark.parametrize("format_name", FILE_FORMATS)
def test_without_a_format_names_tell_it(tmp_path: Path, format_name: str) -> None:
    assert uc.read_traces(write(tmp_path / f"trace.{format_name}", format_name)).to_pylist() == ROWS
    unnamed = write(tmp_path / "trace.txt", format_name)
    if TEXTS.get(format_name) == LINES:
        # Objects of JSON are known by their first characters.
        assert uc.read_traces(unnamed).to_pylist() == ROWS
        return
    with pytest.raises(uc.TraceError, match=r"not known by its name: .* in Python, format= names it"):
        uc.read_traces(unnamed)


def test_of_a_folder_all_files_are_read_in_a_given_format(tmp_path: Path) -> None:
    for name in ("a.log", "host=1/b.log", "_SUCCESS", ".hidden/c.log"):
        put(tmp_path / name, "type,id,lower,upper\nA,1,1,3\n")
    assert uc.read_traces(tmp_path, format="csv").num_rows == 2
    with pytest.raises(uc.TraceError, match=r"the folder holds logs, such as a\.log: say in a schema"):
        uc.read_traces(tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(uc.TraceError, match=r"the folder holds no file$"):
        uc.read_traces(empty, format="csv")


def test_a_wrong_format_is_a_fault_of_the_file(tmp_path: Path) -> None:
    file = write(tmp_path / "trace.csv", "csv")
    for format_name in ("parquet", "json"):
        with pytest.raises(uc.TraceError) as caught:
            uc.read_traces(file, format=format_name)
        assert {fault.file for fault in caught.value.faults} == {str(file)}
        assert list(caught.value.faults) == uc.validate(file, format=format_name)


@pytest.mark.parametrize("wrong", ["xml", "CSV", "", ".csv", 3])
def test_an_unknown_format_is_refused(tmp_path: Path, wrong: Any) -> None:
    file = write(tmp_path / "trace.csv", "csv")
    for call in (uc.read_traces, uc.validate):
        with pytest.raises(uc.OptionError, match="is unknown: use one of csv, tsv, json"):
            call(file, format=wrong)


def test_compressed_text_is_told_by_the_name(tmp_path: Path) -> None:
    file = tmp_path / "trace.log.gz"
    file.write_bytes(gzip.compress(TABS.encode()))
    assert uc.read_traces(file, format="tsv").to_pylist() == ROWS


def test_the_delimiter_of_a_schema_stands_above_that_of_a_format(tmp_path: Path) -> None:
    file = put(tmp_path / "trace.tsv", COMMAS.replace("x,y", "x y").replace(",", ";"))
    schema = put(tmp_path / "s.toml", f'delimiter = ";"\n{SCHEMA}')
    for format_name in (None, "csv", "tsv"):
        assert uc.read_traces(file, schema, format=format_name).column("host").to_pylist() == ["x y", "z"]


def test_a_schema_is_given_by_its_path_or_loaded(tmp_path: Path) -> None:
    file, path = write(tmp_path / "trace.csv", "csv"), put(tmp_path / "s.toml", SCHEMA)
    table = uc.read_traces(file, uc.load_schema(path))
    for schema in (path, str(path)):
        assert uc.read_traces(file, schema).equals(table, check_metadata=True)
        assert uc.validate(file, schema) == []
    with pytest.raises(uc.TraceError, match="there is no such schema file"):
        uc.read_traces(file, tmp_path / "missing.toml")
    wrong: Any = {"events": []}
    with pytest.raises(uc.OptionError, match="it takes the path of a schema file"):
        uc.read_traces(file, wrong)
