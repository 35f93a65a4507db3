"""The command writes every match of a stream once, whatever is killed, and ends in order when told to."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from tests.conftest import ROOT
from tests.rule_sets.test_changing_rules import expected_of, in_order
from tests.spark import killed_rules, test_streams
from tests.spark.killed_streams import QUERIES, command, commits, run, started, trace, victims, written
from tests.spark.streams import TOO_BUSY, pieces_of, put
from uncertain_cep.cli import main
from uncertain_cep.rule_sets.rule_changes import text_of


@pytest.mark.parametrize(
    "kills",
    [["driver", "end"], pytest.param(["worker", "driver", "end"], marks=pytest.mark.thorough)],
    ids=["some", "all"],
)
def test_whatever_dies_every_match_is_there_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: list[str]
) -> None:
    """Processes are killed, then the command is ended; it goes on in this process."""
    monkeypatch.setattr(spark, "stop", lambda: None)
    runner = CliRunner()

    def close(arguments: Sequence[str], _: Path) -> None:
        result = runner.invoke(main, list(arguments))
        while TOO_BUSY in result.output:
            result = runner.invoke(main, list(arguments))
        assert result.exit_code == 0, result.output
        assert result.output.endswith("the stream is closed\n")

    pieces = len(kills) + 1
    outcome = run(tmp_path, QUERIES["next"], trace(300 * pieces, 1), pieces, kills, 1, "local[1]", close)
    assert outcome["starts"] >= 3
    # The batch that closes the stream comes by itself.
    assert outcome["batches"] == pieces + 1
    # A killed command may not have told of its batches; the one that is ended has told of one.
    said = "".join(log.read_text() for log in tmp_path.glob("log*"))
    assert re.search(
        r"batch \d: 300 events, .*, 0 late; state .*; final up to 7 ticks behind the newest", said
    )
    assert not list(tmp_path.glob(".out*"))
    other = runner.invoke(main, command(tmp_path, QUERIES["plain"], "--once"))
    assert other.exit_code == 2
    assert "the checkpoint is of another stream: query was " in other.output


def test_a_run_that_ends_tells_what_nothing_to_come_can_change(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No event before 17 is to come: one between 15 and 18 can spoil what ends at 18."""
    monkeypatch.setattr(spark, "stop", lambda: None)
    rows = zip("ABABC", (1, 5, 15, 18, 20), strict=True)
    table = pa.Table.from_pylist(
        [{"type": of_type, "id": tick, "lower": tick, "upper": tick} for of_type, tick in rows]
    )
    put(tmp_path / "events", table)

    def told(option: str) -> tuple[list[int], str]:
        arguments = command(tmp_path, "PATTERN SEQ(A a, !N n, B b) WITHIN 100", option)
        arguments[arguments.index("--largest-interval") + 1] = "3"
        result = CliRunner().invoke(main, arguments)
        while TOO_BUSY in result.output:
            result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
        out = written(tmp_path / "out")
        return ([] if out is None else sorted(out.column("a").to_pylist())), result.output

    matches, said = told("--once")
    assert matches == [1]
    assert "2 matches are undecided, as an event from 17 on can spoil them" in said
    assert told("--close")[0] == [1, 1, 15]


@pytest.mark.thorough
def test_thirty_kills(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.killed_streams", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * 3600,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]
    assert len(done.stdout.splitlines()) == len(QUERIES)


@pytest.mark.thorough
def test_killed_executors_of_a_cluster(tmp_path: Path) -> None:
    outcome = run(
        tmp_path, QUERIES["sets"], trace(4000, 3), 8, ["executor", "executor"], 3, "local-cluster[2,1,1024]"
    )
    assert outcome["kills"] == ["executor", "executor"]


@pytest.mark.thorough
def test_rules_that_change_behind_25_kills(spark: SparkSession, tmp_path: Path) -> None:
    draw, kills = random.Random(5), 25
    table = test_streams.trace(5, 3000)
    *pieces, end = pieces_of(table, range(30, 3000, 30))
    log, killed, name = tmp_path / "log", 0, "first"
    while killed < kills:
        put(tmp_path / "events", *pieces[:3])
        del pieces[:3]
        before = commits(tmp_path)
        running = started([str(tmp_path), name], log, "tests.spark.killed_rules")
        while running.poll() is None and commits(tmp_path) < before + draw.randrange(1, 3):
            time.sleep(0.01)
        time.sleep(draw.uniform(0, 1.5))
        # What outlives the death of its JVM or of a worker is killed, too.
        for kind in (draw.choice(["JVM", "worker", "driver"]), "driver"):
            with suppress(IndexError, ProcessLookupError):
                os.kill(draw.choice(victims(running.pid, kind)), signal.SIGKILL)
            time.sleep(draw.uniform(0, 1))
        killed += running.wait() == -signal.SIGKILL
        name = draw.choice([other for other in killed_rules.NAMES if other != name])
    put(tmp_path / "events", *pieces, end)
    killed_rules.go_on(spark, tmp_path, name)
    assert check_told_rules(spark, tmp_path, table) > kills / 2


def check_told_rules(spark: SparkSession, folder: Path, table: pa.Table) -> int:
    """Check that the alerts are those of runs cut at the ticks of all changes; return how many changes."""
    changes = killed_rules.changes_in(spark, folder)
    assert list(changes) == [*range(len(changes))]
    rules = {
        json.dumps({rule.name: text_of(rule) for rule in of_name}, sort_keys=True): of_name
        for of_name in map(killed_rules.rules_of, killed_rules.NAMES)
    }
    runs = [(tick, rules[json.dumps(about, sort_keys=True)]) for tick, about in changes.values()]
    # Spark leaves out the files of batches that were not committed.
    output = spark.read.option("mergeSchema", "true").parquet(str(folder / "out")).toArrow()
    assert set(output.column("kind").to_pylist()) == {"match"}
    alerts = output.drop_columns(["kind", "late_type", "late_id"]).to_pylist()
    assert in_order(alerts) == in_order(expected_of(runs[0][1], runs[1:], table))
    return len(changes) - 1
