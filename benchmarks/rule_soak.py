"""A soak of rules: a process that runs them beside one that writes a file of events a second."""

from __future__ import annotations

import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["soak_rules"]

_KINDS: Final = (
    "PATTERN SEQ(T{a} x, T{b} y) WHERE [key] AND y.value > x.value + 990 WITHIN 5 s",
    "PATTERN SEQ(T{a} x, T{b} y) WHERE [key] AND x.value > {limit} AND y.value > {limit} WITHIN 5 s",
    "PATTERN SEQ(T{a} x, !T{b} n, T{c} y) WHERE [key] AND x.value > {limit} AND y.value > 990 WITHIN 5 s",
    "PATTERN SEQ(T{a} x, !T{b} n) WHERE [key] AND x.value > {limit} WITHIN 5 s",
    "PATTERN SEQ(T{a} x, T{b} y, T{c} z) WHERE [key] AND x.value > {limit} AND y.value > 990 "
    "AND z.value > 990 WITHIN 5 s",
)
"""Rules of a few alerts a second each, before those that are suppressed."""

_TYPES: Final = 20

_MOST_LAG: Final = 5.0
"""Seconds that events may wait after the first quarter."""

_MOST_GROWTH: Final = 0.1
"""By how much memory may grow from the second quarter to the last."""


def _write_rules(folder: Path, count: int) -> None:
    folder.mkdir()
    for number in range(count):
        a, b, c = (number % _TYPES, (3 * number + 1) % _TYPES, (7 * number + 2) % _TYPES)
        query = _KINDS[number % len(_KINDS)].format(a=a, b=b, c=c, limit=985 + number % 10)
        (folder / f"r{number:03}.toml").write_text(
            f'[[rule]]\nname = "r{number:03}"\nquery = "{query}"\nsuppress = "10 s"\n'
        )


def _put(folder: Path, number: int, rate: int, begin: float) -> None:
    """Put a file with the events of a second; half have one key, some have one that never comes again."""
    ids = np.arange(number * rate, (number + 1) * rate)
    upper = (int((begin + number) * 1e6) + np.arange(rate) * (1_000_000 // rate)) // 10_000 * 10_000
    stamp = pa.timestamp("us", "UTC")
    table = pa.table(
        {
            "type": pa.array([f"T{one % _TYPES}" for one in ids * 7919 // 13]),
            "id": ids,
            "lower": pa.array(upper - ids % 50 * 10_000).cast(stamp),
            "upper": pa.array(upper).cast(stamp),
            "value": ids * 7919 % 1000,
            "key": np.where(ids % 4 < 2, 0, np.where(ids % 100 == 2, ids, ids % 50)),
        }
    )
    pq.write_table(table, folder / "_aside")
    (folder / "_aside").rename(folder / f"{number:06}.parquet")


def _figures(port: int) -> dict[str, float]:
    try:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except (URLError, OSError):
        return {}
    sums: dict[str, float] = {}
    for name, value in re.findall(r"^uncertain_cep_([a-z_]+)(?:\{.*\})? (\S+)$", text, re.MULTILINE):
        sums[name] = sums.get(name, 0.0) + float(value)
    return sums


def _memory(process: int) -> float:
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Rss:")) / 1e3


def soak_rules(rules: int, minutes: float, rate: int) -> None:
    """Run rules at a fixed rate for some minutes; print memory, what is held and the lag, by quarters."""
    with tempfile.TemporaryDirectory(prefix="uncertain-cep-") as name, socket.socket() as free:
        folder = Path(name)
        (folder / "in").mkdir()
        _write_rules(folder / "rules", rules)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        places = {"--source": "in", "--checkpoint": "state", "-o": "out"}
        command = [sys.executable, "-m", "uncertain_cep", "stream", str(folder / "rules"), "-q"]
        command += [word for option, place in places.items() for word in (option, str(folder / place))]
        command += [
            "--tick",
            "10ms",
            "--largest-interval",
            "1s",
            "--trigger",
            "200ms",
            "--metrics",
            str(port),
        ]
        environment = os.environ | {"PYTHONWARNINGS": "ignore"}
        log = folder / "log"
        with log.open("w") as lines:
            process = subprocess.Popen(command, env=environment, stderr=lines)
        try:
            rows = _watched(process, folder, port, minutes, rate)
        except click.ClickException as error:
            raise click.ClickException(f"{error.message}\n{log.read_text()[-2000:]}") from error
        finally:
            # The run goes on until it is ended: that it says so is of no interest.
            process.terminate()
            process.wait()
        warned = log.read_text().removesuffix("Ended by SIGTERM.\n")
        if warned:
            print(warned, end="")
    if not _report(rows):
        raise SystemExit(1)


def _watched(
    process: subprocess.Popen[bytes], folder: Path, port: int, minutes: float, rate: int
) -> list[dict[str, float]]:
    """Return figures of each second in which a file was put."""
    rows: list[dict[str, float]] = []
    begin, began = time.monotonic(), time.time()
    for number in range(int(60 * minutes)):
        time.sleep(max(0.0, begin + number - time.monotonic()))
        if process.poll() is not None:
            raise click.ClickException(f"the run ended with {process.returncode}")
        figures = _figures(port)
        if figures.get("events_total"):
            behind = number * rate - figures["events_total"]
            rows.append(
                {
                    "memory MB": _memory(process.pid),
                    "held": figures["held"],
                    "lag s": max(behind, 0.0) / rate,
                    "batch s": figures["last_batch_seconds"],
                    "events": figures["events_total"],
                    "matches": figures["matches_total"],
                    "suppressed": figures["suppressed_total"],
                    "late": figures["late_total"],
                }
            )
        if number % 60 == 59 and rows:
            print(", ".join(f"{key} {value:,.1f}" for key, value in rows[-1].items()), flush=True)
        _put(folder / "in", number, rate, began)
    return rows


def _report(rows: list[dict[str, float]]) -> bool:
    """Compare the last quarter with the second, and print the outcome last; return whether it is passed."""
    quarter = len(rows) // 4
    if not quarter:
        raise click.ClickException(f"{len(rows)} batches are too few to compare: take more minutes")
    second, last = rows[quarter : 2 * quarter], rows[3 * quarter :]
    means: dict[str, tuple[float, float]] = {}
    for name in ("memory MB", "held", "lag s", "batch s"):
        before, behind = (statistics.mean(row[name] for row in part) for part in (second, last))
        means[name] = before, behind
        worst = max(row[name] for row in rows[quarter:])
        print(f"{name}: {before:,.2f} in the second quarter, {behind:,.2f} in the last, at most {worst:,.2f}")
    end, lag = rows[-1], max(row["lag s"] for row in rows[quarter:])
    growth = means["memory MB"][1] / means["memory MB"][0] - 1
    faults = [
        f"memory grew by {growth:.0%}" if growth > _MOST_GROWTH else "",
        f"the lag reached {lag:.1f} s" if lag >= _MOST_LAG else "",
        f"{end['late']:,.0f} events were late" if end["late"] else "",
    ]
    said = ", ".join(filter(None, faults))
    print(
        f"{'not passed: ' + said if said else 'passed'}; {end['events']:,.0f} events, "
        f"{end['matches']:,.0f} alerts ({end['suppressed']:,.0f} suppressed), {end['late']:,.0f} late, "
        f"lag at most {lag:.1f} s, memory {rows[0]['memory MB']:,.0f} MB at the begin, "
        f"{means['memory MB'][0]:,.0f} in the second quarter, {end['memory MB']:,.0f} at the end"
    )
    return not said
