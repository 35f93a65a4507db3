"""Streams whose processes are killed at random moments still write every match once.

``python -m tests.spark.killed_streams FOLDER --events 200000 --batches 52 --kills 6 --queries 5`` runs the
command on each query, kills -9 its Python workers, its JVM or itself so often, and starts it again where
that is needed. It prints a line for each query.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

import uncertain_cep as uc
from tests.conftest import ROOT
from tests.spark.streams import TOO_BUSY, put
from tests.spark.traces import FORKED, NOT_GENERATED, PATIENT, UNTRACED, as_rows

T = TypeVar("T")

QUERIES: Final = {
    "plain": "PATTERN SEQ(A a, B b) WHERE [key] AND a.value % 3 != 1 WITHIN 40",
    "next": "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c) AND [key] WITHIN 60",
    "negation": "PATTERN SEQ(A a, !B b, C c) WHERE [key] WITHIN 30",
    "Kleene": "PATTERN SEQ(A a, B+ b[], C c) WHERE [key] AND b[i].value > 7 WITHIN 30",
    "sets": "PATTERN OR(SEQ(AND(A a, B b), C c), SEQ(D d, A e, C f)) WHERE [key] WITHIN 20",
}
LARGEST: Final = 7
SECONDS: Final = 5400
"""After which a run that does not end has failed."""


def trace(events: int, seed: int) -> pa.Table:
    """Return events in an order of arrival within the promise, one each two ticks."""
    draw = np.random.default_rng(seed)
    moment = np.sort(draw.integers(0, 2 * events, events))
    return pa.table(
        {
            "type": draw.choice(["A", "B", "C", "D"], events).tolist(),
            "id": np.arange(events),
            "lower": moment - draw.integers(0, 4, events),
            "upper": moment + draw.integers(0, 4, events),
            "value": draw.integers(0, 10, events),
            "key": draw.integers(0, 5, events),
        }
    )


def written(out: Path) -> pa.Table | None:
    """Return the content of the output folder as any reader of Parquet reads it, or None."""
    files = sorted(str(path) for path in out.rglob("*.parquet"))
    return ds.dataset(files, format="parquet").to_table() if files else None


def below(process: int) -> Iterator[tuple[int, str]]:
    """Yield the processes that a process has started, and those that they have, with their command lines."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        for thread in Path(f"/proc/{process}/task").iterdir():
            children += (thread / "children").read_text().split()
    except OSError:
        return
    for child in dict.fromkeys(map(int, children)):
        try:
            yield child, Path(f"/proc/{child}/cmdline").read_text()
        except OSError:
            continue
        yield from below(child)


def victims(process: int, kind: str) -> list[int]:
    """Return the processes of a kind: driver, JVM or worker."""
    if kind == "driver":
        return [process]
    children = list(below(process))
    if kind == "executor":
        return [number for number, command in children if "CoarseGrainedExecutorBackend" in command]
    if kind == "JVM":
        return [number for number, command in children if "org.apache.spark.deploy.SparkSubmit" in command]
    workers = [
        number
        for number, command in children
        if "pyspark" in command and "java" not in command.split("\0")[0]
    ]
    # The first of them starts the others.
    return workers[1:] or workers


def command(folder: Path, query: str, *more: str, master: str = "local[2]") -> list[str]:
    """Return the arguments of the command that runs a query over the files of a folder."""
    return [
        "stream", query, "--source", str(folder / "events"),
        "--largest-interval", str(LARGEST), "--checkpoint", str(folder / "checkpoint"),
        "-o", str(folder / "out"),
        "--batch", "1", "--buckets", "4", "--master", master, "--slice-length", "500", *more,
    ]  # fmt: skip


def started(arguments: Sequence[str], log: Path, module: str = "uncertain_cep") -> subprocess.Popen[bytes]:
    """Start a command, that of a module, in a group of its own, with what it says in a file."""
    gateway = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE")
    environment = {name: value for name, value in os.environ.items() if name not in gateway}
    # The executors of a cluster find the sources of this checkout.
    defaults = NOT_GENERATED | PATIENT | UNTRACED | FORKED | {"spark.executorEnv.PYTHONPATH": str(ROOT)}
    settings = log.parent / "settings"
    settings.mkdir(exist_ok=True)
    lines = [f"{name} {value}\n" for name, value in defaults.items()]
    (settings / "spark-defaults.conf").write_text("".join(lines))
    with log.open("ab") as sink:
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env=environment | {"PYTHONPATH": str(ROOT), "SPARK_CONF_DIR": str(settings)},
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )


def commits(folder: Path) -> int:
    """Return how many batches a checkpoint says to be done."""
    return len([path for path in folder.glob("checkpoint/commits/*") if path.name.isdigit()])


def closed(arguments: Sequence[str], log: Path) -> None:
    """Run a command to its end in a process of its own."""
    code = started(arguments, log).wait(SECONDS)
    if code and TOO_BUSY in log.read_text()[-3000:]:
        closed(arguments, log)
    else:
        assert code == 0, log.read_text()[-3000:]


