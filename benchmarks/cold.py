"""From a fresh process to its first answer: kernels not yet compiled, and afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, Literal

import pyarrow.parquet as pq

from benchmarks.figures import Options, Results, at_most, exactly
from benchmarks.workload import THREE, Stream, sequence_query

__all__ = ["measure"]

_EVENTS: Final = 1000
_COLD_ROUNDS: Final = 3
_PYTHON: Final = """
import sys
import pyarrow.parquet as pq
import uncertain_cep as uc
matches = uc.match(pq.read_table(sys.argv[2]), open(sys.argv[1]).read())
print(matches.num_rows)
"""
_COMMAND: Final = "from uncertain_cep.cli import main; main()"


def _commands(query: Path, trace: Path) -> dict[str, list[str]]:
    return {
        "Python": [sys.executable, "-c", _PYTHON, str(query), str(trace)],
        "command line": [
            sys.executable, "-c", _COMMAND, "match", str(query), str(trace), "--engine", "local",
        ],
    }  # fmt: skip


def _run(command: list[str], cache: str, clock: Literal["wall", "cpu"]) -> tuple[float, str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    # An installation has its modules' byte code; a checkout writes it at the first use, if allowed to.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started, ran = time.perf_counter(), _seconds_of_children()
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    elapsed = time.perf_counter() - started if clock == "wall" else _seconds_of_children() - ran
    if done.returncode or not done.stdout:
        raise RuntimeError(f"{command[2]!r} gave no answer: {done.stderr[-500:]}")
    return elapsed, done.stderr


def _seconds_of_children() -> float:
    spent = os.times()
    return spent.children_user + spent.children_system


def measure(options: Options) -> Results:
    """Measure whole processes on the paper's stream, 1,000 events, with confidence."""
    results = Results()
    with tempfile.TemporaryDirectory() as folder:
        query, trace = Path(folder, "sequence.query"), Path(folder, "trace.parquet")
        query.write_text(sequence_query(THREE), encoding="utf-8")
        pq.write_table(Stream(_EVENTS, 5).table(), trace)
        for name, command in _commands(query, trace).items():
            first, second, told = [], [], True
            for _ in range(min(options.rounds, _COLD_ROUNDS)):
                with tempfile.TemporaryDirectory(dir=folder) as cache:
                    elapsed, said = _run(command, cache, options.clock)
                    first.append(elapsed)
                    told &= "compil" in said.lower()
                    second.append(_run(command, cache, options.clock)[0])
            results.add_median(f"{name}, kernels not yet compiled", first, "s", at_most(30.0))
            results.add(f"{name}, says that it compiles", float(told), "1 = yes", exactly(1))
            results.add_median(f"{name}, kernels in the disk cache", second, "s", at_most(3.0))
    return results
