"""A streaming frame has the matches of a table, each once; late events come out; nothing is dropped."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import uncertain_cep as uc
from tests.conftest import ROOT
from tests.spark import old_checkpoint
from tests.spark.killed_streams import written
from tests.spark.streams import counted, ended, patiently, pieces_of, put, reading, run
from tests.spark.traces import as_rows
from tests.streaming.batches import notice
from uncertain_cep.errors import OptionError, RuntimeEnvironmentError, TraceError
from uncertain_cep.spark import match
from uncertain_cep.spark.session import STATE_PROVIDER
from uncertain_cep.streaming.stream_layout import HEARTBEAT

QUERIES = {
    "plain": "PATTERN SEQ(A a, B b) WHERE [key] AND a.value % 3 != 1 WITHIN 12",
    "next": "PATTERN SEQ(A a, B b, (A|C) c) WHERE skip_till_next_match(a, b, c) AND [key] WITHIN 12",
    "negation": "PATTERN SEQ(!D d, A a, !B b, C c) WHERE [key] WITHIN 9",
    "Kleene": "PATTERN SEQ(A a, B+ b[], C c) WHERE [key] AND b[i].value > 2 WITHIN 6",
    "negated group": "PATTERN SEQ(A a, !SEQ(B n, D m), C c) WHERE [key] WITHIN 9",
    "sets": "PATTERN OR(SEQ(AND(A a, B b), C c), SEQ(!B n, D d, A+ e[], C g)) WHERE [key] AND c.value < 4 "
    "WITHIN 7",
    "contiguity": "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) AND [key] WITHIN 9 RETURN a.name",
    "no key": "PATTERN SEQ(A a, C c) WHERE a.value > 7 AND c.value > 6 WITHIN 5 HAVING CONFIDENCE >= 0.3",
    "counts": "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 9 RETURN EXPECTED COUNT BY key EVERY 20",
    "groups": "PATTERN SEQ(A a, !D d, B b) WHERE [key] WITHIN 9 RETURN PROBABILITY BY key EVERY 20",
    "first events": "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 9 RETURN PROBABILITY BY a",
}
LARGEST = 7


def trace(seed: int, count: int) -> pa.Table:
    """Return events in an order of arrival within the promise, with nulls among the attributes."""
    draw = np.random.default_rng(seed)
    moment = np.sort(draw.integers(0, count // 2, count)) - 40
    before = draw.integers(0, 4, count)
    after = draw.integers(0, LARGEST - 3, count)
    return pa.table(
        {
            "type": draw.choice(["A", "B", "C", "D"], count).tolist(),
            "id": draw.permutation(count),
            "lower": moment - before,
            "upper": moment + after,
            "value": pa.array(draw.integers(-3, 12, count), pa.int32()),
            "name": draw.choice(["x", "é"], count).tolist(),
            "key": pa.array(draw.integers(0, 5, count), mask=draw.random(count) < 0.05),
        }
    )


def found_of(spark: SparkSession, folder: Path, table: pa.Table, names: list[str]) -> dict[str, pa.Table]:
    """Return the answers of streams of a folder, by query."""
    answers = {}
    for number, name in enumerate(names):
        text = QUERIES[name]
        frame = reading(spark, folder, table.schema)
        matches = match(
            frame, text, largest_interval=LARGEST, slice_length=(None, 30, 100)[number % 3], buckets=2
        )
        rows, done = run(matches, folder.parent / f"run {number}")
        assert counted(done)["events"] == table.num_rows
        dropped = [state["numRowsDroppedByWatermark"] for batch in done for state in batch["stateOperators"]]
        assert not any(dropped)
        assert done[-1]["observedMetrics"]["uncertain_cep"]["state_rows"] == 0
        answers[name] = rows
    return answers


@pytest.mark.parametrize(
    "names",
    [["negated group", "counts"], pytest.param([*QUERIES], marks=pytest.mark.thorough)],
    ids=["some", "every construct"],
)
def test_any_construct(spark: SparkSession, tmp_path: Path, names: list[str]) -> None:
    table = trace(1, 400)
    folder = tmp_path / "events"
    first, *later_pieces = pieces_of(table, [150, 157])
    middle = notice(table.schema, f"{HEARTBEAT}:B", -40)
    put(folder, pa.concat_tables([first, middle]), *later_pieces)
    for name, rows in found_of(spark, folder, table, names).items():
        expected = uc.match(table, QUERIES[name])
        assert expected.num_rows > 5, name
        assert set(rows.column("kind").to_pylist()) == {"match"}, name
        # Counts and probabilities are sums: rounded, as confidences are.
        sums = {"expected_count": "confidence", "probability": "confidence"}
        named = [sums.get(column, column) for column in expected.column_names]
        matches = rows.select(expected.column_names).rename_columns(named)
        assert as_rows(matches) == as_rows(expected.rename_columns(named)), name


def test_late_events_come_out_and_the_others_are_matched(spark: SparkSession, tmp_path: Path) -> None:
    table = trace(2, 200)
    behind = table.slice(20, 3)
    long = table.slice(190, 1).set_column(
        3, "upper", pc.add(table.slice(190, 1).column("lower"), pa.scalar(LARGEST + 1))
    )
    start = pa.concat_tables([table.slice(0, 20), table.slice(23, 120)])
    later_events = pa.concat_tables([behind, table.slice(143, 47), long, table.slice(191)])
    put(tmp_path / "events", start, *pieces_of(later_events, []))
    matches = match(
        reading(spark, tmp_path / "events", table.schema), QUERIES["plain"], largest_interval=LARGEST
    )
    rows, done = run(matches, tmp_path)
    late = pa.concat_tables([behind, long])
    assert counted(done)["late"] == 4
    late_rows = rows.filter(pc.equal(rows.column("kind"), "late"))
    expected = late.select(["lower", "upper", "type", "id"]).rename_columns(
        ["range_lower", "range_upper", "late_type", "late_id"]
    )
    assert as_rows(late_rows.select(expected.column_names)) == as_rows(expected)
    assert all(late_rows.column(name).null_count == 4 for name in ("a", "b", "confidence"))
    on_time = table.filter(pc.invert(pc.is_in(table.column("id"), late.column("id"))))
    expected_matches = uc.match(on_time, QUERIES["plain"])
    matched_rows = rows.filter(pc.equal(rows.column("kind"), "match")).select(expected_matches.column_names)
    assert as_rows(matched_rows) == as_rows(expected_matches)


def test_a_stream_goes_on_where_it_stopped(spark: SparkSession, tmp_path: Path) -> None:
    table = trace(3, 200)
    folder = tmp_path / "events"
    first, second, end = pieces_of(table, [110])
    put(folder, first)
    with pytest.warns(uc.UncertainCepWarning, match="give it to uncertain_cep.spark.match"):
        matches = uc.match(reading(spark, folder, table.schema), QUERIES["plain"], largest_interval=LARGEST)
    before, _ = run(matches, tmp_path)
    put(folder, second)
    other = QUERIES["plain"].replace("WITHIN 12", "WITHIN 13")
    changed = match(reading(spark, folder, table.schema), other, largest_interval=LARGEST)
    with pytest.raises(
        OptionError, match=r"is of another stream: query was .*WITHIN 12' and is .*WITHIN 13'"
    ):
        run(changed, tmp_path)
    put(folder, end)
    rows, _ = run(matches, tmp_path)
    expected = uc.match(table, QUERIES["plain"])
    assert 0 < before.num_rows < rows.num_rows
    assert as_rows(rows.select(expected.column_names)) == as_rows(expected)


def test_an_event_at_fault_ends_the_stream(spark: SparkSession, tmp_path: Path) -> None:
    table = trace(4, 20)
    wrong = table.slice(3, 1).set_column(3, "upper", pa.array([-999]))
    put(tmp_path / "events", wrong)
    matches = match(
        reading(spark, tmp_path / "events", table.schema), QUERIES["plain"], largest_interval=LARGEST
    )
    with pytest.raises(TraceError, match="the interval ends before it begins"):
        run(matches, tmp_path)


def test_what_does_not_go_together(spark: SparkSession, tmp_path: Path) -> None:
    table = trace(5, 20)
    (tmp_path / "events").mkdir()
    frame = reading(spark, tmp_path / "events", table.schema)
    with pytest.raises(OptionError, match="a stream needs largest_interval="):
        uc.match(frame, QUERIES["plain"])
    with pytest.raises(OptionError, match="partitions= and prune= are for tables"):
        match(frame, QUERIES["plain"], largest_interval=3, partitions=2)
    still = spark.createDataFrame(table)
    with pytest.raises(OptionError, match="this frame is none"):
        uc.match(still, QUERIES["plain"], largest_interval=3)
    with pytest.raises(OptionError, match="streaming frames of Spark"):
        uc.match(table, QUERIES["plain"], idle_after="3 s")
    provider = spark.conf.get(STATE_PROVIDER)
    spark.conf.set(STATE_PROVIDER, "org.example.Provider")
    try:
        with pytest.raises(RuntimeEnvironmentError, match=r'spark\.conf\.set\("spark\.sql\.streaming\.state'):
            uc.match(frame, QUERIES["plain"], largest_interval=3)
    finally:
        spark.conf.set(STATE_PROVIDER, provider or "")


def test_progress_says_what_was_counted(spark: SparkSession, tmp_path: Path) -> None:
    table = trace(6, 60)
    twice = pa.concat_tables([table, table.slice(50)])
    put(tmp_path / "events", *pieces_of(twice, [55]))
    frame = reading(spark, tmp_path / "events", table.schema)
    matches, plain_matches = (
        match(frame, QUERIES[name], largest_interval=LARGEST, duplicates="drop", metrics=metrics, buckets=2)
        for name, metrics in (("no key", "uncertain_cep"), ("plain", "others"))
    )
    # Two results in one query.
    columns = [name for name in matches.columns if name in plain_matches.columns]
    _, done = run(matches.select(columns).unionByName(plain_matches.select(columns)), tmp_path)
    first, *_, last = (json.loads(progress.json) for progress in done)
    newest = max(table.slice(0, 55).column("lower").to_pylist())
    assert first["observedMetrics"]["uncertain_cep"]["newest"] == newest
    assert first["observedMetrics"]["uncertain_cep"]["bound"] == newest - LARGEST
    assert last["observedMetrics"]["uncertain_cep"]["state_bytes"] == 0
    assert counted(done)["duplicates"] > 0
    assert counted(done)["matches"] == uc.match(table, QUERIES["no key"]).num_rows
    assert counted(done, "others")["matches"] == uc.match(table, QUERIES["plain"]).num_rows > 0


def test_the_examples_run(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "incoming").mkdir()
    (tmp_path / "incoming" / "first.csv").write_text("when,kind,name\n1,A,1\n13,B,2\n90,C,3\n")
    (tmp_path / "schema.toml").write_text(
        'tick = "1s"\n[[events]]\ntype_column = "kind"\nid = "name"\ntime = "when"\nunit = "tick"\n'
        'uncertainty = { kind = "plus_minus", by = 1 }\n'
    )
    page = (ROOT / "docs" / "streams.md").read_text(encoding="utf-8")
    names: dict[str, object] = {"uc": uc, "query": "PATTERN SEQ(A a, B b) WITHIN 20 s", "spark": spark}
    started, listening = re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    # Spark has another working directory.
    for folder in ("state", "out"):
        started = started.replace(f'"{folder}"', f'"{tmp_path / folder}"')

    def read_all() -> StreamingQuery:
        if not spark.streams.active:
            exec(started, names)
        for query in spark.streams.active:
            query.processAllAvailable()
            return query
        return read_all()

    exec(listening, names)
    watch: Any = names["watch"]
    patiently(read_all)
    (tmp_path / "second.csv").write_text("when,kind,name\n300,D,4\n")
    (tmp_path / "second.csv").rename(tmp_path / "incoming" / "second.csv")
    patiently(read_all).stop()
    spark.streams.removeListener(watch)
    (row,) = spark.read.parquet(str(tmp_path / "out")).collect()
    assert (row["kind"], row["a"], row["b"], row["confidence"]) == ("match", 1, 2, 1.0)


def test_an_old_checkpoint_is_gone_on_from(spark: SparkSession, tmp_path: Path) -> None:
    table = old_checkpoint.events()
    old_checkpoint.copied(tmp_path)
    put(tmp_path / "events", *pieces_of(table.slice(old_checkpoint.CUT), [10]))
    frame = reading(spark, tmp_path / "events", table.schema)
    matches = match(frame, old_checkpoint.QUERY, largest_interval=old_checkpoint.LARGEST, buckets=1)
    ended(matches, tmp_path)
    expected = uc.match(table, old_checkpoint.QUERY)
    # Spark would look for what the batches before have written.
    rows = written(tmp_path / "out")
    assert rows is not None
    assert as_rows(rows.select(expected.column_names)) == as_rows(expected)


def test_an_idle_stream_moves_on(spark: SparkSession, tmp_path: Path) -> None:
    table = trace(7, 100)
    put(tmp_path / "events", table)
    matches = match(
        reading(spark, tmp_path / "events", table.schema),
        QUERIES["no key"],
        largest_interval=LARGEST,
        tick="100ms",
        idle_after="1 s",
    )

    def run_until_nothing_is_held() -> None:
        query = (
            matches.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(processingTime="100 milliseconds")
            .start(str(tmp_path / "out"), format="parquet")
        )
        held = 1
        while held:
            # Raises what has ended it.
            query.awaitTermination(1)
            metrics_of_batches = [
                progress["observedMetrics"].get("uncertain_cep") for progress in query.recentProgress
            ]
            held = next(
                (
                    row["state_rows"]
                    for row in reversed(metrics_of_batches)
                    if row and row["events"] is not None
                ),
                1,
            )
        query.stop()

    patiently(run_until_nothing_is_held)
    expected = uc.match(table, QUERIES["no key"])
    rows = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert as_rows(rows.select(expected.column_names)) == as_rows(expected)
