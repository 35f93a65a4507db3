"""The query in DuckDB SQL with the range join forced, on one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import duckdb
import pyarrow as pa

from benchmarks.peer_query import PeerQuery

__all__ = ["FORMULATIONS", "connect"]


def connect(events: pa.Table, memory_gigabytes: float) -> duckdb.DuckDBPyConnection:
    """Return a connection with the events in a table of DuckDB's own, and the range join forced."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET memory_limit = '{memory_gigabytes}GB'")
    connection.execute("SET nested_loop_join_threshold = 0")
    connection.execute("SET merge_join_threshold = 0")
    connection.execute("SET prefer_range_joins = true")
    connection.register("given", events)
    connection.execute("CREATE TABLE events AS SELECT id, lower, upper, value FROM given")
    connection.unregister("given")
    return connection


def _candidates(query: PeerQuery) -> list[str]:
    return [
        f"c{j} AS (SELECT id, lower, upper FROM events WHERE value % {divisor} = 0)"
        for j, divisor in enumerate(query.divisors)
    ]


def _ids(query: PeerQuery) -> str:
    return ", ".join(f"i{j}" for j in range(query.length))


def _flat(query: PeerQuery) -> str:
    conditions = [f"c{j}.value % {divisor} = 0" for j, divisor in enumerate(query.divisors)]
    for j in range(query.length):
        for i in range(j):
            conditions += [
                f"c{i}.lower + {j - i} <= c{j}.upper",
                f"c{j}.lower <= c{i}.upper + {query.slack + j - i}",
                f"c{i}.id <> c{j}.id",
            ]
    ids = ", ".join(f"c{j}.id AS i{j}" for j in range(query.length))
    tables = ", ".join(f"events c{j}" for j in range(query.length))
    return f"SELECT {ids} FROM {tables} WHERE {' AND '.join(conditions)}"


def _forward(query: PeerQuery) -> str:
    parts = _candidates(query)
    parts.append(
        f"p0 AS (SELECT id AS i0, lower + 1 AS earliest, upper + {query.slack + 1} AS latest FROM c0)"
    )
    for j in range(1, query.length):
        carried = ", ".join(f"p.i{k}" for k in range(j))
        distinct = " AND ".join(f"c.id <> p.i{k}" for k in range(j))
        parts.append(
            f"p{j} AS (SELECT {carried}, c.id AS i{j}, greatest(p.earliest, c.lower) + 1 AS earliest, "
            f"least(p.latest, c.upper + {query.slack}) + 1 AS latest FROM p{j - 1} p JOIN c{j} c "
            f"ON p.earliest <= c.upper AND c.lower <= p.latest AND {distinct})"
        )
    return f"WITH {', '.join(parts)} SELECT {_ids(query)} FROM p{query.length - 1}"


def _backward(query: PeerQuery) -> str:
    last = query.length - 1
    parts = _candidates(query)
    parts.append(
        f"p{last} AS (SELECT id AS i{last}, upper - 1 AS latest, "
        f"lower - {query.slack + 1} AS earliest FROM c{last})"
    )
    for j in reversed(range(last)):
        carried = ", ".join(f"p.i{k}" for k in range(j + 1, query.length))
        distinct = " AND ".join(f"c.id <> p.i{k}" for k in range(j + 1, query.length))
        parts.append(
            f"p{j} AS (SELECT c.id AS i{j}, {carried}, least(p.latest, c.upper) - 1 AS latest, "
            f"greatest(p.earliest, c.lower - {query.slack}) - 1 AS earliest FROM p{j + 1} p JOIN c{j} c "
            f"ON p.latest >= c.lower AND c.upper >= p.earliest AND {distinct})"
        )
    return f"WITH {', '.join(parts)} SELECT {_ids(query)} FROM p0"


FORMULATIONS: Final[dict[str, Callable[[PeerQuery], str]]] = {
    "one join of all pairs": _flat,
    "forward chain": _forward,
    "backward chain": _backward,
}
