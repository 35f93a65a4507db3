"""Queries on a cluster of local processes, with speculation, an executor of which is killed meanwhile.

``python -m tests.spark.killed_executors FOLDER`` prints a line for each way to have the matches.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import uncertain_cep as uc
from tests.conftest import ROOT
from tests.spark.traces import KEYED, as_rows, random_trace
from uncertain_cep.cli import main
from uncertain_cep.spark import get_session, match, match_to_parquet, worker_errors, write_matches, writing

MASTER: Final = "local-cluster[2,1,1024]"
PARTITIONS: Final = 8
KILLED: Final = "killed"
SETTINGS: Final = {
    "spark.executorEnv.PYTHONPATH": str(ROOT),
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.sql.shuffle.partitions": "4",
}


def executor() -> int:
    """Return the process of the executor that this worker is of: its parent has started the workers' one."""
    return int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])


def lingering(batches: Iterable[pa.RecordBatch], *, seen: str, run: Any, **options: Any) -> Iterator[Any]:
    """Do the work of a task, and take a while before and behind it, until an executor has been killed.

    It leaves a file as it is done.
    """
    time.sleep(random.random())
    done = list(run(batches, **options))
    Path(seen, f"{time.monotonic_ns()}-{executor()}").touch()
    while not Path(seen, KILLED).exists():
        time.sleep(0.05)
    time.sleep(random.random())
    yield from done


def killed_meanwhile(seen: Path, call: Callable[[], pa.Table]) -> pa.Table:
    """Return the result of a call, and kill the executor that is the first to do a task, before that."""
    seen.mkdir()
    over, killed = Event(), Event()

    def kill() -> None:
        while not over.wait(0.02):
            for first in seen.iterdir():
                os.kill(int(first.name.partition("-")[2]), signal.SIGKILL)
                (seen / KILLED).touch()
                killed.set()
                return

    watcher = Thread(target=kill)
    watcher.start()
    try:
        return call()
    finally:
        over.set()
        watcher.join()
        assert killed.is_set(), "no executor was killed"


def run(folder: Path) -> None:
    """Have the matches in every way, and compare them with those of the engine."""
    spark = get_session(MASTER, "uncertain-cep tests", SETTINGS)
    table = random_trace(1, 3000, keys=60, span=300).drop_columns("not used")
    expected = uc.match(table, KEYED)
    frame = spark.createDataFrame(table).repartition(PARTITIONS).cache()
    frame.count()
    for name in ("match_partition", "write_partition", "write_files"):
        for module in (writing, sys.modules["uncertain_cep.spark.matching"]):
            if hasattr(module, name):
                slow = partial(lingering, run=getattr(module, name), seen=str(folder / "seen"))
                setattr(module, name, slow)

    def collected() -> pa.Table:
        with worker_errors():
            return match(frame, KEYED, partitions=PARTITIONS).toArrow()

    def written_by_workers() -> pa.Table:
        out = folder / "workers"
        count = match_to_parquet(frame, KEYED, out, partitions=PARTITIONS)
        return checked(out, count)

    def written_by_spark() -> pa.Table:
        write_matches(match(frame, KEYED, partitions=PARTITIONS), folder / "spark")
        return checked(folder / "spark", None)

    def commanded() -> pa.Table:
        out, trace = folder / "command", folder / "trace.parquet"
        pq.write_table(table, trace)
        main(["match", KEYED, str(trace), "-o", str(out), "--master", MASTER], standalone_mode=False)
        trace.unlink()
        return checked(out, None)

    def checked(out: Path, count: int | None) -> pa.Table:
        matches = ds.dataset(list(map(str, out.glob("part-*"))), format="parquet").to_table()
        assert count in (None, matches.num_rows), (count, matches.num_rows)
        return matches

    for call in (collected, written_by_workers, written_by_spark, commanded):
        matches = killed_meanwhile(folder / "seen", call)
        attempts = len(list((folder / "seen").glob("*-*")))
        shutil.rmtree(folder / "seen")
        assert as_rows(matches) == as_rows(expected), call.__name__
        print(f"{call.__name__}: {matches.num_rows} matches, {attempts} tasks done", flush=True)
    left = sorted(path.name for path in folder.iterdir())
    assert left == ["command", "spark", "workers"], left
    spark.stop()


if __name__ == "__main__":
    run(Path(sys.argv[1]))
