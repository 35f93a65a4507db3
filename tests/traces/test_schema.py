"""Schema files and flags: what they say, and every mistake at once."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import uncertain_cep as uc
from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.traces import (
    TraceSchema,
    all_before,
    by_value,
    causal,
    columns,
    encloses,
    exact,
    load_schema,
    plus_minus,
    window,
)
from uncertain_cep.traces.events_schema import EventsSchema, UncertaintySpec


def load(folder: Path, text: str) -> TraceSchema:
    path = folder / "schema.toml"
    path.write_text(text, encoding="utf-8")
    return load_schema(path)


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(TraceError) as caught:
        load(folder, text)
    assert all(fault.file == str(folder / "schema.toml") for fault in caught.value.faults)
    return [fault.message for fault in caught.value.faults]


def test_everything_a_schema_can_say(tmp_path: Path) -> None:
    schema = load(
        tmp_path,
        """
        tick = "1ms"
        delimiter = ";"
        nulls = ["NA"]
        [types]
        serial = "string"
        [extract]
        task = "_(?P<attempt>[0-9]+)$"
        [[events]]
        files = "*.csv"
        type = "Start"
        id = "{task}:start"
        time = "at"
        unit = "ms"
        where = "result = 'OK'"
        attributes = { job = "job_id" }
        uncertainty = { kind = "plus_minus", by = "5ms" }
        missing = "drop"
        [[events]]
        type_column = "kind"
        time = "at"
        attributes = ["host", "job"]
        [events.uncertainty_by.kind]
        CPU = { kind = "window", length = "15s" }
        "*" = { kind = "columns", lower = "lo", upper = "hi" }
        """,
    )
    assert schema.tick == "1ms"
    assert schema.options.delimiter == ";"
    assert schema.options.nulls == ("NA",)
    assert schema.options.types == (("serial", "string"),)
    assert schema.options.extract == (("task", "_(?P<attempt>[0-9]+)$"),)
    assert schema.folder == tmp_path
    first, second = schema.events
    assert first == EventsSchema(
        UncertaintySpec("plus_minus", (("by", "5ms"),)),
        type="Start",
        id="{task}:start",
        time="at",
        unit="ms",
        files="*.csv",
        where="result = 'OK'",
        attributes=(("job", "job_id"),),
        missing="drop",
    )
    assert first.uncertainty.rule() == plus_minus("5ms")
    assert second.attributes == (("host", "host"), ("job", "job"))
    assert second.uncertainty.rule() == by_value("kind", {"CPU": window("15s")}, columns("lo", "hi"))
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    mistakes = faults(
        tmp_path,
        """
        tick = "soon"
        delimeter = ";"
        nulls = "NA"
        [types]
        a = "integer"
        [[events]]
        time = 7
        unit = "parsec"
        missing = "ignore"
        attributes = ["lower", "x", "x"]
        uncertainty = { kind = "plus_minus", bye = "5ms" }
        [[events]]
        type = "A"
        type_column = "b"
        where = "a = = b"
        uncertainty = { kind = "windows" }
        [[events]]
        type = "A"
        uncertainty = { kind = "granularity", of = "0s" }
        [[events]]
        type = "A"
        time = "t"
        [[events]]
        type = "A"
        time = "t"
        uncertainty = { kind = "exact" }
        uncertainty_by = { a = { x = { kind = "exact" } } }
        """,
    )
    for part in (
        "delimeter: there is no such key: did you mean delimiter?",
        "tick: the length 'soon' is not a length of time",
        "nulls: must be a list of texts",
        "types.a: must be one of string, int, float, bool, timestamp, not 'integer'",
        "events[1].time: must be a text in quotes, not 7",
        "events[1]: say the type of these events",
        "events[1].unit: must be one of ns, us",
        'events[1].missing: must be "error" or "drop", not \'ignore\'',
        "events[1].attributes: no attribute can be called 'lower'",
        "events[1].attributes: names x twice",
        "events[1].uncertainty.bye: there is no such key: did you mean by?",
        "events[1].uncertainty.by: is missing: plus_minus needs by",
        "events[2]: say the type of these events",
        "events[2].where: line 1, column 5",
        "events[2].uncertainty.kind: must be one of exact, plus_minus, granularity, window, period, "
        "clock_offset, as_written, columns, histogram, not 'windows'; did you mean window?",
        "events[3].uncertainty.of: must be longer than 0",
        "events[4].uncertainty: say how uncertain the times are",
        "events[5].uncertainty: say how uncertain the times are",
    ):
        assert any(message.startswith(part) for message in mistakes), (part, mistakes)
    assert len(mistakes) == 18


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tick = ", "the schema is no TOML"),
        ("", "events: write one or more tables"),
        ("events = 5", "events: write one or more tables"),
        ("types = 5", "types: must be a table"),
        ("extract = 5", "extract: must be a table of columns and regular expressions"),
        ("extract = { a = '(x' }", "extract.a: is no regular expression that can be used"),
        ("extract = { a = '(?P<b>x)(?=y)' }", "extract.a: is no regular expression that can be used"),
        ("extract = { a = '[[' }", "extract.a: is no regular expression that can be used"),
        ("extract = { a = '[[]x' }", "extract.a: names no group for the new column"),
        ("extract = { a = '(x)' }", "extract.a: names no group for the new column"),
        ("time = 't'", "time: there is no such key here: write it under [[events]]"),
        (
            "[[events]]\ntype = 'A'\ntick = '1s'",
            "events[1].tick: there is no such key here: write it above all tables, at the top of the schema",
        ),
        (
            "[[events]]\ntime = 't'\nvalue_columns = ['x']",
            'events[1]: say the type of these events, either type = "CPU" or type_column = "variable", which',
        ),
        ("delimiter = 'ab'", "delimiter: must be one character"),
        ("tick = 5", "tick: must be a text in quotes"),
        ("[[events]]\ntype = 'A'\nuncertainty = 'exact'", "events[1].uncertainty: must be a table"),
        (
            "[[events]]\ntype = 'A'\nuncertainty = { kind = 'exact' }",
            "events[1].time: is missing: name the column of the stamps",
        ),
        (
            "[[events]]\ntype = 'A'\nuncertainty_by = { a = 5 }",
            "events[1].uncertainty_by: must be a table for one column",
        ),
        (
            "[[events]]\ntype = 'A'\nattributes = 5\ntime = 't'\nuncertainty = { kind = 'exact' }",
            "events[1].attributes: must be a list",
        ),
        (
            "[[events]]\ntype = 'A'\ntime = 't'\nuncertainty_by = { a = { x = { kind = 'plus_minus' } } }",
            "events[1].uncertainty_by.a.x.by: is missing",
        ),
        (
            "[[events]]\ntype = 'A'\ntime = 't'\n"
            "uncertainty = { kind = 'clock_offset', table = 'x', unit = 'y' }",
            "events[1].uncertainty.unit: must be one of",
        ),
        (
            "[[events]]\ntype = 'A'\ntime = 't'\n"
            "uncertainty = { kind = 'clock_offset', table = 'x', epoch = 'from' }",
            "events[1].uncertainty.epoch: must be a list of two columns",
        ),
        ("constraints = 5", "constraints: write a table [[constraints]]"),
        ("[[constraints]]\nby = 'x'", "constraints[1]: say one of causal, encloses, all_before"),
        ("[[constraints]]\ncausal = 'SEQ(A a)'", "constraints[1]: a causal pattern is a sequence"),
        ("[[constraints]]\ncausal = 5", "constraints[1]: a causal pattern is"),
        ("[[constraints]]\nall_before = ['A', 'B']\nfor = 'x'", "constraints[1].for: there is no such key"),
        ("[[constraints]]\nall_before = 'A'", "constraints[1].all_before: must be a list of 2"),
        ("[[constraints]]\nencloses = [['A', 'B'], ['C', 'D']]", "constraints[1].by: is missing"),
        ("[[constraints]]\nencloses = [['A', 'B'], ['C', 5]]\nby = 'x'", "constraints[1]: child="),
    ],
)
def test_single_mistakes(tmp_path: Path, text: str, message: str) -> None:
    mistakes = faults(tmp_path, text)
    assert any(each.startswith(message) for each in mistakes), mistakes


def test_constraints_of_clocks(tmp_path: Path) -> None:
    file = tmp_path / "schema.toml"
    file.write_text(
        "[[events]]\ntype = 'A'\ntime = 't'\nuncertainty = { kind = 'exact' }\n"
        "[[constraints]]\ncausal = 'SEQ(A a, B b)'\ndelay = '1ms'\n"
        "[[constraints]]\nencloses = [['A', 'B'], ['C', 'D']]\nby = ['x', 'y']\n"
        "[[constraints]]\nall_before = ['A', 'B']\nby = 'x'\ndelay = 2\n"
    )
    assert load_schema(file).constraints == (
        causal("SEQ(A a, B b)", delay="1ms"),
        encloses(("A", "B"), ("C", "D"), by=("x", "y")),
        all_before("A", "B", by="x", delay=2),
    )


def test_schema_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="there is no such schema file"):
        load_schema(tmp_path / "none.toml")
    with pytest.raises(TraceError, match="cannot be read"):
        load_schema(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"tick = '\xff'")
    with pytest.raises(TraceError, match="UTF-8"):
        load_schema(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("flag", "spec"),
    [
        ("exact", UncertaintySpec("exact")),
        ("plus_minus:500ms", UncertaintySpec("plus_minus", (("by", "500ms"),))),
        ("plus_minus:5", UncertaintySpec("plus_minus", (("by", 5),))),
        ("granularity:1min", UncertaintySpec("granularity", (("of", "1min"),))),
        ("window:15s", UncertaintySpec("window", (("length", "15s"),))),
        ("columns:lo,hi", UncertaintySpec("columns", (("lower", "lo"), ("upper", "hi")))),
        ("histogram:pmf", UncertaintySpec("histogram", (("pmf", "pmf"),))),
        ("histogram:pmf,lower", UncertaintySpec("histogram", (("pmf", "pmf"), ("lower", "lower")))),
        (
            "clock_offset:table.csv:node",
            UncertaintySpec("clock_offset", (("table", "table.csv"), ("key", "node"))),
        ),
        (
            "clock_offset:t.csv:node:host:lo:hi:us:from,until",
            UncertaintySpec(
                "clock_offset",
                (
                    ("table", "t.csv"),
                    ("key", "node"),
                    ("host", "host"),
                    ("lower", "lo"),
                    ("upper", "hi"),
                    ("unit", "us"),
                    ("epoch", ("from", "until")),
                ),
            ),
        ),
        (
            "clock_offset:t.csv:node:host:lo:hi:us",
            UncertaintySpec(
                "clock_offset",
                (
                    ("table", "t.csv"),
                    ("key", "node"),
                    ("host", "host"),
                    ("lower", "lo"),
                    ("upper", "hi"),
                    ("unit", "us"),
                ),
            ),
        ),
    ],
)
def test_flags(flag: str, spec: UncertaintySpec) -> None:
    schema = TraceSchema.from_flags(
        uncertainty=flag, type="A", id="n", time="at", unit="ms", tick="1ms", where="a = 1", missing="drop"
    )
    assert schema == TraceSchema(
        (EventsSchema(spec, type="A", id="n", time="at", unit="ms", where="a = 1", missing="drop"),), "1ms"
    )
    assert schema.folder is None


def test_the_type_column_is_type_unless_said_otherwise() -> None:
    (events,) = TraceSchema.from_flags(uncertainty="exact", time="at").events
    assert (events.type, events.type_column) == (None, "type")
    assert events.uncertainty.rule() == exact()


def test_every_mistake_in_flags_is_told_with_its_flag() -> None:
    with pytest.raises(OptionError) as caught:
        TraceSchema.from_flags(
            uncertainty="window:soon", type="A", type_column="b", unit="x", tick="y", missing="z"
        )
    lines = str(caught.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "--tick",
        "--type or --type-column",
        "--unit",
        "--missing",
        "--uncertainty",
    ]
    with pytest.raises(OptionError, match="--time: is missing"):
        TraceSchema.from_flags(uncertainty="exact")
    for wrong in ("fuzzy:3", "columns:lo", "columns:a,b,c", ""):
        with pytest.raises(OptionError, match="--uncertainty"):
            TraceSchema.from_flags(uncertainty=wrong, time="t")


def test_the_probability_that_an_event_happened(tmp_path: Path) -> None:
    trace, schema = tmp_path / "trace.csv", tmp_path / "trace.toml"
    trace.write_text("id,at,score,host\n1,3,0.5,u\n2,5,,v\n")
    lines = ("[[events]]", 'type = "A"', 'id = "id"', 'time = "at"', 'probability = "score"')
    text = "\n".join((*lines, 'uncertainty = { kind = "exact" }', ""))
    schema.write_text(text)
    events = uc.read_traces(trace, schema)
    assert events["probability"].to_pylist() == [0.5, None]
    assert set(events.column_names) == {"type", "id", "lower", "upper", "probability", "host"}
    trace.write_text("id,at,score,host\n1,3,1.5,u\n2,5,,v\n")
    (fault,) = uc.validate(trace, schema)
    assert (fault.row, fault.column, fault.value) == (1, "probability", "1.5")
    trace.write_text("id,at,probability\n1,3,0.5\n")
    schema.write_text(text.replace('probability = "score"\n', ""))
    (fault,) = uc.validate(trace, schema)
    assert 'or say probability = "probability"' in fault.message


def test_the_order_of_records_and_of_a_source(tmp_path: Path) -> None:
    trace, schema = tmp_path / "log.csv", tmp_path / "log.toml"
    trace.write_text("kind,day,line,ward\nA,2026-01-05,7,u\nB,2026-01-05,9,u\nA,2026-01-05,1,\n")
    text = (
        "tick = '1h'\n[[events]]\ntype_column = 'kind'\ntime = 'day'\nordered = true\n"
        "uncertainty = { kind = 'granularity', of = '1d' }\n"
    )
    schema.write_text(text)
    events = uc.read_traces(trace, schema)
    assert events["source"].to_pylist() == ["file"] * 3
    assert events["ordered"].to_pylist() == [True] * 3
    query = "PATTERN SEQ(A a, B b) WITHIN 1 days"
    assert uc.match(events, query).select(["a", "confidence"]).to_pylist() == [{"a": 1, "confidence": 1.0}]
    schema.write_text(f"{text}sequence = 'line'\nsource = 'ward'\n")
    events = uc.read_traces(trace, schema)
    assert events["source"].to_pylist() == ["u", "u", None]
    assert events["sequence"].to_pylist() == [7, 9, 1]
    assert events["offset_lower"].null_count == 1
    assert uc.match(events, query)["confidence"].to_pylist()[0] == 1.0
    assert uc.match(events, query).num_rows == 2
    for wrong, said in (
        ("ordered = 1\n", "true or false"),
        ("source = 'ward'\n", "goes with sequence or ordered"),
    ):
        schema.write_text(text.replace("ordered = true\n", wrong))
        with pytest.raises(TraceError, match=said):
            load_schema(schema)


def test_what_is_uncertain_by_a_clock_besides(tmp_path: Path) -> None:
    (tmp_path / "offsets.csv").write_text("host,offset_lo,offset_hi\nh,-50,50\n")
    (tmp_path / "log.csv").write_text("type,host,at\nA,h,10\nB,h,20\n")
    clause = "own = { kind = 'granularity', of = '10ms' }"
    text = (
        "tick = '1ms'\n[[events]]\ntype_column = 'type'\ntime = 'at'\nunit = 'ms'\nuncertainty = "
        f"{{ kind = 'clock_offset', table = 'offsets.csv', shared = true, {clause} }}\n"
    )
    (tmp_path / "schema.toml").write_text(text)
    events = uc.read_traces(tmp_path / "log.csv", tmp_path / "schema.toml")
    (row,) = uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 50").to_pylist()
    assert row["confidence"] == 1.0
    (tmp_path / "schema.toml").write_text(text.replace("'granularity', of", "'granularity', off"))
    with pytest.raises(TraceError, match=r"own\.off"):
        load_schema(tmp_path / "schema.toml")


@pytest.mark.parametrize(
    "key",
    [
        ".".join(["a"] * 20_000),
        ".".join(["'a b'"] * 101),
        f"[{'. '.join(['a'] * 101)}]",
        "x = { " + "a." * 100 + "a",
    ],
)
def test_a_key_of_very_many_parts_is_refused(tmp_path: Path, key: str) -> None:
    """Reading one took time in proportion to the square of its parts: 33 s for 40 kB."""
    (tmp_path / "s.toml").write_text(f"# a text, and\n{key} = 1\n")
    with pytest.raises(TraceError, match="line 2 has a key of more than 100 parts"):
        load_schema(tmp_path / "s.toml")


@pytest.mark.parametrize(
    "line",
    ["x = '" + "a." * 500 + "'", 'x = "' + "a." * 500 + '"', "# " + "a." * 500, "x = [" + "0.5, " * 500 + "]",
     "x = '''\n" + "a." * 500 + "\n'''", 'x = """\n' + "a." * 500 + '"""',
     ".".join(["a"] * 100) + " = 1"],
)  # fmt: skip
def test_dots_elsewhere_are_no_parts_of_keys(tmp_path: Path, line: str) -> None:
    (tmp_path / "s.toml").write_text(f"{line}\n")
    with pytest.raises(TraceError) as caught:
        load_schema(tmp_path / "s.toml")
    assert "parts" not in str(caught.value)


def test_a_schema_that_is_too_long_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text("# a\n" * 2**18 + "#")
    with pytest.raises(TraceError, match="has 1,048,577 characters, and up to 1,048,576 are read"):
        load_schema(tmp_path / "s.toml")
