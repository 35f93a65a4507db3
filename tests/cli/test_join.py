"""``join`` writes what the functions return."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import uncertain_cep as uc
from tests.cli.conftest import Invoke

TRACE = """type,id,lower,upper,begin_lower,begin_upper,length_lower,length_upper,host
Task,1,0,2,,,,,h
Cpu,2,2,4,,,,,h
Task,3,3,9,3,5,1,4,g
Cpu,4,5,6,,,,,h
Task,5,9,12,9,10,2,2,h
Cpu,6,9,9,,,,,g
"""


@pytest.fixture
def trace(tmp_path: Path) -> str:
    place = tmp_path / "trace.csv"
    place.write_text(TRACE)
    return str(place)


def of_type(events: pa.Table, name: str) -> pa.Table:
    return events.filter(pc.equal(events["type"].cast(pa.string()), name))


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], {}),
        (
            ["--on", "host", "--when", "within 2", "--how", "left"],
            {"on": "host", "when": "within 2", "how": "left"},
        ),
        (["--asof", "backward"], {"direction": "backward"}),
        (
            ["--asof", "forward", "--tolerance", "3", "--no-exact", "--ties", "all", "--on", "host"],
            {
                "direction": "forward",
                "tolerance": 3,
                "allow_exact_matches": False,
                "ties": "all",
                "by": "host",
            },
        ),
        (["--asof", "nearest", "--exact"], {"direction": "nearest"}),
        (
            ["--asof", "backward", "--left-at", "end", "--right-at", "begin"],
            {"direction": "backward", "left_at": "end", "right_at": "begin"},
        ),
    ],
)
def test_it_writes_what_the_functions_return(
    invoke: Invoke, trace: str, tmp_path: Path, arguments: list[str], options: dict[str, Any]
) -> None:
    events = uc.read_traces([trace])
    function: Any = uc.join_asof if "direction" in options else uc.join
    expected = function(of_type(events, "Task"), of_type(events, "Cpu"), **options)
    types = ["--left-type", "Task", "--right-type", "Cpu"]
    printed = invoke("join", trace, trace, *types, *arguments)
    assert printed.exit_code == 0, printed.stderr
    assert printed.stdout.splitlines()[0].replace('"', "") == ",".join(expected.column_names)
    assert len(printed.stdout.splitlines()) == expected.num_rows + 1
    out = tmp_path / "rows.parquet"
    assert invoke("join", trace, trace, *types, *arguments, "-o", str(out)).exit_code == 0
    assert pq.read_table(out).equals(expected)


def test_it_says_how_long_lengths_are(invoke: Invoke, trace: str) -> None:
    done = invoke("join", trace, trace, "--asof", "backward", "--tolerance", "5s", "--tick", "1s")
    assert done.exit_code == 0, done.stderr
    done = invoke("join", trace, trace, "--when", "within 5s")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "plain ticks of unknown length" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--asof", "backward", "--when", "before"], "--asof and --when exclude each other"),
        (["--asof", "backward", "--how", "left"], "--how goes with --when"),
        (["--ties", "all"], "--ties goes with --asof"),
        (["--no-exact"], "--exact goes with --asof"),
        (["--tolerance", "5"], "--tolerance goes with --asof"),
        (["--left-at", "end"], "--left-at goes with --asof"),
        (["-o", "rows"], "must end in .parquet, .csv or .jsonl"),
        (["--on", "rack"], "rack"),
    ],
)
def test_wrong_calls(invoke: Invoke, trace: str, arguments: list[str], text: str) -> None:
    done = invoke("join", trace, trace, *arguments)
    assert done.exit_code == 2
    assert text in done.stderr
