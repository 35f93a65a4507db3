"""Ids that name the file and the row of an event."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.cli.conftest import Invoke, invoke
from tests.reporting.pages import data_of

__all__ = ["invoke"]

EVENTS = '[[events]]\ntype = "A"\nid = "place"\ntime = "t"\nunit = "s"\nuncertainty = { kind = "exact" }\n'


def ids(paths: Path | list[Path], schema: Path) -> list[str]:
    return list(uc.read_traces(paths, schema)["id"].to_pylist())


def test_rows_of_every_format(tmp_path: Path) -> None:
    schema = tmp_path / "schema.toml"
    schema.write_text(EVENTS)
    (tmp_path / "a.csv").write_text("t,k\n1,x\n2,y\n")
    (tmp_path / "b.jsonl").write_text('{"t": 3}\n{"t": 4}\n')
    pq.write_table(pa.table({"t": [5, 6]}), tmp_path / "c.parquet")
    files = [tmp_path / name for name in ("a.csv", "b.jsonl", "c.parquet")]
    assert ids(files, schema) == [f"{file}:{row}" for file in files for row in (1, 2)]


def test_rows_keep_their_numbers_whatever_is_left_out(tmp_path: Path) -> None:
    file, schema = tmp_path / "a.csv", tmp_path / "schema.toml"
    file.write_text("t,k\n1,x\n,x\n3,y\n4,x\n")
    schema.write_text(EVENTS + 'where = "k = \'x\'"\nmissing = "drop"\n')
    assert ids(file, schema) == [f"{file}:1", f"{file}:4"]


def test_records_of_a_log_are_named_as_messages_name_them(tmp_path: Path) -> None:
    file, schema = tmp_path / "app.log", tmp_path / "schema.toml"
    log = "2024-05-31 10:00:00 INFO a\n  more of it\n2024-05-31 10:00:01 INFO b\n2024-05-31 99:00:01 INFO c\n"
    file.write_text(log)
    form = "'^(?P<t>[0-9-]+ [0-9:]+) (?P<level>[A-Z]+) (?P<message>.*)$'"
    schema.write_text(f"[extract]\nline = {form}\n" + EVENTS.replace('unit = "s"\n', ""))
    with pytest.raises(uc.TraceError) as caught:
        uc.read_traces(file, schema)
    (fault,) = caught.value.faults
    file.write_text(log.replace("99:00", "10:00"))
    assert ids(file, schema)[-1] == f"{file}:{fault.row}"


def test_several_events_of_a_row(tmp_path: Path) -> None:
    file, schema = tmp_path / "cpu.csv", tmp_path / "schema.toml"
    file.write_text("t,load\n100,0.5\n")
    begin = EVENTS.replace('"A"', '"Begin"').replace('time = "t"', 'time = "t - 60 s"')
    schema.write_text(begin + EVENTS.replace('"A"', '"End"'))
    assert ids(file, schema) == [f"{file}:1:Begin", f"{file}:1:End"]
    query = "PATTERN SEQ(Begin a, End b) WHERE TIME(b) - TIME(a) = 60 s WITHIN 2 min"
    assert uc.match(uc.read_traces(file, schema), query)["b"].to_pylist() == [f"{file}:1:End"]
    file.write_text("t,cpu,mem\n100,0.5,7\n")
    schema.write_text(
        EVENTS.replace('type = "A"', 'type_column = "variable"') + 'value_columns = ["cpu", "mem"]\n'
    )
    assert ids(file, schema) == [f"{file}:1:cpu", f"{file}:1:mem"]


def test_a_column_of_that_name_goes_first(tmp_path: Path) -> None:
    file, schema = tmp_path / "a.csv", tmp_path / "schema.toml"
    file.write_text("t,place\n1,Brno\n")
    schema.write_text(EVENTS)
    assert ids(file, schema) == ["Brno"]


def test_commands_and_reports_show_them(tmp_path: Path, invoke: Invoke) -> None:
    file, page = tmp_path / "a.csv", tmp_path / "page.html"
    file.write_text("t\n1\n2\n")
    flags = ("--type", "A", "--time", "t", "--unit", "s", "--uncertainty", "exact", "--id", "place")
    query = "PATTERN SEQ(A a, A b) WITHIN 5 s"
    matched = invoke("match", query, file, *flags)
    assert f'"{file}:1","{file}:2"' in matched.stdout, matched.stderr
    reported = invoke("report", query, file, *flags, "-o", page)
    assert reported.exit_code == 0, reported.stderr
    assert data_of(page.read_text())["events"]["id"] == [f"{file}:1", f"{file}:2"]


@FEWER
@given(
    st.lists(
        st.tuples(st.one_of(st.none(), st.integers(0, 9)), st.sampled_from("xy")), min_size=1, max_size=9
    ),
    st.sampled_from(["csv", "jsonl", "parquet"]),
    st.booleans(),
)
def test_ids_lead_to_the_rows(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int | None, str]], kind: str, filtered: bool
) -> None:
    folder = tmp_path_factory.mktemp("places")
    file, schema = folder / f"a.{kind}", folder / "schema.toml"
    if kind == "csv":
        file.write_text("t,k\n" + "".join(f"{'' if t is None else t},{k}\n" for t, k in rows))
    elif kind == "jsonl":
        file.write_text("".join(json.dumps({"t": t, "k": k}) + "\n" for t, k in rows))
    else:
        columns = {"t": pa.array([t for t, _ in rows], pa.int64()), "k": [k for _, k in rows]}
        pq.write_table(pa.table(columns), file)
    where = "where = \"k = 'x'\"\n" if filtered else ""
    schema.write_text(EVENTS + where + 'missing = "drop"\nattributes = ["k"]\n')
    expected = [
        (f"{file}:{number}", t, k)
        for number, (t, k) in enumerate(rows, 1)
        if t is not None and (k == "x" or not filtered)
    ]
    assume(any(t is not None for t, _ in rows))
    table = uc.read_traces(file, schema)
    times = table["lower"].cast(pa.timestamp("s")).cast(pa.int64()).to_pylist()
    assert [*zip(table["id"].to_pylist(), times, table["k"].to_pylist(), strict=True)] == expected