def run(
    folder: Path,
    query: str,
    table: pa.Table,
    batches: int,
    kills: Sequence[str],
    seed: int,
    master: str = "local[2]",
    close: Callable[[Sequence[str], Path], None] = closed,
) -> dict[str, Any]:
    """Run a query with its processes killed, each a random while behind a batch; return what happened.

    With the kind "end" the command is ended in order, by SIGTERM. ``close`` runs it a last time, until
    all has been read.
    """
    draw = random.Random(seed)
    cuts = [round(number * table.num_rows / batches) for number in range(batches + 1)]
    pieces = [table.slice(start, stop - start) for start, stop in pairwise(cuts)]
    # One is kept back for each time that the command is ended, so that it has something to do until then.
    at_once = batches - kills.count("end")
    put(folder / "events", *pieces[:at_once])
    expected = uc.match(table, query, max_matches=None)
    columns = expected.column_names
    signatures = pa.array(list(map(repr, expected.select(_signature(columns)).to_pylist())))
    until = time.monotonic() + SECONDS
    running = _Running([*command(folder, query, master=master), "--trigger", "200ms"], folder)
    done: list[str] = []
    # The first batch is behind the first kill.
    steps = iter(sorted(draw.sample(range(1, at_once), len(kills) - kills.count("end"))))
    for kind in kills:
        if kind == "end":
            before = running.said
            put(folder / "events", pieces[at_once])
            at_once += 1
            _waited(partial(_has_told, running, before), running, until)
            if not running.end():
                continue
        else:
            _waited(partial(_are_done, folder, next(steps)), running, until)
            time.sleep(draw.uniform(0, 2.0))
            _waited(partial(_has_killed, running, kind, draw), running, until)
            _check_so_far(folder / "out", columns, signatures)
        done.append(kind)
    if running.process.poll() is None:
        running.process.terminate()
        running.process.wait()
    close([*command(folder, query, master=master), "--close"], folder / "log")
    output = written(folder / "out")
    assert output is not None
    assert set(output.column("kind").to_pylist()) == {"match"}
    assert as_rows(output.select(columns)) == as_rows(expected)
    return {
        "matches": expected.num_rows,
        "batches": commits(folder),
        "kills": done,
        "starts": running.starts + 1,
        "seconds": round(time.monotonic() + SECONDS - until),
    }


class _Running:
    """A command that is started again when it is dead.

    Each time it has a log of its own: the JVM of a killed driver outlives it for a moment, and complains.
    """

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        self._arguments, self._folder = arguments, folder
        self.starts = 0
        self.start()

    def start(self) -> None:
        self.starts += 1
        self._log = self._folder / f"log{self.starts}"
        self.process = started(self._arguments, self._log)

    @property
    def said(self) -> str:
        """Its output since it was started the last time."""
        return self._log.read_text()

    def victims(self, kind: str) -> list[int]:
        """Return its processes of a kind."""
        return victims(self.process.pid, kind)

    def end(self) -> bool:
        """End it in order; return whether it had not ended because the machine was too busy."""
        os.killpg(self.process.pid, signal.SIGTERM)
        code = self.process.wait(SECONDS)
        if code == 1 and TOO_BUSY in self.said:
            return False
        assert code == 143, self.said
        assert self.said.endswith("\nEnded by SIGTERM.\n")
        assert "Traceback" not in self.said
        return True


def _has_told(running: _Running, before: str) -> bool:
    """Return whether the command has told of a batch; what it said before does not count.

    One that has been killed may be there for a moment.
    """
    return re.search(r"batch \d+: [\d,]+ events, ", running.said.removeprefix(before)) is not None


def _has_killed(running: _Running, kind: str, draw: random.Random) -> bool:
    """Kill a process of a kind, unless there is none or it has ended by itself."""
    with suppress(IndexError, ProcessLookupError):
        os.kill(draw.choice(running.victims(kind)), signal.SIGKILL)
        return True
    return False


def _are_done(folder: Path, batches: int) -> bool:
    return commits(folder) >= batches


def _waited(condition: Callable[[], T], running: _Running, until: float) -> T:
    """Return the value of a condition once it has one, and start the command again when it is dead."""
    while True:
        assert time.monotonic() < until, running.said[-3000:]
        if running.process.poll() is not None:
            running.start()
        if value := condition():
            return value
        time.sleep(0.05)


def _signature(columns: Sequence[str]) -> list[str]:
    return [name for name in columns if name not in ("range_lower", "range_upper", "confidence")]


def _check_so_far(out: Path, columns: Sequence[str], signatures: pa.Array) -> None:
    """Check that what is there is part of the answer, and nothing twice, also right behind a kill."""
    output = written(out)
    if output is not None:
        signatures_so_far = pa.array(
            list(map(repr, output.select(_signature(columns)).to_pylist())), pa.string()
        )
        assert pc.all(pc.is_in(signatures_so_far, signatures), min_count=0).as_py()
        assert len(pc.unique(signatures_so_far)) == len(signatures_so_far)


def main() -> None:
    """Run the queries that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--batches", type=int, default=52)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--queries", type=int, default=len(QUERIES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--master", default="local[2]", help="local-cluster[2,1,1024]: executors are killed")
    arguments = parser.parse_args()
    for number, (name, query) in enumerate(list(QUERIES.items())[: arguments.queries]):
        kinds = ["worker", "driver", "JVM", "worker", "worker", "driver", "JVM"]
        if arguments.master.startswith("local-cluster"):
            kinds = ["executor"]
        kills = [kinds[(number + k) % len(kinds)] for k in range(arguments.kills)]
        folder = arguments.folder / name
        folder.mkdir(parents=True)
        table = trace(arguments.events, arguments.seed + number)
        print(
            name,
            run(folder, query, table, arguments.batches, kills, arguments.seed + number, arguments.master),
            flush=True,
        )


if __name__ == "__main__":
    main()
