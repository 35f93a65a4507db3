"""``uncertain-cep match`` in process: formats in and out, options, and where results end up."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uncertain_cep as uc
from tests.cli.conftest import Invoke, write_trace
from uncertain_cep.cli.outputs import ABOUT_FILE

QUERY = "PATTERN SEQ(A a, B b, C c) WITHIN 4"
MATCHES = {(1, 3, 2, 1, 5): 25 / 225, (1, 3, 4, 1, 7): 27 / 225}
COLUMNS = ["a", "b", "c", "range_lower", "range_upper", "confidence"]


def confidences(rows: list[dict[str, float]]) -> dict[tuple[int, ...], float]:
    assert all(list(row) == COLUMNS for row in rows)
    return {tuple(int(row[name]) for name in COLUMNS[:-1]): float(row["confidence"]) for row in rows}


def read_csv(text: str) -> list[dict[str, float]]:
    return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(io.StringIO(text))]


def leftovers(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir() if entry.name.startswith(".")]


def test_reads_every_format(invoke: Invoke, trace: Path) -> None:
    result = invoke("match", QUERY, trace)
    assert result.exit_code == 0, result.stderr
    assert confidences(read_csv(result.stdout)) == pytest.approx(MATCHES)


def test_says_which_engine_and_how_many_on_stderr_only(invoke: Invoke, parquet: Path) -> None:
    result = invoke("match", QUERY, parquet)
    assert "engine: in process (about 0.0 MiB of traces, unpacked, at most 512 MiB)" in result.stderr
    assert "2 matches in" in result.stderr
    assert "engine" not in result.stdout


def test_prints_json_lines(invoke: Invoke, parquet: Path) -> None:
    result = invoke("match", QUERY, parquet, "--format", "json")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert confidences(rows) == pytest.approx(MATCHES)


def test_does_not_print_parquet(invoke: Invoke, parquet: Path) -> None:
    result = invoke("match", QUERY, parquet, "--format", "parquet")
    assert result.exit_code == 2
    assert "add -o OUT" in result.stderr
    assert result.stdout == ""


def test_query_file(invoke: Invoke, parquet: Path, tmp_path: Path) -> None:
    file = tmp_path / "query.sase"
    file.write_text(f"-- what the paper shows\n{QUERY}\n")
    result = invoke("match", file, parquet)
    assert confidences(read_csv(result.stdout)) == pytest.approx(MATCHES)


@pytest.mark.parametrize(
    "text", ["pattern seq(A a, B b, C c) within 4", f"  \n{QUERY}", f"-- a comment\n\n  -- more\n{QUERY}"]
)
def test_query_text(invoke: Invoke, parquet: Path, text: str) -> None:
    # After --, since a comment would be taken for an option.
    assert "2 matches" in invoke("match", "--", text, parquet).stderr


@pytest.mark.parametrize(
    "name", ["matches.parquet", "matches.csv", "matches.jsonl", "matches", "deep/down/matches"]
)
def test_writes_files_and_directories(invoke: Invoke, parquet: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    result = invoke("match", QUERY, parquet, "-o", out)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    if out.suffix == ".csv":
        rows = read_csv(out.read_text())
    elif out.suffix == ".jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        rows = pq.read_table(out).to_pylist()
    assert confidences(rows) == pytest.approx(MATCHES)
    assert not leftovers(out.parent)


@pytest.mark.parametrize("format_name", ["parquet", "csv", "json"])
def test_directory_says_how_it_was_made(
    invoke: Invoke, parquet: Path, tmp_path: Path, format_name: str
) -> None:
    out = tmp_path / "out"
    assert invoke("match", QUERY, parquet, "-o", out, "--format", format_name).exit_code == 0
    about = json.loads((out / ABOUT_FILE).read_text())
    assert about["query"] == QUERY
    assert about["matches"] == 2
    assert about["format"] == format_name
    assert (out / f"part-00000.{format_name}").is_file()


@pytest.mark.parametrize("name", ["r.csv.gz", "r.csv.zst", "r.jsonl.gz", "r.json.zst"])
def test_text_is_compressed_as_the_name_says(
    invoke: Invoke, parquet: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / name
    plain = tmp_path / name.rpartition(".")[0]
    for place in (out, plain):
        assert invoke("match", QUERY, parquet, "-o", place).exit_code == 0
    assert out.read_bytes()[:2] == (b"\x1f\x8b" if name.endswith("gz") else b"\x28\xb5")
    with pa.input_stream(str(out), compression="detect") as stream:
        assert stream.read() == plain.read_bytes()


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("r.xlsx", [], ".xlsx cannot be written: name a file .parquet, .csv"),
        ("r.tsv", [], ".tsv cannot be written"),
        ("r.parquet.gz", [], ".gz is for text, such as r.csv.gz"),
        ("r.csv", ["--format", "json"], "--format json contradicts the name"),
        ("r.parquet", ["--format", "csv"], "--format csv contradicts the name"),
    ],
)
def test_names_that_say_what_is_not_written(
    invoke: Invoke, parquet: Path, tmp_path: Path, name: str, options: list[str], said: str
) -> None:
    done = invoke("match", QUERY, parquet, "-o", tmp_path / name, *options)
    assert done.exit_code == 2
    assert said in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["figure1.parquet"]


def test_names_that_are_no_utf_8(invoke: Invoke, figure1: pa.Table, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    for suffix in ("csv", "csv.gz", "jsonl", "parquet"):
        trace = folder / os.fsdecode(b"\xff." + suffix.encode())
        write_trace(figure1, tmp_path / f"trace.{suffix}").rename(trace)
        for out in (folder / os.fsdecode(b"\xfe.csv"), folder / os.fsdecode(b"\xfd")):
            done = invoke("match", QUERY, trace, "-o", out, "--overwrite")
            assert done.exit_code == 0, done.stderr
            assert out.exists()
        assert uc.read_traces(trace).num_rows == 4
        trace.write_bytes(b"{")
        broken = invoke("match", QUERY, trace)
        assert broken.exit_code == 2
        assert re.search(rf"[?\ufffd]\.{re.escape(suffix)}", broken.stderr), broken.stderr
        trace.unlink()


def test_no_match_is_an_empty_result(invoke: Invoke, parquet: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    query = "PATTERN SEQ(C c, B b, A a, B d) WITHIN 4"
    assert invoke("match", query, parquet, "-o", out).exit_code == 0
    assert out.read_text().replace('"', "").strip() == "c,b,a,d,range_lower,range_upper,confidence"


def test_keeps_a_result_unless_told_to_overwrite(invoke: Invoke, parquet: Path, tmp_path: Path) -> None:
    for out in (tmp_path / "out", tmp_path / "out.csv"):
        assert invoke("match", QUERY, parquet, "-o", out).exit_code == 0
        again = invoke("match", f"{QUERY} HAVING CONFIDENCE >= 0.9", parquet, "-o", out)
        assert again.exit_code == 2
        assert "--overwrite" in again.stderr
        forced = invoke("match", f"{QUERY} HAVING CONFIDENCE >= 0.9", parquet, "-o", out, "--overwrite")
        assert forced.exit_code == 0, forced.stderr
        assert "0 matches" in forced.stderr
    assert not leftovers(tmp_path)


def test_never_overwrites_a_directory_of_something_else(
    invoke: Invoke, parquet: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.tex").write_text("years of work")
    result = invoke("match", QUERY, parquet, "-o", home, "--overwrite")
    assert result.exit_code == 2
    assert (home / "thesis.tex").read_text() == "years of work"


def test_interrupted_run_leaves_the_former_result(
    invoke: Invoke, parquet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert invoke("match", QUERY, parquet, "-o", out).exit_code == 0

    def interrupted(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("uncertain_cep.cli.execution.write_batches", interrupted)
    result = invoke("match", QUERY, parquet, "-o", out, "--overwrite")
    assert result.exit_code == 130
    assert pq.read_table(out).num_rows == 2
    assert not leftovers(tmp_path)


def test_options_for_the_best_matches(invoke: Invoke, parquet: Path) -> None:
    best = invoke("match", QUERY, parquet, "--top", 1)
    assert confidences(read_csv(best.stdout)) == pytest.approx({(1, 3, 4, 1, 7): 27 / 225})
    sure = invoke("match", QUERY, parquet, "--min-confidence", 0.115)
    assert confidences(read_csv(sure.stdout)) == pytest.approx({(1, 3, 4, 1, 7): 27 / 225})
    surer = invoke("match", f"{QUERY} HAVING CONFIDENCE >= 0.115", parquet, "--min-confidence", 0.01)
    assert confidences(read_csv(surer.stdout)) == pytest.approx({(1, 3, 4, 1, 7): 27 / 225})


def test_no_confidence(invoke: Invoke, parquet: Path) -> None:
    result = invoke("match", QUERY, parquet, "--no-confidence")
    assert result.stdout.replace('"', "").splitlines()[0] == "a,b,c,range_lower,range_upper"
    assert len(result.stdout.splitlines()) == 3


def test_times_between_ends(invoke: Invoke, parquet: Path, tmp_path: Path) -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 4 RETURN DURATION(a, b) AS took ORDER BY CONFIDENCE DESC"
    out = tmp_path / "rows.parquet"
    assert invoke("match", query, str(parquet), "-o", str(out)).exit_code == 0
    expected = uc.match(uc.read_traces([str(parquet)]), query)
    assert {"took_lower", "took_upper", "took_mean"} <= set(expected.column_names)
    assert pq.read_table(out).equals(expected)


def test_max_matches(invoke: Invoke, parquet: Path, tmp_path: Path) -> None:
    result = invoke("match", QUERY, parquet, "-o", tmp_path / "out", "--max-matches", 1)
    assert result.exit_code == 1
    assert "max_matches=1" in result.stderr
    assert not (tmp_path / "out").exists()
    assert not leftovers(tmp_path)


def test_several_traces(invoke: Invoke, figure1: pa.Table, tmp_path: Path) -> None:
    first = write_trace(figure1.slice(0, 2), tmp_path / "first.csv")
    second = write_trace(figure1.slice(2), tmp_path / "second.parquet")
    result = invoke("match", QUERY, first, second)
    assert confidences(read_csv(result.stdout)) == pytest.approx(MATCHES)


RAW = """when,kind,serial,host
2026-01-05T08:00:01,Start,s1,n1
2026-01-05T08:00:04,End,e1,n1
2026-01-05T08:00:02,Start,s2,n2
"""
RAW_QUERY = "PATTERN SEQ(Start a, End b) WHERE [host] WITHIN 10 seconds"


def test_flags_and_schema_file_say_the_same(invoke: Invoke, tmp_path: Path) -> None:
    raw = tmp_path / "raw.csv"
    raw.write_text(RAW)
    schema = tmp_path / "schema.toml"
    schema.write_text(
        'tick = "100ms"\n[[events]]\ntype_column = "kind"\nid = "serial"\ntime = "when"\n'
        'uncertainty = { kind = "plus_minus", by = "2s" }\n'
    )
    by_file = invoke("match", RAW_QUERY, raw, "--schema", schema, "--format", "json")
    by_flags = invoke(
        "match", RAW_QUERY, raw, "--type-column", "kind", "--id", "serial", "--time", "when", "--tick",
        "100ms", "--uncertainty", "plus_minus:2s", "--format", "json",
    )  # fmt: skip
    assert by_file.exit_code == 0, by_file.stderr
    assert by_flags.stdout == by_file.stdout
    row = json.loads(by_file.stdout)
    assert (row["a"], row["b"]) == ("s1", "e1")
    assert row["range_lower"].startswith("2026-01-05T07:59:59.0")
    assert row["range_upper"].startswith("2026-01-05T08:00:06.0")
    # 41 ticks each; the start is the later one, or at the same tick, in 11 * 12 / 2 of the pairs.
    assert row["confidence"] == pytest.approx(1 - 66 / 41**2)


def test_flags_and_schema_file_exclude_each_other(invoke: Invoke, parquet: Path) -> None:
    result = invoke("match", QUERY, parquet, "--schema", "schema.toml", "--time", "when")
    assert result.exit_code == 2
    assert "--time and --schema exclude each other" in result.stderr


def test_flags_need_an_uncertainty(invoke: Invoke, parquet: Path) -> None:
    result = invoke("match", QUERY, parquet, "--type", "A", "--time", "when")
    assert result.exit_code == 2
    assert "--uncertainty" in result.stderr


def test_tick_of_plain_columns(invoke: Invoke, parquet: Path) -> None:
    result = invoke("match", "PATTERN SEQ(A a, B b, C c) WITHIN 40 seconds", parquet, "--tick", "10s")
    assert confidences(read_csv(result.stdout)) == pytest.approx(MATCHES)


def test_times_are_iso_text(invoke: Invoke, figure1: pa.Table, tmp_path: Path) -> None:
    for number, zone in enumerate((None, "UTC")):
        kind = pa.timestamp("s", zone)
        table = figure1
        for name in ("lower", "upper"):
            column = table.column(name).cast(kind)
            table = table.set_column(table.schema.get_field_index(name), name, column)
        trace = write_trace(table, tmp_path / f"stamps{number}.parquet")
        result = invoke("match", "PATTERN SEQ(A a, B b, C c) WITHIN 4 seconds", trace)
        assert f'"1970-01-01T00:00:01.000000{"Z" if zone else ""}"' in result.stdout, result.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--engine", "local", "--master", "local[2]"], "--master is for Spark"),
        (["--min-confidence", "1.5"], "not in the range"),
        (["--top", "0"], "not in the range"),
        (["--format", "xml"], "parquet"),
    ],
)
def test_wrong_usage(invoke: Invoke, parquet: Path, options: list[str], said: str) -> None:
    result = invoke("match", QUERY, parquet, *options)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--planner", "best"], "planner='best' is unknown"),
        (["--latency-weight", "inf"], "latency_weight=inf"),
        (["--evaluation", "point", "--planner", "greedy"], "does not go with evaluation='point'"),
    ],
)
@pytest.mark.parametrize("command", ["match", "explain"])
def test_options_are_refused_before_traces_are_read(
    invoke: Invoke, tmp_path: Path, command: str, options: list[str], said: str
) -> None:
    result = invoke(command, QUERY, tmp_path / "missing.parquet", *options)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "missing.parquet" not in result.stderr


def test_lists_of_kleene_events_are_json_in_csv(invoke: Invoke, figure1: pa.Table, tmp_path: Path) -> None:
    names = pa.array(['a"1', "c2", "b,3", "c4"])
    trace = write_trace(figure1.set_column(1, "id", names), tmp_path / "named.parquet")
    query = "PATTERN SEQ((A|B)+ x[], C c) WITHIN 4"
    result = invoke("match", query, trace, "--format", "csv")
    assert result.exit_code == 0, result.stderr
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert ['a"1', "b,3"] in [json.loads(row["x"]) for row in rows]
    out = tmp_path / "matches.parquet"
    assert invoke("match", query, trace, "-o", out).exit_code == 0
    written = pq.read_table(out)
    assert written.schema.field("x").type == pa.list_(pa.string())
    assert written.column("x").to_pylist() == [json.loads(row["x"]) for row in rows]


def test_compressed_series(invoke: Invoke, parquet: Path) -> None:
    result = invoke("match", "PATTERN SEQ(A a, (B|C)+ x[]) WITHIN 4", parquet, "--kleene", "compressed")
    assert result.exit_code == 0, result.stderr
    (row,) = csv.DictReader(io.StringIO(result.stdout))
    assert sorted(json.loads(row["x"])) == [2, 3, 4]
    assert list(row)[-3:] == ["p_nonempty", "expected_subsets", "expected_elements"]


def test_known_until_leaves_out_what_is_undecided(invoke: Invoke, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("type,id,lower,upper\nDown,1,0,0\nDown,2,580,580\nUp,3,700,700\n")
    query = "PATTERN SEQ(Down d, !Up u) WHERE u.id = 0 WITHIN 600"
    result = invoke("match", query, trace, "--known-until", "600")
    assert result.stdout.splitlines() == ['"d","range_lower","range_upper","confidence"', "1,0,0,1"]
    assert "warning: 1 match left out as undecided: a gap can end behind known_until, 600" in result.stderr
    assert "warning: 1 match with a negation whose gap can end behind" in invoke("match", query, trace).stderr
    assert "known until" in invoke("explain", query, trace, "--known-until", "600").stdout
    wrong = invoke("match", query, trace, "--known-until", "soon")
    assert wrong.exit_code == 2
    assert "known_until='soon': it must be a time" in wrong.stderr
    # What the first query leaves out is no event of the second one.
    after = "PATTERN SEQ(Outage o) WITHIN 1"
    result = invoke("match", query, after, trace, "--as", "Outage", "--known-until", "600", "--no-confidence")
    assert result.stdout.count("\n") == 2


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("", "the expected count in"), (" BY k", "2 groups in"), (" EVERY 3 ticks", "3 buckets in"),
        (" BY k EVERY 3 ticks", "3 rows, one for each group and bucket in"),
    ],
)  # fmt: skip
def test_expected_counts_are_no_matches(invoke: Invoke, tmp_path: Path, what: str, said: str) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(
        "type,id,lower,upper,k\nA,1,0,0,x\nB,2,1,1,x\nA,3,4,4,y\nB,4,5,5,y\nA,5,7,7,x\nB,6,8,8,x\n"
    )
    result = invoke("match", f"PATTERN SEQ(A a, B b) WHERE [k] WITHIN 2 RETURN EXPECTED COUNT{what}", trace)
    assert result.exit_code == 0
    assert f"\n{said}" in result.stderr
    assert "matches in" not in result.stderr


def test_an_error_leaves_no_header_on_stdout(invoke: Invoke, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("type,id,lower,upper\nA,1,0,0\nB,2,3,1\n")
    result = invoke("match", "PATTERN SEQ(A a, B b) WITHIN 4", trace)
    assert (result.exit_code, result.stdout) == (2, "")
    sound = tmp_path / "sound.csv"
    sound.write_text(
        "type,id,lower,upper\n" + "".join(f"A,{n},{n},{n + 9}\nB,{n + 99},{n},{n + 9}\n" for n in range(9))
    )
    result = invoke("match", "PATTERN SEQ(A a, B b) WITHIN 40 ORDER BY b.none", sound)
    assert (result.exit_code, result.stdout) == (2, "")
    result = invoke("match", "PATTERN SEQ(A a, B b) WITHIN 40", sound, "--max-matches", "3")
    assert (result.exit_code, result.stdout) == (1, "")


def test_hours_and_days_of_a_zone(invoke: Invoke, tmp_path: Path) -> None:
    """The stamp is of Prague, as is the day that its hour belongs to."""
    log = tmp_path / "log.csv"
    log.write_text("at,n\n2024-10-26 23:30:00,1\n2024-10-27 00:30:00,2\n2024-10-27 23:30:00,3\n")
    schema = tmp_path / "schema.toml"
    text = '[[events]]\ntype = "A"\ntime = "at"\nuncertainty = { kind = "exact" }\n'
    schema.write_text('tick = "1min"\nzone = "Europe/Prague"\n' + text)
    count = "PATTERN SEQ(A a) WITHIN 1 min RETURN EXPECTED COUNT EVERY 1 day"
    by_schema = invoke("match", count, log, "--schema", schema)
    assert by_schema.exit_code == 0, by_schema.stderr
    flags = (
        "--type",
        "A",
        "--time",
        "at",
        "--uncertainty",
        "exact",
        "--tick",
        "1min",
        "--zone",
        "Europe/Prague",
    )
    by_flags = invoke("match", count, log, *flags)
    assert by_flags.stdout == by_schema.stdout
    rows = list(csv.DictReader(io.StringIO(by_schema.stdout)))
    assert [(row["bucket"][:16], float(row["expected_count"])) for row in rows] == [
        ("2024-10-25T22:00", 1.0),
        ("2024-10-26T22:00", 2.0),
    ]
    query = uc.parse(count, zone="Europe/Prague")
    made = uc.match(uc.read_traces(log, schema), query)
    assert made["expected_count"].to_pylist() == [1.0, 2.0]
    both = invoke("match", count, log, "--schema", schema, "--zone", "UTC")
    assert both.exit_code == 2
    assert "--zone and --schema exclude each other" in both.stderr
    events = tmp_path / "events.csv"
    events.write_text(
        "type,id,lower,upper,ts\nA,1,2024-07-01 10:00:00,2024-07-01 10:00:00,2024-07-01 10:00:00\n"
    )
    plain = invoke(
        "match", "PATTERN SEQ(A a) WHERE HOUR(a.ts) = 12 WITHIN 1 s", events, "--zone", "Europe/Prague"
    )
    assert len(plain.stdout.splitlines()) == 2, plain.stderr
    assert "no time zone" in invoke("match", count, events, "--zone", "Mars").stderr
