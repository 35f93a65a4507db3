"""Files that are not what their names say, or not here, and what is said of files that nobody described."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Final

import pytest

import uncertain_cep as uc
from tests.traces.files import put, schema_of
from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.files.atomic_output import written_aside
from uncertain_cep.traces import file_kinds, unpacking

ROWS: Final = [
    {"at": f"2026-01-05T08:00:0{second}Z", "kind": "A", "in": {"x": second}} for second in range(3)
]
SCHEMA: Final = '[[events]]\ntype_column = "kind"\ntime = "at"\nuncertainty = { kind = "exact" }\n'


def lines(rows: list[dict[str, Any]] = ROWS) -> str:
    return "\n".join(map(json.dumps, rows)) + "\n"


@pytest.mark.parametrize("name", ["app.log", "app.log.gz", "app.text"])
def test_json_lines_in_a_log(tmp_path: Path, name: str) -> None:
    expected = uc.read_traces(put(tmp_path / "app.jsonl", lines()), schema_of(tmp_path, SCHEMA))
    path = tmp_path / name
    path.write_bytes(gzip.compress(lines().encode()) if name.endswith("gz") else lines().encode())
    assert uc.read_traces(path, schema_of(tmp_path, SCHEMA)).equals(expected)


def test_json_lines_of_the_model_need_no_schema(tmp_path: Path) -> None:
    rows = [{"type": "A", "id": number, "lower": number, "upper": 9} for number in range(3)]
    folder = tmp_path / "logs"
    path = put(folder / "app.log", lines(rows))
    assert uc.read_traces(path).num_rows == uc.read_traces(folder).num_rows == 3


def test_what_is_no_log_of_json_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = schema_of(tmp_path, "[extract]\nline = '(?P<kind>A)'\n" + SCHEMA.replace('"at"', '"line"'))
    # An expression for lines that fits goes before.
    with pytest.raises(TraceError, match=r"column 'line', value '\{"):
        uc.read_traces(put(tmp_path / "a.log", lines()), schema)
    extract = "[extract]\nline = '(?P<at>20\\S+) (?P<kind>.*)'\n"
    for begin in ("{ no json\n", "[1]\n", "{}\nno json\n"):
        path = put(tmp_path / "b.log", f"{begin}2026-01-05T08:00:00 A\n")
        with pytest.warns(uc.UncertainCepWarning, match="fits"):
            assert uc.read_traces(path, schema_of(tmp_path, extract + SCHEMA)).num_rows == 1
    # Only so much is looked at, and of the last line what is there.
    monkeypatch.setattr(file_kinds, "FIRST_BYTES", 100)
    monkeypatch.setattr(unpacking, "FIRST_BYTES", 100)
    path = put(tmp_path / "c.log", lines())
    assert uc.read_traces(path, schema_of(tmp_path, SCHEMA)).num_rows == 3
    with pytest.raises(TraceError, match="row 4"):
        uc.read_traces(put(tmp_path / "d.log", lines() + "no json\n"), schema_of(tmp_path, SCHEMA))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("t.log", "some words\n", "the file has line. Name the columns type, id, lower and upper"),
        ("t.log", "some words\n", "uncertain-cep init {} writes a schema file for it"),
        ("t.csv", "a,b\n1,2\n", "uncertain-cep init {} writes a schema file for it"),
        ("t.jsonl", '{"a": 1}\n', "the file has a. Name"),
        (
            "t.csv",
            "type;id;lower;upper\nA;1;1;2\n",
            "If ';' stands between its values, say delimiter = \";\"",
        ),
        ("t.csv", "type\tid\nA\t1\n", "If '\\t' stands between its values, say delimiter = \"\t\""),
        (
            "t.csv",
            "type,id,lower,upper\nA,1,13.05.2026 10:00,13.05.2026 10:01\n",
            'in a schema file time_format = "%d.%m.%Y %H:%M" reads it',
        ),
        (
            "t.csv",
            "type,id,lower,upper\nA,1,10/03/2004,10/03/2004\n",
            'in a schema file time_format = "%m/%d/%Y" or time_format = "%d/%m/%Y" reads it',
        ),
        (
            "t.csv",
            "type,id,lower,upper\nA,1,Jan  5 08:00:02,Jan  5 08:00:02\n",
            'time_format = "%b %d %H:%M:%S" and year = 2015, that of the first stamp reads it',
        ),
        ("t.csv", "type,id,lower,upper\nA,1,noon,noon\n", "2024-05-31T23:59:59Z"),
    ],
)
def test_the_cure_is_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    path = put(tmp_path / name, text)
    with pytest.raises(TraceError) as caught:
        uc.read_traces(path)
    assert said.format(path) in str(caught.value)
    if said.endswith("59Z"):
        assert str(caught.value).endswith(said)


def test_a_format_that_does_not_fit_names_the_one_that_does(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "kind,at\nA,13.05.2026 10:00\n")
    with pytest.raises(
        TraceError, match=r'no time as %d/%m/%Y; in a schema file time_format = "%d.%m.%Y %H:%M"'
    ):
        uc.read_traces(path, schema_of(tmp_path, SCHEMA + 'time_format = "%d/%m/%Y"'))
    with pytest.raises(TraceError, match="If ';' stands between its values, say delimiter = \";\""):
        uc.read_traces(put(tmp_path / "s.csv", "kind;at\nA;1\n"), schema_of(tmp_path, SCHEMA))


def test_a_folder_of_logs_alone(tmp_path: Path) -> None:
    put(tmp_path / "logs" / "app.log", "words\n")
    with pytest.raises(
        TraceError, match=r"logs, such as app\.log: say in a schema file .* uncertain-cep init"
    ):
        uc.read_traces(tmp_path / "logs")


def test_what_two_tables_find_in_one_column_is_said_once(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "a,at\n1,noon\n")
    two = SCHEMA.replace('type_column = "kind"', 'type = "A"') + SCHEMA.replace(
        'type_column = "kind"', 'type = "B"'
    )
    with pytest.raises(TraceError) as caught:
        uc.read_traces(path, schema_of(tmp_path, two))
    assert len(caught.value.faults) == 1
    assert len(uc.validate(path, schema=schema_of(tmp_path, two))) == 1


URL: Final = "https://example.org/x.csv"


@pytest.mark.parametrize("place", [URL, "s3://bucket/x.csv", Path("s3://bucket/x.csv"), "hdfs://host/x"])
def test_urls_are_refused_by_all_that_read(place: str | Path) -> None:
    for read in (
        lambda: uc.read_traces(place),
        lambda: uc.read_traces([place], None, format="csv"),
        lambda: uc.load_schema(place),
        lambda: uc.read_traces("t.csv", place),
        lambda: uc.read_clock_log(place, "chrony", host="h"),
        lambda: uc.clock_offset(place),
    ):
        with pytest.raises(TraceError, match="URL"):
            read()
    assert "URL" in str(uc.validate(place)[0])


def test_urls_are_refused_by_all_that_write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for place in ("s3://b/x.html", Path("s3://b/x.html")):
        with pytest.raises(OptionError, match=r"x\.html is a URL, and results are written to files of this"):
            uc.report(None, "PATTERN SEQ(A a) WITHIN 5", place)
        with (
            pytest.raises(OptionError, match="is a URL, and results are written"),
            written_aside(Path(place), lambda _: True),
        ):
            pass
    assert not [*tmp_path.iterdir()]
