"""Sessions: one that is there is joined, Connect servers and spark-submit are joined too."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.needs import lacking
from tests.spark.traces import NOT_GENERATED, PATIENT
from uncertain_cep.spark import get_session
from uncertain_cep.spark.shims import python_of_workers

ROOT = Path(__file__).resolve().parents[2]


def run_script(text: str, folder: Path, command: list[str], *arguments: str) -> str:
    """Run a script in a process of its own and return what it prints."""
    script = folder / "script.py"
    script.write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": python_of_workers(),
                   "PYSPARK_DRIVER_PYTHON": python_of_workers()}  # fmt: skip
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE"):
        environment.pop(name, None)
    answer = subprocess.run(
        [*command, str(script), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        timeout=1800,
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


@pytest.mark.skipif(os.name == "nt", reason="there are no sessions of processes")
def test_signals_for_this_process_and_its_group_are_not_for_java(spark: SparkSession) -> None:
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    assert os.getsid(gateway.proc.pid) == gateway.proc.pid != os.getsid(0)


def test_importing_the_package_does_not_import_spark() -> None:
    program = "import sys, uncertain_cep.spark; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0
    with pytest.raises(ImportError):
        exec("from uncertain_cep.spark import nothing_of_this_name")


def where_pyspark_is(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyspark

    for _ in batches:
        yield pa.RecordBatch.from_pylist([{"file": pyspark.__file__}])


def test_workers_have_pyspark_compiled(spark: SparkSession) -> None:
    (row,) = spark.range(0, 1, 1, 1).mapInArrow(where_pyspark_is, "file string").collect()
    assert Path(row["file"]).is_file()
    places = ["/spark/python/lib/pyspark.zip", "/spark/python/lib/py4j-0.1-src.zip", "/a b", "/c*"]
    said = subprocess.run(
        [python_of_workers(), "-c", "import os, sys; print(os.environ['PYTHONPATH'], sys.argv[1])", "d  e"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said == "/a b:/c* d  e\n"


def test_only_the_steps_of_state_are_not_printed(tmp_path: Path) -> None:
    module = "pyspark.sql.streaming.transform_with_state_driver_worker"
    worker = importlib.util.find_spec(module)
    assert worker is not None
    assert "print(" in Path(worker.origin or "").read_text(encoding="utf-8")
    package = tmp_path / Path(*module.split(".")[:-1])
    package.mkdir(parents=True)
    said = "import sys; print('a step'); print('a fault', file=sys.stderr)"
    for name in ("transform_with_state_driver_worker", "python_streaming_source_runner"):
        (package / f"{name}.py").write_text(said)
    for place in (package, *package.parents[:2]):
        (place / "__init__.py").touch()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    printed = [
        subprocess.run([python_of_workers(), "-m", f"{module.rpartition('.')[0]}.{name}"],
                       env=environment, capture_output=True, text=True, check=True)
        for name in ("transform_with_state_driver_worker", "python_streaming_source_runner")
    ]  # fmt: skip
    assert [one.stdout for one in printed] == ["", "a step\n"]
    assert all(one.stderr.endswith("a fault\n") for one in printed)


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


class Recorded:
    """Stands in for the builder of sessions; a session is what it was told."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def appName(self, name: str) -> Recorded:  # noqa: N802
        return self.config("spark.app.name", name)

    def master(self, name: str) -> Recorded:
        return self.config("spark.master", name)

    def config(self, name: str, value: str) -> Recorded:
        self._told[name] = value
        return self

    def getOrCreate(self) -> dict[str, str]:  # noqa: N802
        return self._told


@pytest.mark.parametrize("submitted", [False, True])
def test_the_master_is_left_to_spark_submit(monkeypatch: pytest.MonkeyPatch, submitted: bool) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession, "builder", Recorded())
    monkeypatch.setattr("uncertain_cep.spark.session._start_java", lambda *_: None)
    # Both are set by what is called.
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("SPARK_LOCAL_IP", "")
    monkeypatch.delenv("SPARK_LOCAL_IP")
    if submitted:
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    else:
        monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    session: Any = get_session("local[1]")
    assert session["spark.app.name"] == "uncertain-cep"
    assert session.get("spark.master") == (None if submitted else "local[1,2]")
    assert ("spark.driver.memory" in session) != submitted
    assert os.environ["PYSPARK_PYTHON"] == ("" if submitted else python_of_workers())
    # Java need not look up the name of the machine, which nothing may know.
    assert os.environ.get("SPARK_LOCAL_IP") == (None if submitted else "127.0.0.1")


