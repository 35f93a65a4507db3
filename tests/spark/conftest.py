"""One small Spark session for all tests of this folder, which ends with them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.traces import FEW_PROGRAMS, FORKED, NOT_GENERATED, PATIENT, UNTRACED
from uncertain_cep.spark import get_session
from uncertain_cep.spark.remark_counts import say_remarks


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with two cores, which leaves nothing in the work tree."""
    before = dict(os.environ)
    session = get_session(
        "local[2]",
        "uncertain-cep tests",
        {
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.sql.session.timeZone": "America/New_York",
            "spark.driver.memory": "1g",
            **FEW_PROGRAMS,
            **NOT_GENERATED,
            **PATIENT,
            **UNTRACED,
            **FORKED,
        },
    )
    java: Any = session
    files = java._jvm.org.apache.hadoop.fs.FileSystem.getLocal(java._jsc.hadoopConfiguration())
    # Else Java starts another program for each of them.
    files.setWriteChecksum(False)
    yield session
    session.stop()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(autouse=True)
def _remarks_are_said_in_their_test() -> Iterator[None]:
    """Leave no remark about the stamps of a frame that a test used by itself to the calls of the next one."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        say_remarks()
