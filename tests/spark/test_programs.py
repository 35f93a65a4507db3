"""Programs of calls of the functions for Spark: each ends with a result or an error of ours."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.fuzz import test_public_calls as anywhere
from tests.fuzz.fuzzing import Fuzzer
from tests.fuzz.public_calls import Calls, Made, calls_of
from uncertain_cep import spark as on_spark

FUNCTIONS: Final = {
    name: getattr(on_spark, name) for name in on_spark.__all__ if name not in ("get_session", "worker_errors")
}
STRANGE: Final[tuple[Any, ...]] = (None, True, -1, 2**80, "", "xy://z", "\ud800", (), [], {}, object)
"""No text of them is the name of a folder: what programs write stays in theirs."""


@contextmanager
def programs(spark: SparkSession) -> Iterator[Fuzzer[Calls]]:
    """Yield a fuzzer whose programs read and write in a folder of their own."""
    with tempfile.TemporaryDirectory() as folder:

        def frame(name: str, table: pa.Table) -> Made:
            return Made(name, lambda: spark.createDataFrame(table))

        events = frame("EVENTS", anywhere.EVENTS)
        frames = (events, events, frame("STAMPS", anywhere.STAMPS), frame("EVENTS[:0]", anywhere.EVENTS[:0]))
        values: dict[str, tuple[Any, ...]] = {
            **anywhere.VALUES,
            **dict.fromkeys(("frame", "matches"), frames),
            "spark": (Made("spark", lambda: spark),),
            "folder": (f"{folder}/a", Path(folder, "b"), f"file://{folder}/c", "nowhere://x/y"),
            **dict.fromkeys(("partitions", "buckets", "files_per_batch"), (None, 1, 3, 0)),
            **dict.fromkeys(("prune", "overwrite"), (None, True, False)),
            "diagnostics": (None,),
        }

        def used(result: object) -> None:
            if not isinstance(result, DataFrame):
                return
            with on_spark.worker_errors():
                if result.isStreaming:
                    stream = result.writeStream.format("noop").trigger(availableNow=True).start()
                    stream.awaitTermination()
                else:
                    result.toArrow()

        yield calls_of(FUNCTIONS, values, STRANGE, used)


def test_a_sample_of_programs(spark: SparkSession) -> None:
    with programs(spark) as calls:
        calls.run(4, seed=1)


@pytest.mark.thorough
def test_programs(spark: SparkSession) -> None:
    with programs(spark) as calls:
        calls.run(300)
