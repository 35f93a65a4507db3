"""The examples that the page about Spark gives run, one behind the other."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.project.test_readme import DOCS, blocks


def test_the_examples_for_spark_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.csv").write_text("when,kind\n1,A\n3,B\n")
    (tmp_path / "schema.toml").write_text(
        '[[events]]\ntype_column = "kind"\ntime = "when"\nuncertainty = { kind = "plus_minus", by = 1 }\n'
    )
    names: dict[str, object] = {"query": "PATTERN SEQ(A a, B b) WITHIN 5"}
    # Spark has another working directory.
    exec(
        "\n".join(blocks("python", DOCS["spark.md"])).replace('"matches"', f'"{tmp_path / "matches"}"'), names
    )
    assert names["spark"] is spark
    assert names["count"] == 1
    assert "on Spark      workers read the files: 1 part in 1 task" in capsys.readouterr().out
    (row,) = pq.read_table(tmp_path / "matches").to_pylist()
    assert row["confidence"] == pytest.approx(8 / 9)
