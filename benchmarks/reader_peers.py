"""The readers of DuckDB and Polars on the same files: tables, and the groups of an expression in lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import duckdb
import polars as pl

from uncertain_cep.traces.log_presets import PRESETS

__all__ = ["peers_of"]

# No letter of the lines stands between columns.
_SEPARATOR = "\x01"


def peers_of(name: str, path: Path, threads: int) -> Mapping[str, Callable[[], int]]:
    """Return a reader of each peer for a table, or lines of a preset, that returns the rows; else nothing.

    Polars has as many threads as there were cores when it was loaded.
    """
    if name.startswith("csv"):
        return {
            "DuckDB": partial(_duckdb, f"SELECT * FROM read_csv('{path}')", threads),
            "Polars": lambda: pl.read_csv(path).height,
        }
    if name == "jsonl":
        query = f"SELECT * FROM read_json('{path}', format = 'newline_delimited')"
        return {
            "DuckDB": partial(_duckdb, query, threads),
            "Polars": lambda: pl.read_ndjson(path).height,
        }
    if name not in PRESETS:
        return {}
    pattern = _expression(name, path)
    groups = ", ".join(f"'{group}'" for group in re.compile(pattern).groupindex)
    # DuckDB doubles quotes in texts.
    literal = pattern.replace("'", "''")
    lines = (
        f"read_csv('{path}', header = false, columns = {{'line': 'VARCHAR'}}, delim = '{_SEPARATOR}', "
        "quote = '', escape = '')"
    )
    query = f"SELECT UNNEST(regexp_extract(line, '{literal}', [{groups}])) FROM {lines}"
    return {
        "DuckDB": partial(_duckdb, query, threads),
        "Polars": partial(_polars_lines, path, pattern),
    }


def _expression(name: str, path: Path) -> str:
    """Return the expression of a preset that fits the first line of a file and has the most groups."""
    with path.open(encoding="utf-8") as file:
        line = file.readline().rstrip("\n")
    fitting = [pattern for pattern in PRESETS[name].patterns if re.match(pattern, line)]
    return max(fitting, key=lambda pattern: re.compile(pattern).groups)


def _duckdb(query: str, threads: int) -> int:
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {threads}")
        connection.execute("SET enable_progress_bar = false")
        return len(connection.sql(query).to_arrow_table())


def _polars_lines(path: Path, pattern: str) -> int:
    lines = pl.read_csv(
        path, has_header=False, new_columns=["line"], separator=_SEPARATOR, quote_char=None,
        schema_overrides=[pl.String],
    )  # fmt: skip
    return lines.select(pl.col("line").str.extract_groups(pattern)).unnest("line").height
