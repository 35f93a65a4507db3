"""Sessions: one that is there is joined, Connect servers and spark-submit are joined too."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from uncertain_cep.spark import get_session

ROOT = Path(__file__).resolve().parents[2]


def run_script(text: str, folder: Path, command: list[str]) -> str:
    """Run a script in a process of its own and return what it prints."""
    script = folder / "script.py"
    script.write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable,
                   "PYSPARK_DRIVER_PYTHON": sys.executable}  # fmt: skip
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE"):
        environment.pop(name, None)
    answer = subprocess.run(
        [*command, str(script)], capture_output=True, text=True, env=environment, cwd=folder, timeout=400
    )
    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr[-6000:]
    return answer.stdout


def test_the_active_session_is_reused(spark: SparkSession) -> None:
    assert get_session("local[1]") is spark


def test_settings(spark: SparkSession) -> None:
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.driver.memory") == "1g"
    assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "131072"
    assert "log4j2" in str(spark.conf.get("spark.driver.extraJavaOptions"))


def test_importing_the_package_does_not_import_spark() -> None:
    program = "import sys, uncertain_cep.spark; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0
    with pytest.raises(ImportError):
        exec("from uncertain_cep.spark import nothing_of_this_name")


SUBMITTED = """
import pyarrow as pa
import pyspark.sql
from uncertain_cep.spark import get_session, match
spark = get_session("local[7]")
print(spark.conf.get("spark.master"))
rows = [("A", 1, 0, 3), ("B", 2, 2, 5)]
events = spark.createDataFrame(rows, "type string, id long, lower long, upper long")
print(match(events, "PATTERN SEQ(A a, B b) WITHIN 100").select("a", "b", "confidence").collect())
spark.stop()
"""


def test_spark_submit_decides_on_the_master(tmp_path: Path) -> None:
    submit = Path(importlib.util.find_spec("pyspark").origin or "").parent / "bin" / "spark-submit"  # type: ignore[union-attr]
    options = ["--master", "local[1]", "--conf", "spark.ui.enabled=false", "--conf", "spark.driver.memory=1g"]
    printed = run_script(SUBMITTED, tmp_path, [str(submit), *options])
    assert "local[1]" in printed
    assert "[Row(a=1, b=2, confidence=0.8125)]" in printed


CONNECTED = """
import warnings
warnings.simplefilter("ignore")
from pathlib import Path
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote
from uncertain_cep.spark.java import ensure_java
ensure_java()
spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
assert is_remote()
import uncertain_cep as uc
from tests.spark.traces import KEYED, UNKEYED, as_rows, assert_same, random_trace
from uncertain_cep.errors import TraceError
from uncertain_cep.spark import (
    get_session, match, match_to_parquet, read_traces, to_intervals, worker_errors, write_matches
)
from uncertain_cep.traces import plus_minus
assert get_session() is spark
table = random_trace(1, 200, keys=4).drop_columns("not used")
frame = spark.createDataFrame(table)
assert_same(frame, table, KEYED, 5, partitions=3, slice_length=10)
assert_same(frame, table, UNKEYED, 5, partitions=2, slice_length=None)
assert_same(frame, table, KEYED + " ORDER BY CONFIDENCE DESC LIMIT 3", 3)
folder = Path("out").absolute()
assert match_to_parquet(frame, KEYED, folder / "workers") == uc.match(table, KEYED).num_rows
write_matches(match(frame, KEYED), folder / "spark")
written = spark.read.parquet(f"{folder}/spark").toArrow()
assert as_rows(written) == as_rows(uc.match(table, KEYED))
raw = spark.createDataFrame([("A", 1, 10), ("B", 2, 13)], "type string, id long, at long")
events = to_intervals(raw, time="at", uncertainty=plus_minus("1s"), unit="s", tick="100ms")
assert match(events, "PATTERN SEQ(A a, B b) WITHIN 30").count() == 1
import pyarrow.csv
pyarrow.csv.write_csv(table, "events.csv")
assert read_traces(spark, "events.csv").count() == 200
rows = [("A", 7, 1, 1), ("B", 7, 2, 2)]
twice = spark.createDataFrame(rows, "type string, id long, lower long, upper long")
try:
    with worker_errors():
        match(twice, "PATTERN SEQ(A a, B b) WITHIN 30").collect()
except TraceError as error:
    assert "value 7" in str(error) and "Traceback" not in str(error), error
else:
    raise AssertionError("an id used twice was not found")
print("all well")
spark.stop()
"""


def test_spark_connect(tmp_path: Path) -> None:
    if importlib.util.find_spec("grpc") is None and os.environ.get("CI") != "true":
        pytest.skip("Spark Connect needs pyspark[connect]")
    assert "all well" in run_script(CONNECTED, tmp_path, [sys.executable])
