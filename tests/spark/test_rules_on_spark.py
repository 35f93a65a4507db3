"""Rules on Spark tell the alerts that they tell in this process."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import uncertain_cep as uc
from tests.rule_sets.test_changing_rules import expected_of, in_order
from tests.rule_sets.test_rule_streams import STREAMED, SUPPRESSIBLE, TWO
from tests.rule_sets.test_rules_together import comparable, traces
from tests.spark.streams import counted, pieces_of, put, reading, run
from tests.spark.test_streams import LARGEST, trace
from tests.spark.traces import to_spark
from uncertain_cep.cli import main
from uncertain_cep.rule_sets.named_rules import Rules, suppression_of
from uncertain_cep.spark import match, worker_errors


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    trace=traces(),
    names=st.lists(st.sampled_from(sorted(STREAMED)), min_size=1, max_size=8, unique=True),
    held=st.sets(st.sampled_from(SUPPRESSIBLE), max_size=2),
    copies=st.integers(1, 3),
)
def test_rules_on_spark_tell_as_in_process(
    spark: SparkSession, trace: pa.Table, names: list[str], held: set[str], copies: int
) -> None:
    """Of traces longer than a slice, too: a trace comes again, later and with other ids."""
    rules = [
        replace(rule, suppress=suppression_of("4 ticks") if rule.name in held else None)
        for rule in uc.rules({name: STREAMED[name] for name in names})
    ]
    table = pa.concat_tables([moved(trace, number) for number in range(copies)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", uc.UncertainCepWarning)
        try:
            expected = uc.match(table, Rules(rules))
        except uc.UncertainCepError:
            with pytest.raises(uc.UncertainCepError), worker_errors():
                uc.match(to_spark(spark, table), Rules(rules)).toArrow()
            return
        with worker_errors():
            alerts = uc.match(to_spark(spark, table), Rules(rules)).toArrow()
    assert alerts.column_names == expected.column_names
    assert comparable(alerts) == comparable(expected)


def moved(trace: pa.Table, number: int) -> pa.Table:
    """Return a trace some slices later."""
    columns: dict[str, Any] = {name: trace.column(name).combine_chunks() for name in trace.column_names}
    for name, step in {"id": 1000, "lower": 500, "upper": 500, "sequence": 1000}.items():
        if name in columns:
            values = [value + number * step for value in columns[name].to_pylist()]
            columns[name] = pa.array(values, pa.int64())
    return pa.table(columns)


def test_faults_and_refusals_name_their_rules(spark: SparkSession) -> None:
    frame = to_spark(spark, pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [0, 1], "upper": [0, 1]}))
    soon = "PATTERN SEQ(A a, B b) WITHIN 8"
    rules = uc.rules({"x": f"{soon} LIMIT 3", "y": soon, "z": f"{soon} OUTPUT NON OVERLAPPING"})
    with pytest.raises(uc.OptionError) as caught:
        uc.match(frame, rules)
    assert [line.split(":")[0] for line in str(caught.value).splitlines()[1:]] == ["rule 'x'", "rule 'z'"]
    assert str(caught.value).startswith("on Spark rules are matched as a stream is\n")
    wrong: list[dict[str, Any]] = [{"known_until": 5}, {"threads": 2}, {"parameters": {"x": 1}}]
    for options in wrong:
        with pytest.raises(uc.OptionError):
            uc.match(frame, rules[1:2], **options)
    stream = spark.readStream.format("rate").load()
    events = stream.selectExpr("'A' AS type", "value AS id", "value AS lower", "value AS upper")
    with pytest.raises(uc.OptionError, match=r"^a stream needs largest_interval="):
        uc.match(events, uc.rules({"x": soon, "y": soon}))
    with pytest.raises(uc.OptionError, match="partitions=, prune= and slice_length= are for one query"):
        match(frame, rules[1:2], partitions=2)
    with pytest.raises(uc.OptionError, match=r"and checkpoint= are for streams, and this frame is none"):
        match(frame, rules[1:2], checkpoint="state")
    twice = to_spark(spark, pa.table({"type": ["A"] * 2, "id": [1, 1], "lower": [0, 900], "upper": [0, 900]}))
    with (
        pytest.warns(uc.UncertainCepWarning, match="no event has"),
        pytest.raises(uc.TraceError),
        worker_errors(),
    ):
        uc.match(twice, rules[1:2]).toArrow()


def test_a_stream_of_rules_tells_what_a_table_tells(spark: SparkSession, tmp_path: Path) -> None:
    """It goes on from its checkpoint, reads each event once, and tells a late event once."""
    rules = uc.rules(
        {
            "soon": "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 12",
            "never": "PATTERN SEQ(A a, !B b) WHERE [key] WITHIN 9",
            "list": "PATTERN SEQ(C a, B+ b[]) WHERE [key] AND b[i].value > 8 WITHIN 6",
            "likely": "PATTERN SEQ(A a, D d) WHERE [key] WITHIN 9 RETURN PROBABILITY AS p BY key EVERY 20",
        }
    )
    rules = Rules([replace(rules["soon"], suppress=suppression_of("30 BY key")), *list(rules)[1:]])
    table = trace(1, 400)
    expected = uc.match(table, rules)
    first, second, end = pieces_of(table, [200])
    put(tmp_path / "events", first)
    frame = reading(spark, tmp_path / "events", table.schema, files=2)
    alerts = match(frame, rules, largest_interval=LARGEST)
    late = pa.Table.from_pylist([{"type": "B", "id": 9999, "lower": -90, "upper": -90}], schema=table.schema)
    _, before = run(alerts, tmp_path / "run")
    put(tmp_path / "events", second, late, end)
    rows, done = run(alerts, tmp_path / "run")
    (row,) = rows.filter(pa.compute.equal(rows.column("kind"), "late")).to_pylist()
    assert (row["late_id"], row["rule"]) == (9999, None)
    matches = rows.filter(pa.compute.equal(rows.column("kind"), "match"))
    assert {*matches.column("rule").to_pylist()} == {*rules.names}
    assert comparable(matches.select(expected.column_names)) == comparable(expected)
    counts = counted(done)
    assert (counts["events"], counts["late"]) == (201, 1)
    assert done[-1]["observedMetrics"]["uncertain_cep"]["state_rows"] == 0
    sums: Counter[tuple[str, str]] = Counter()
    for progress in (*before, *done):
        for name, of_rule in progress["observedMetrics"]["uncertain_cep"]["rules"].items():
            sums.update({(name, counter): count or 0 for counter, count in of_rule.items()})
    alerts_of = Counter(matches.column("rule").to_pylist())
    assert {name: sums[name, "matches"] for name in rules.names} == alerts_of
    left_out = uc.match(table, rules["soon"].query).num_rows - alerts_of["soon"]
    assert {name: sums[name, "suppressed"] for name in rules.names} == dict.fromkeys(rules.names, 0) | {
        "soon": left_out
    }
    assert sums["never", "state_rows"] > 0


@pytest.mark.usefixtures("spark")
def test_the_command_asks_rules_on_spark(tmp_path: Path) -> None:
    columns = {"type": ["A", "B", "C"], "id": [1, 2, 3], "lower": [0, 2, 3], "upper": [1, 4, 3]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    (tmp_path / "rules").mkdir()
    for name in ("two", "timed"):
        (tmp_path / "rules" / f"{name}.sase").write_text(STREAMED[name])
    lines = []
    for more in ([], ["--engine", "spark"]):
        arguments = ["match", str(tmp_path / "rules"), str(tmp_path / "t.parquet"), *more]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
        lines.append(result.stdout)
    assert lines[0] == lines[1]
    assert "timed" in lines[0]


def test_a_folder_that_is_no_checkpoint_of_rules_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = trace(1, 20)
    put(tmp_path / "events", table)
    events, rules = reading(spark, tmp_path / "events", table.schema), uc.rules(TWO)
    plain = events.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "plain"))
    plain.trigger(availableNow=True).start().awaitTermination()
    (tmp_path / "notes").touch()
    for place, said in (
        ("events", "events' is no checkpoint of a streaming query: name the folder of checkpointLocation"),
        ("notes", "notes' is no checkpoint"),
        ("plain", "plain' has the state of 0 streams of rules"),
    ):
        with pytest.raises(uc.OptionError, match=said):
            match(events, rules, largest_interval=LARGEST, checkpoint=tmp_path / place)
    (tmp_path / "empty").mkdir()
    for place in ("empty", "missing"):
        match(events, rules, largest_interval=LARGEST, checkpoint=tmp_path / place)


def test_other_rules_go_on_from_a_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    """As two runs cut at a tick. Where a kill kept a written batch uncommitted, match is called again.

    Spark does not compute such a batch again, so its state is not that which match has read.
    """
    queries = {
        "kept": "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 6",
        "gone": "PATTERN SEQ(A a, C c) WHERE [key] WITHIN 6",
        "other": "PATTERN SEQ(A a, !B b) WHERE [key] AND a.value > 3 WITHIN 9",
    }
    before = uc.rules(queries)
    new = {
        "new": "PATTERN SEQ(C c, D d) WHERE [key] WITHIN 9 RETURN PROBABILITY BY key EVERY 20",
        "other": queries["other"].replace("3", "5"),
    }
    after = uc.rules({**new, "kept": queries["kept"]})
    table = trace(1, 400)
    pieces = pieces_of(table, [80, 160, 280])
    place, checkpoint = tmp_path / "run", tmp_path / "run" / "checkpoint"

    def go_on(rules: Rules, *files: pa.Table) -> tuple[pa.Table, Any]:
        put(tmp_path / "events", *files)
        # Dropping copies has state beside that of rules.
        frame = reading(spark, tmp_path / "events", table.schema, files=2).dropDuplicates(["id"])
        alerts = match(frame, rules, largest_interval=LARGEST, checkpoint=checkpoint.as_uri())
        rows, done = run(alerts, place)
        return rows, done[-1]["observedMetrics"]["uncertain_cep"]

    go_on(before, pieces[0])
    go_on(before, pieces[1])
    for file in checkpoint.glob("commits/*1*"):
        file.unlink()
    with pytest.raises(uc.OptionError, match="has gone on since match"):
        go_on(after, pieces[2])
    _, counts = go_on(after)
    tick = counts["changed_at"]
    newest = max(table.column("lower").slice(0, 280).to_pylist())
    assert tick == newest + 2 * LARGEST + 1 + 8
    assert {*counts["rules"]} == {"new", "other", "kept", "gone"}
    rows, counts = go_on(after, *pieces[3:])
    assert (counts["changed_at"], counts["state_rows"]) == (tick, 0)
    alerts = rows.filter(pa.compute.equal(rows.column("kind"), "match"))
    alerts = alerts.drop_columns(["kind", "late_type", "late_id"])
    assert in_order(alerts.to_pylist()) == in_order(expected_of(before, [(tick, after)], table))
