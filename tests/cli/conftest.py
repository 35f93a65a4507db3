"""The paper's example as files of every kind, and a runner of commands."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from uncertain_cep.cli import main


class Invoke(Protocol):
    def __call__(self, *arguments: object) -> Result: ...


@pytest.fixture
def invoke() -> Invoke:
    def run(*arguments: object) -> Result:
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    return run


@pytest.fixture
def figure1() -> pa.Table:
    """The stream of the paper's Figure 1."""
    return pa.table(
        {
            "type": ["A", "C", "B", "C"],
            "id": [1, 2, 3, 4],
            "lower": [1, 3, 3, 4],
            "upper": [5, 5, 5, 8],
            "node": ["n1", "n1", "n1", "n1"],
        }
    )


@pytest.fixture(params=["csv", "csv.gz", "jsonl", "jsonl.gz", "parquet"])
def trace(request: pytest.FixtureRequest, figure1: pa.Table, tmp_path: Path) -> Path:
    """Figure 1 as a file of each format."""
    return write_trace(figure1, tmp_path / f"figure1.{request.param}")


@pytest.fixture
def parquet(figure1: pa.Table, tmp_path: Path) -> Path:
    return write_trace(figure1, tmp_path / "figure1.parquet")


def write_trace(table: pa.Table, file: Path) -> Path:
    if file.suffix == ".parquet":
        pq.write_table(table, file)
        return file
    if ".csv" in file.suffixes:
        sink = pa.BufferOutputStream()
        pyarrow.csv.write_csv(table, sink)
        content = sink.getvalue().to_pybytes()
    else:
        content = table.to_pandas().to_json(orient="records", lines=True).encode()
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
    return file
