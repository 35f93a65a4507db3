"""The formats of tables and logs, and the endings of their names."""

from __future__ import annotations

from typing import Final

__all__ = ["FILE_FORMATS", "SUFFIXES"]

SUFFIXES: Final = {
    ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json",
    ".parquet": "parquet", ".pq": "parquet", ".log": "text", ".text": "text",
}  # fmt: skip
FILE_FORMATS: Final = tuple(suffix.removeprefix(".") for suffix in SUFFIXES)
"""The formats that a caller may name; some are one format by several names, and tsv is csv with tabs."""
