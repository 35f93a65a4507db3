"""An environment that is sent along with a job is what its executors run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from typing import Final

import pyspark
import pytest

from tests.conftest import ROOT

MASTER: Final = "local-cluster[2,1,1024]"
PACKAGES: Final = ("confidence", "eventbased", "pointbased", "uncertain_cep")
JOB: Final = """
import json
import sys

import pyarrow as pa

import uncertain_cep as uc
from uncertain_cep.spark import get_session


def places(batches):
    import uncertain_cep

    for batch in batches:
        yield pa.RecordBatch.from_pydict({"place": [uncertain_cep.__file__] * batch.num_rows})


spark = get_session(sys.argv[1])
events = spark.createDataFrame(
    [("A", 1, 0, 3, "x"), ("B", 2, 2, 5, "x"), ("A", 3, 4, 4, "y"), ("B", 4, 6, 9, "y")],
    "type string, id long, lower long, upper long, host string",
)
matches = uc.match(events, "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 10").collect()
rows = sorted((row.a, row.b, row.confidence) for row in matches)
print(json.dumps([rows, [row.place for row in events.mapInArrow(places, "place string").collect()]]))
"""


def packed(folder: Path) -> Path:
    """Return an archive of an environment with the project in it; what it needs is that of this machine."""
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "beside.pth").write_text(sysconfig.get_path("purelib"))
    for name in PACKAGES:
        shutil.copytree(ROOT / name, site / name, ignore=shutil.ignore_patterns("__pycache__"))
    archive = folder / "environment.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(environment, ".")
    shutil.rmtree(environment)
    return archive


@pytest.mark.thorough
def test_executors_run_the_packed_environment(tmp_path: Path) -> None:
    # Executors have their folders in that of Spark.
    home, spark = tmp_path / "spark", Path(pyspark.__file__).parent
    home.mkdir()
    for part in spark.iterdir():
        (home / part.name).symlink_to(part)
    job = tmp_path / "job.py"
    job.write_text(JOB)
    archive = packed(tmp_path)
    apart = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE", "PYTHONPATH", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in apart}
    archives = f"{archive}#environment"
    done = subprocess.run(
        [home / "bin" / "spark-submit", "--master", MASTER, "--archives", archives, job, MASTER],
        cwd=tmp_path,
        env=environment
        | {
            "SPARK_HOME": str(home),
            "PYSPARK_PYTHON": "./environment/bin/python",
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]
    rows, places = json.loads(done.stdout.splitlines()[-1])
    assert rows == [[1, 2, 0.8125], [3, 4, 1.0]]
    assert len(places) == 4
    assert all("/environment/lib/" in place for place in places)
