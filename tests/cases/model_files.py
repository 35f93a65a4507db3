"""Traces with each column of the model, alone and together, as files of every format."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from uncertain_cep.timeline.domain import MODEL_COLUMNS

__all__ = ["COMPRESSIONS", "FORMATS", "IMPOSSIBLE", "PARTS", "QUERY", "rows_of", "trace", "written"]

QUERY: Final = "PATTERN SEQ(A a, B b) WITHIN 6"

CLOCK: Final = ("source", "offset_lower", "offset_upper")
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "no more": (),
    "pmf": ("pmf",),
    "tick": ("tick",),
    "probability": ("probability",),
    "clocks": CLOCK,
    "offset_pmf": (*CLOCK, "offset_pmf"),
    "right clocks": ("source", "sequence"),
    "sequence": (*CLOCK, "sequence"),
    "ordered": (*CLOCK, "sequence", "ordered"),
    "all": MODEL_COLUMNS[4:],
}
"""Columns besides type, id, lower and upper that belong together."""

NOT_IN_SCHEMAS: Final = ("pmf", "tick")
"""Columns that a schema says itself."""

FORMATS: Final = ("csv", "jsonl", "parquet")

COMPRESSIONS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "": lambda text: text,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda text: bytes(pa.compress(text, codec="zstd", asbytes=True)),
}

IMPOSSIBLE: Final = pa.table(
    {
        "type": ["A", "B", "A"], "id": [1, 2, 3], "lower": [5, 9, 2], "upper": [5, 9, 2],
        "source": ["s"] * 3, "offset_lower": [0] * 3, "offset_upper": [0] * 3,
        "sequence": [0, 1, 2], "ordered": [True] * 3,
    }
)  # fmt: skip
"""An ordered source whose events have no times in their order."""

_OFFSETS: Final = {"h": (-2, 1), "g": (0, 0), None: (0, 0)}
_LAWS: Final = {"h": [0.5, 0.0, 0.25, 0.25], "g": [1.0], None: None}


def trace(seed: int, columns: Collection[str], count: int = 8) -> pa.Table:
    """Return events of two clocks and of none, with these columns besides those that each event has."""
    draw = np.random.default_rng(seed)
    source = [(None, "g", "h", "h")[at] for at in draw.integers(0, 4, count)]
    readings = np.sort(draw.integers(0, 12, count))
    length = draw.integers(0, 3, count)
    offsets = [_OFFSETS[name] if "offset_lower" in columns else (0, 0) for name in source]
    values_by_name: dict[str, Any] = {
        "type": draw.choice(["A", "B"], count).tolist(),
        "id": draw.permutation(count),
        "lower": readings + [low for low, _ in offsets],
        "upper": readings + length + [high for _, high in offsets],
        "x": draw.integers(0, 9, count),
        "source": source,
        "offset_lower": [
            None if name is None else low for name, (low, _) in zip(source, offsets, strict=True)
        ],
        "offset_upper": [
            None if name is None else high for name, (_, high) in zip(source, offsets, strict=True)
        ],
        "offset_pmf": [_LAWS[name] for name in source],
        "sequence": [None if at == 3 else 10 * at for at in range(count)],
        "ordered": [name == "h" for name in source],
        "probability": draw.choice([1.0, 0.5, 0.25], count),
        "tick": ["1s"] * count,
        "pmf": [None if n % 2 else (draw.dirichlet(np.ones(n + 1))).tolist() for n in length.tolist()],
    }
    kept = ("type", "id", "lower", "upper", "x", *columns)
    return pa.table({name: pa.array(values) for name, values in values_by_name.items() if name in kept})


def written(table: pa.Table, folder: Path, format_name: str, compression: str) -> Path:
    """Write events as a file; the one of Parquet is compressed within."""
    if format_name == "parquet":
        codec = {"": "none", ".gz": "gzip", ".zst": "zstd", ".bz2": "snappy", ".xz": "lz4"}[compression]
        pq.write_table(table, folder / "trace.parquet", compression=codec)
        return folder / "trace.parquet"
    if format_name == "csv":
        sink = pa.BufferOutputStream()
        pyarrow.csv.write_csv(table, sink)
        text = sink.getvalue().to_pybytes()
    else:
        text = "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()
    path = folder / f"trace.{format_name}{compression}"
    path.write_bytes(COMPRESSIONS[compression](text))
    return path


def schema_for(columns: Collection[str]) -> str:
    """Return a schema that makes the same events of the rows."""
    probability = 'probability = "probability"\n' if "probability" in columns else ""
    table = '[[events]]\ntype_column = "type"\nid = "id"\nunit = "tick"\n'
    return f'{table}uncertainty = {{ kind = "columns", lower = "lower", upper = "upper" }}\n{probability}'


def rows_of(rows: list[dict[str, Any]]) -> dict[tuple[int, int], tuple[int, int, float]]:
    """Return matches by their signatures."""
    return {
        (row["a"], row["b"]): (row["range_lower"], row["range_upper"], round(row["confidence"], 9))
        for row in rows
    }
