"""On a cluster with speculation, an executor of which is killed, every match is there once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.mark.thorough
def test_matches_are_complete_and_there_once(tmp_path: Path) -> None:
    gateway = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE")
    environment = {name: value for name, value in os.environ.items() if name not in gateway}
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.killed_executors", str(tmp_path)],
        cwd=ROOT,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]
    assert len(done.stdout.splitlines()) == 4
