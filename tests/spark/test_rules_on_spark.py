"""Rules on Spark tell the alerts that they tell in this process."""

from __future__ import annotations

import warnings
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
from tests.rule_sets.test_rule_streams import STREAMED, SUPPRESSIBLE
from tests.rule_sets.test_rules_together import comparable, traces
from tests.spark.traces import to_spark
from uncertain_cep.cli import main
from uncertain_cep.rule_sets.named_rules import Rules, suppression_of
from uncertain_cep.spark import worker_errors


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
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == ["rule 'x'", "rule 'z'"]
    wrong: list[dict[str, Any]] = [{"known_until": 5}, {"threads": 2}, {"parameters": {"x": 1}}]
    for options in wrong:
        with pytest.raises(uc.OptionError):
            uc.match(frame, rules[1:2], **options)
    stream = spark.readStream.format("rate").load()
    with pytest.raises(uc.OptionError, match="rules are not asked of streaming frames yet"):
        uc.match(stream, rules[1:2])
    twice = to_spark(spark, pa.table({"type": ["A"] * 2, "id": [1, 1], "lower": [0, 900], "upper": [0, 900]}))
    with (
        pytest.warns(uc.UncertainCepWarning, match="no event has"),
        pytest.raises(uc.TraceError),
        worker_errors(),
    ):
        uc.match(twice, rules[1:2]).toArrow()


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