@pytest.mark.thorough
def test_spark_submit_decides_on_the_master(tmp_path: Path) -> None:
    submit = Path(importlib.util.find_spec("pyspark").origin or "").parent / "bin" / "spark-submit"  # type: ignore[union-attr]
    settings = NOT_GENERATED | PATIENT | {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
    options = ["--master", "local[1]", "--driver-memory", "1g"]
    options += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    printed = run_script(SUBMITTED, tmp_path, [str(submit), *options])
    assert "local[1]" in printed
    assert "[Row(a=1, b=2, confidence=0.8125)]" in printed


CONNECTED = """
import warnings
warnings.simplefilter("ignore")
import sys
from pathlib import Path
import uncertain_cep as uc
from uncertain_cep.errors import TraceError
from uncertain_cep.spark import get_session
from uncertain_cep.spark.shims import python_of_workers
spark = get_session(sys.argv[1])
from pyspark.sql.utils import is_remote
assert is_remote()
assert get_session() is spark
from tests.spark.traces import KEYED, UNKEYED, as_rows, assert_same, random_trace
from uncertain_cep.spark import (
    match, match_to_parquet, read_traces, to_intervals, worker_errors, write_matches
)
from uncertain_cep.traces import plus_minus
table = random_trace(1, 200, keys=4).drop_columns("not used")
frame = spark.createDataFrame(table)
assert_same(frame, table, KEYED, 5, partitions=3, slice_length=10)
rows = [("A", 7, 1, 1), ("B", 7, 2, 2)]
twice = spark.createDataFrame(rows, "type string, id long, lower long, upper long")
try:
    with worker_errors():
        match(twice, "PATTERN SEQ(A a, B b) WITHIN 30").collect()
except TraceError as error:
    assert "value 7" in str(error) and "Traceback" not in str(error), error
else:
    raise AssertionError("an id used twice was not found")
"""

MORE_CONNECTED = """
assert_same(frame, table, UNKEYED, 5, partitions=2, slice_length=None)
assert_same(frame, table, KEYED + " ORDER BY CONFIDENCE DESC LIMIT 3", 3)
folder = Path("out").absolute()
assert match_to_parquet(frame, KEYED, folder / "workers") == uc.match(table, KEYED).num_rows
write_matches(match(frame, KEYED), folder / "spark")
written = spark.read.parquet(f"{folder}/spark").toArrow()
assert as_rows(written) == as_rows(uc.match(table, KEYED))
late = "PATTERN SEQ(A a, B b, !D n) WHERE [key] WITHIN 9"
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    uc.match(table, late, known_until=30)
    with worker_errors():
        match(frame, late, known_until=30).count()
    match_to_parquet(frame, late, folder / "known", known_until=30)
in_process, of_frame, written = (str(one.message) for one in said)
assert written == in_process and "left out as undecided" in written
assert of_frame.endswith("; with Spark Connect such matches of a frame are not counted")
raw = spark.createDataFrame([("A", 1, 10), ("B", 2, 13)], "type string, id long, at long")
events = to_intervals(raw, time="at", uncertainty=plus_minus("1s"), unit="s", tick="100ms")
assert match(events, "PATTERN SEQ(A a, B b) WITHIN 30").count() == 1
import pyarrow.csv
pyarrow.csv.write_csv(table, "events.csv")
assert read_traces(spark, "events.csv").count() == 200
from tests.spark.streams import counted, pieces_of, put, reading, run
table = table.sort_by("lower")
put(folder.parent / "stream", *pieces_of(table, [120]))
longest = max(b - a for a, b in zip(table["lower"].to_pylist(), table["upper"].to_pylist()))
stream = match(reading(spark, folder.parent / "stream", table.schema), KEYED, largest_interval=longest)
rows, done = run(stream, folder.parent)
assert counted(done)["events"] == 200 and counted(done)["late"] == 0
expected = uc.match(table, KEYED)
assert as_rows(rows.select(expected.column_names)) == as_rows(expected)
"""

END_CONNECTED = """
print("all well")
spark.stop()
"""


@pytest.fixture
def server(spark: SparkSession) -> Iterator[str]:
    """The address of a server of Spark Connect beside the session of all tests."""
    if importlib.util.find_spec("grpc") is None:
        lacking("packages", "Spark Connect needs pyspark[connect]")
    java: Any = spark._jvm
    context = spark.sparkContext._jsc.sc()
    # The service says its port to nobody.
    process = java.java.lang.ProcessHandle.current().pid()
    before = listening(process)
    context.conf().set("spark.connect.grpc.binding.port", "0")
    plugin = java.org.apache.spark.sql.connect.SparkConnectPlugin().driverPlugin()
    plugin.init(context, None)
    (port,) = listening(process) - before
    yield f"sc://127.0.0.1:{port}"
    plugin.shutdown()


def listening(process: int) -> set[int]:
    """Return the ports at which a process waits for others."""
    sockets = set()
    for file in Path(f"/proc/{process}/fd").iterdir():
        # Files are closed all the time.
        with suppress(FileNotFoundError):
            sockets.add(os.readlink(file).removeprefix("socket:[").rstrip("]"))
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            _, here, _, state, _, _, _, _, _, inode, *_ = line.split()
            if state == "0A" and inode in sockets:
                ports.add(int(here.rpartition(":")[2], 16))
    return ports


@pytest.mark.parametrize(
    "more", ["", pytest.param(MORE_CONNECTED, marks=pytest.mark.thorough)], ids=["some", "all"]
)
def test_spark_connect(server: str, tmp_path: Path, more: str) -> None:
    script = CONNECTED + more + END_CONNECTED
    assert "all well" in run_script(script, tmp_path, [sys.executable], server)
