"""``order`` writes what the function returns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import uncertain_cep as uc
from tests.cli.conftest import Invoke

TRACE = "type,id,lower,upper,host\nA,1,0,2,h\nB,2,2,4,h\nC,3,3,9,g\nD,4,5,6,h\nE,5,90,95,h\n"


@pytest.fixture
def trace(tmp_path: Path) -> str:
    place = tmp_path / "trace.csv"
    place.write_text(TRACE)
    return str(place)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], {}),
        (["--by", "host"], {"by": "host"}),
        (["--pairs", "all", "--within", "5"], {"pairs": "all", "within": 5}),
        (["--pairs", "cover", "--by", "host", "--by", "type"], {"pairs": "cover", "by": ["host", "type"]}),
    ],
)
def test_it_writes_what_the_function_returns(
    invoke: Invoke, trace: str, tmp_path: Path, arguments: list[str], options: dict[str, Any]
) -> None:
    expected = uc.order(uc.read_traces([trace]), **options)
    printed = invoke("order", trace, *arguments)
    assert printed.exit_code == 0
    assert printed.stdout.splitlines()[0].replace('"', "") == ",".join(expected.column_names)
    assert len(printed.stdout.splitlines()) == expected.num_rows + 1
    out = tmp_path / "pairs.parquet"
    assert invoke("order", trace, *arguments, "-o", str(out)).exit_code == 0
    assert pq.read_table(out).equals(expected)


def test_it_says_how_long_lengths_are(invoke: Invoke, trace: str) -> None:
    done = invoke("order", trace, "--pairs", "all", "--within", "5s", "--tick", "1s")
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, 7)
    done = invoke("order", trace, "--within", "5s")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "plain ticks of unknown length" in done.stderr


def test_wrong_places_end_before_anything_is_read(invoke: Invoke, trace: str) -> None:
    done = invoke("order", trace, "-o", "pairs")
    assert done.exit_code == 2
    assert "must end in .parquet, .csv or .jsonl" in done.stderr
