"""Logs that name their columns are tables, whatever they are called and wherever they are cut."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cli.conftest import Invoke, invoke
from uncertain_cep.traces import declared_columns as module
from uncertain_cep.traces import unpacking
from uncertain_cep.traces.declared_columns import DeclaredColumns, table_without_directives

__all__ = ["invoke"]

ZEEK = """#separator \\x09
#set_separator\t,
#empty_field\t(empty)
#unset_field\t-
#path\tconn
#open\t2024-05-31-10-30-00
#fields\tts\tuid\tid.orig_h\tservice\tduration
#types\ttime\tstring\taddr\tstring\tinterval
1717151400.123456\tC1\t192.168.1.5\tssl\t0.532
1717151401.923456\tC2\t192.168.1.6\t-\t-
1717151402.323456\tC3\t192.168.1.5\t"odd\t0.2
#close\t2024-05-31-11-00-00
"""
W3C = """#Software: Microsoft Internet Information Services 10.0
#Version: 1.0
#Date: 2024-05-31 10:30:00
#Fields: date time c-ip cs-uri-query sc-status
2024-05-31 10:30:01 10.0.0.5 - 200
#Date: 2024-05-31 10:30:02
#Fields: date time c-ip cs-uri-query sc-status
2024-05-31 10:30:02 10.0.0.6 a=1 404
2024-05-31 10:30:05 10.0.0.5 "two words" 302
"""
CLOUDFRONT = (
    "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes\n"
    "2024-05-31\t10:30:01\tPRG50\t1045\n2024-05-31\t10:30:04\tFRA2\t-\n"
)
FORMS: dict[str, tuple[str, list[str], list[dict[str, Any]]]] = {
    "conn.log": (
        ZEEK,
        ["10:30:00.123456", "10:30:01.923456", "10:30:02.323456"],
        [
            {"uid": "C1", "id.orig_h": "192.168.1.5", "service": "ssl", "duration": 0.532},
            {"uid": "C2", "id.orig_h": "192.168.1.6", "service": None, "duration": None},
            {"uid": "C3", "id.orig_h": "192.168.1.5", "service": '"odd', "duration": 0.2},
        ],
    ),
    "u_ex240531.log": (
        W3C,
        ["10:30:01", "10:30:02", "10:30:05"],
        [
            {"c-ip": "10.0.0.5", "cs-uri-query": None, "sc-status": 200},
            {"c-ip": "10.0.0.6", "cs-uri-query": "a=1", "sc-status": 404},
            {"c-ip": "10.0.0.5", "cs-uri-query": "two words", "sc-status": 302},
        ],
    ),
    "E2EXAMPLE.2024-05-31-10.gz": (
        CLOUDFRONT,
        ["10:30:01", "10:30:04"],
        [{"x-edge-location": "PRG50", "sc-bytes": 1045}, {"x-edge-location": "FRA2", "sc-bytes": None}],
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_init_writes_a_schema_that_reads_them(name: str, tmp_path: Path, invoke: Invoke) -> None:
    text, times, rows = FORMS[name]
    log = tmp_path / name
    log.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    result = invoke("init", log, "-o", tmp_path)
    assert result.exit_code == 0, result.stderr
    events = uc.read_traces(log, tmp_path / "schema.toml")
    assert [str(time)[11:][: len(times[0])] for time in events["lower"].to_pylist()] == times
    assert events.select(list(rows[0])).to_pylist() == rows
    matched = invoke("match", tmp_path / "first.query", log, "--schema", tmp_path / "schema.toml")
    assert matched.exit_code == 0, matched.stderr


def test_logs_of_other_columns_go_into_one_folder(tmp_path: Path, invoke: Invoke) -> None:
    logs = tmp_path / "zeek"
    logs.mkdir()
    (logs / "conn.log").write_text(ZEEK)
    (logs / "dns.log").write_text(
        "#separator \\x09\n#fields\tts\tquery\n1717151401.5\tx.org\n1717151409.5\ty\n"
    )
    assert invoke("init", logs, "-o", tmp_path).exit_code == 0
    events = uc.read_traces(logs, tmp_path / "schema.toml")
    assert events.num_rows == 5
    assert set(events["query"].to_pylist()) == {None, "x.org", "y"}


def test_columns_that_change_are_a_fault(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text(
        "#Fields: date time a\n2024-05-31 10:30:01 1\n#Fields: date time b\n2024-05-31 10:30:02 2\n"
    )
    (tmp_path / "schema.toml").write_text(
        '[[events]]\ntype = "X"\ntime = ["date", "time"]\nuncertainty = { kind = "exact" }\n'
    )
    with pytest.raises(uc.TraceError, match="its columns are date time a, and later date time b"):
        uc.read_traces(log, tmp_path / "schema.toml")


def test_an_expression_for_lines_goes_first(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text(W3C)
    (tmp_path / "schema.toml").write_text(
        "[extract]\nline = '^(?P<at>[0-9-]+ [0-9:]+) (?P<message>.*)'\n"
        '[[events]]\ntype = "X"\ntime = "at"\nuncertainty = { kind = "granularity", of = "1s" }\n'
    )
    with pytest.warns(uc.UncertainCepWarning, match="fits"):
        assert uc.read_traces(log, tmp_path / "schema.toml").num_rows == 3


@given(
    st.lists(st.sampled_from(["#x y\n", "#\n", "1 2\n", "30 40\n", "#Fields: a b\n"]), max_size=12),
    st.booleans(),
    st.integers(1, 9),
    st.data(),
)
def test_pieces_of_any_length(lines: list[str], is_cut: bool, piece: int, data: st.DataObject) -> None:
    text = "".join(["#Fields: a b\n", *lines]).encode()
    text = text[:-1] if is_cut else text
    declared = DeclaredColumns(("a", "b"), " ", ("-",), True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PIECE", piece)
        read = table_without_directives(io.BytesIO(text), declared).read()
    rows = [line for line in text.splitlines(keepends=True) if not line.startswith(b"#")]
    assert read == b"a b\n" + b"".join(rows)
    table = pyarrow.csv.read_csv(
        pyarrow.py_buffer(read), parse_options=pyarrow.csv.ParseOptions(delimiter=" ")
    )
    assert table.num_rows == len(rows)


def test_the_csv_log_of_postgresql(tmp_path: Path, invoke: Invoke) -> None:
    row = (
        '2024-05-31 10:30:0{}.123 UTC,"alice","shop",12,"10.0.0.5:54",66.4,{},"SELECT",'
        '2024-05-31 10:00:00 UTC,3/1,0,{},00000,"duration: {} ms, ""x""",,,,,,,,,"psql","client backend",,0\n'
    )
    log = tmp_path / "postgresql.csv"
    log.write_text(row.format(1, 1, "LOG", 5) + row.format(2, 2, "ERROR", 7) + row.format(7, 3, "LOG", 9))
    assert invoke("init", log, "-o", tmp_path).exit_code == 0
    events = uc.read_traces(log, tmp_path / "schema.toml").to_pylist()
    assert [str(event["lower"])[11:23] for event in events] == [
        "10:30:01.123",
        "10:30:02.123",
        "10:30:07.123",
    ]
    assert [event["error_severity"] for event in events] == ["LOG", "ERROR", "LOG"]
    assert [event["message"] for event in events] == [f'duration: {ms} ms, "x"' for ms in (5, 7, 9)]


def test_a_tick_divides_all_lengths(tmp_path: Path, invoke: Invoke) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("ts,load\n1717151400.123456,0.5\n1717151401.223456,\n1717151402.323456,0.2\n")
    assert invoke("init", trace, "-o", tmp_path).exit_code == 0
    assert uc.read_traces(trace, tmp_path / "schema.toml").num_rows == 3


def test_the_beginning_of_a_file_is_read_once_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    plain = unpacking.unpacked

    def counted(path: Path, **options: Any) -> Any:
        opened.append(path)
        return plain(path, **options)

    monkeypatch.setattr(unpacking, "unpacked", counted)
    path = tmp_path / "conn"
    for kind in ("x", "y"):
        path.write_text(f"#fields\t{kind}\tb\n1\t2\n")
        # A file that was changed just now may change again.
        for changed, times in ((None, 2), (1_700_000_000 + ord(kind), 1)):
            if changed is not None:
                os.utime(path, (changed, changed))
            opened.clear()
            for _ in range(2):
                declared = module.declared_columns(path)
                assert declared is not None
                assert declared.names == (kind, "b")
            assert len(opened) == times
