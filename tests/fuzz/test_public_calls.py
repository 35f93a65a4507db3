"""Every public function, in any order, on its own results and on anything else."""

from __future__ import annotations

import datetime as dt
import inspect
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.fuzz.public_calls import Made, calls_of
from tests.fuzz.test_files import CSV, JSON, SCHEMAS


def _is_called(function: object) -> bool:
    """Return whether something public is called as a rule, and not an error or part of one."""
    return callable(function) and getattr(function, "__module__", "") not in (
        "uncertain_cep.errors",
        "uncertain_cep.query.syntax",
    )


# What compiles kernels takes minutes on purpose.
FUNCTIONS: Final = {
    name: getattr(uc, name) for name in uc.__all__ if _is_called(getattr(uc, name)) and name != "warm_up"
}

FOLDER: Final = Path(tempfile.mkdtemp(prefix="uncertain-cep-fuzz-"))
EVENTS: Final = pa.table(
    {
        "type": ["A", "B", "A", "C", "B", "B"],
        "id": [1, 2, 3, 4, 5, 6],
        "lower": [1, 2, 4, 4, 6, 9],
        "upper": [3, 5, 4, 8, 7, 9],
        "x": [1.0, None, 2.5, 1.0, 2.0, 0.0],
        "k": ["u", "u", "v", None, "v", "u"],
    }
)
STAMPS: Final = pa.table(
    {
        "type": ["A", "B", "B"],
        "id": ["a", "b", "c"],
        "at": pa.array([10**6, 2 * 10**6, 3 * 10**6], pa.timestamp("us", "UTC")),
        "end": pa.array([2 * 10**6, 2 * 10**6, None], pa.timestamp("us", "UTC")),
        "slack": [1, 2, 3],
        "host": ["h", "g", None],
        "pmf": [[0.5, 0.5], [1.0], None],
    }
)
OFFSETS: Final = pa.table({"host": ["h", "g"], "offset_lo": [-1, 0], "offset_hi": [2, 1]})


def _file(name: str, content: bytes) -> Made:
    def written() -> Path:
        (FOLDER / name).write_bytes(content)
        return FOLDER / name

    return Made(name, written)


QUERIES: Final = (
    "PATTERN SEQ(A a, B b) WITHIN 5",
    "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 5 ORDER BY CONFIDENCE DESC LIMIT 2",
    "PATTERN SEQ(A a, !C n, B+ b[]) WITHIN 9 RETURN a.x AS y",
    "PATTERN SEQ(A a, B b) WITHIN 5 seconds",
    "PATTERN SEQ(A a, B b) WITHIN 5 RETURN EXPECTED COUNT BY k",
    "PATTERN SEQ(A a, B b) WHERE a.x > $x WITHIN $w HAVING CONFIDENCE >= $c LIMIT $k",
    "PATTERN SEQ(A a",
)
FRAMES: Final = (
    Made("EVENTS", lambda: EVENTS),
    Made("EVENTS", lambda: EVENTS),
    Made("STAMPS", lambda: STAMPS),
    Made("EVENTS.to_pandas()", EVENTS.to_pandas),
    Made("pl.from_arrow(EVENTS)", lambda: pl.from_arrow(EVENTS)),
    Made("STAMPS.to_pandas()", STAMPS.to_pandas),
    Made("pl.from_arrow(STAMPS).lazy()", lambda: pl.DataFrame(STAMPS.to_pydict()).lazy()),
    Made("EVENTS.to_reader()", EVENTS.to_reader),
    Made("EVENTS[:0]", lambda: EVENTS.slice(0, 0)),
)
FILES: Final = (
    _file("t.csv", CSV[0]),
    _file("u.csv", CSV[2]),
    _file("t.jsonl", JSON[0]),
    _file("t.toml", SCHEMAS[0]),
    Made("[]", list),
    "absent.csv",
    Made("FOLDER", lambda: FOLDER),
)
RULES: Final = (
    "plus_minus:1s",
    "exact",
    "window:2s",
    "as_written",
    "nonsense:1s",
    *(
        Made(name, lambda name=name, arguments=arguments: getattr(uc, name)(*arguments))  # type: ignore[misc]
        for name, arguments in (
            ("exact", ()),
            ("as_written", ()),
            ("plus_minus", ("1s",)),
            ("granularity", ("1s",)),
            ("histogram", ("pmf",)),
            ("columns", ("at", "at + slack")),
            ("clock_offset", (OFFSETS,)),
        )
    ),
)
LENGTHS: Final = (
    "1s",
    "250ms",
    "0s",
    "-1s",
    "3 fortnights",
    dt.timedelta(seconds=2),
    np.timedelta64(5, "ms"),
    5,
    0,
)
NAMES: Final = ("type", "id", "lower", "at", "end", "x", "k", "pmf", "host", "", "no column")

VALUES: Final[dict[str, tuple[Any, ...]]] = {
    **dict.fromkeys(("events", "frame", "matches", "paths_or_frame", "left", "right"), FRAMES),
    **dict.fromkeys(("query", "text"), QUERIES),
    **dict.fromkeys(("paths", "path"), FILES),
    **dict.fromkeys(("length", "within"), LENGTHS),
    "of": (*LENGTHS, ("a", "b"), ("a", "z"), ("a", "b.end")),
    "by": (*LENGTHS, "k", ["k", "x"], ["no column"], "type"),
    "n": (1, 3, 0, True),
    "pairs": ("open", "all", "cover", "half"),
    "on": (None, "k", ["k"], "no column"),
    "at_most": ((), [2], ["2s"], "2s", 3),
    "quantiles": ((), [0.5], [0], ["x"]),
    "when": ("overlaps", "before", "within 5", "within 5s", "near", "final", "certain"),
    "how": ("inner", "left", "outer"),
    "direction": ("backward", "forward", "nearest"),
    "ties": ("one", "all"),
    **dict.fromkeys(("left_at", "right_at"), ("begin", "end", "middle")),
    "tolerance": LENGTHS,
    **dict.fromkeys(("type", "id", "lower", "upper", "pmf", "probability", "time"), NAMES),
    **dict.fromkeys(("begin", "end", "duration"), (None, *NAMES, "A", "B", "no type")),
    **dict.fromkeys(("column", "host", "key", "prefix", "offset_lower", "offset_upper"), NAMES),
    **dict.fromkeys(("sequence", "ordered", "offset_pmf"), NAMES),
    "paths_or_frame": FRAMES + FILES,
    "schema": (None, Made("EVENTS.schema", lambda: EVENTS.schema), FILES[3]),
    "table": (Made("OFFSETS", lambda: OFFSETS), Made("OFFSETS.to_pandas()", OFFSETS.to_pandas), FILES[0]),
    "rules": (
        {"h": RULES[0]}, {}, Made("rules", lambda: {"h": uc.exact(), "g": uc.plus_minus("1s")}),
        Made("uc.rules", lambda: uc.rules({"r": QUERIES[0], "s": QUERIES[2]})),
    ),
    "otherwise": (None, *RULES),
    "uncertainty": (*RULES, Made("[rule, text]", lambda: [uc.granularity("1s"), "plus_minus:1s"]), []),
    "names": (None, {"type": "k"}, {"lower": "at"}, uc.Names(id="k"), {"kind": "x"}),
    "tick": (None, *LENGTHS),
    **dict.fromkeys(("stamp", "title"), (None, "at", "<b>&", "")),
    "unit": (None, "s", "ms", "tick", "parsec"),
    "missing": ("error", "drop", "widen"),
    "at": ("range", "first", "last", "a", "b", "c", ""),
    "format": (None, "csv", "json", "text", "log", "parquet", "yaml", "chrony", "peerstats", "clockbound"),
    "evaluation": ("auto", "query_order", "any_state", "selectivity", "point"),
    "planner": ("auto", "dp_bushy", "(a b)", "(("),
    "kleene": ("matches", "compressed"),
    "approximate": (None, 0.1, 0.0, uc.Approximation(0.2, seed=1)),
    **dict.fromkeys(
        (
            "allow_exact_matches", "confidence", "analyze", "sources", "shared", "overwrite", "raw_stamps",
            "spans",
        ),
        (True, False),
    ),
    "known_until": (None, 5, -3, 2**70, "2026-01-05", "soon", dt.datetime(2026, 1, 5), dt.date(2026, 1, 5)),
    "zone": (None, "UTC", "Europe/Prague", "Mars/Olympus", ""),
    "time_zone": (None, "UTC", "Europe/Berlin", "+02:00", "Mars/Olympus", ""),
    **dict.fromkeys(("max_matches", "batch_rows", "largest_interval"), (None, 0, 1, 7, -3, 2**63)),
    **dict.fromkeys(("threads", "pmf_ticks", "slice_length", "first_id", "seed"), (None, 0, 1, 7, -3, 2**63)),
    "rows": (1, 20, 0),
    **dict.fromkeys(("latency_weight", "timeout", "std_error"), (None, 0.0, 0.1, 100.0, math.inf, math.nan)),
    "constraints": (
        [],
        Made("[causal]", lambda: [uc.causal("SEQ(A a, B b) WHERE a.k = b.k")]),
        Made("[all_before]", lambda: [uc.all_before("A", "C", by="x"), uc.all_before("B", "C")]),
    ),
    "pattern": ("SEQ(A a, B b)", "SEQ(A a, B b) WHERE a.k = b.x", "AND(A a, B b)", "SEQ(A a"),
    **dict.fromkeys(("parent", "child"), (("A", "B"), ("B", "C"), "AB", ("A",))),
    **dict.fromkeys(("first", "then", "source", "reference"), ("A", "B", "k", "u", "", None)),
    "prior": (None, "1s", 5, Made("clock_offset", lambda: uc.clock_offset(OFFSETS)), -1),
    "contradictions": ("error", "drop", "ignore"),
    "epochs": (True, False),
    "own": (None, "1s", Made("granularity", lambda: uc.granularity("1s")), -1),
    "epoch": (None, ("host", "host"), ("offset_lo", "offset_hi"), "from"),
    "delay": (*LENGTHS, ("0 s", "5 s"), (-3, 4), ("-1min", 0), ("5 s", "0 s")),
    "default": (None, "5s", 5, dt.timedelta(seconds=5), -1),
    "idle_after": (None, *LENGTHS),
    "of_streams": (None, {}),
    "duplicates": ("error", "drop", "keep"),
    "memory_limit": (None, "100GB", "1MB", 0),
    "progress": (None, False, "yes"),
    "undecided": ("error", "bounds", "maybe"),
    "where": (None, {}, {"a": 1}, {"a": "x", "b": 2}, {"c": None}),
    **dict.fromkeys(("doubtful", "misses"), (0, 1, 20, -3, 2**63)),
    "ids": (1, "x", None),
    "truth": (*FRAMES, "lower", "x", "happened", [True], Made("bools", lambda: pa.array([True] * 6))),
    "bins": (10, 1, 3, 0, -3),
    "match": (*FRAMES, {"a": 1, "b": 2, "confidence": 0.5}, {"a": 1}, {}),
    "parameters": (
        None, {}, {"x": 1.0, "w": 5, "c": 0.1, "k": 3}, {"x": "u", "w": "5s", "c": 2, "k": -1}, {"x": None},
        {"x": dt.datetime(2026, 1, 5), "w": dt.timedelta(1), "c": math.nan, "k": 2**70}, {1: 2},
    ),
}  # fmt: skip
STRANGE: Final[tuple[Any, ...]] = (
    *(None, True, 0, -1, 2**80, 1.5, math.nan, "", "x", "\ud800", b"x", (), [], {}, set(), object, ...),
    Made("np.zeros(3)", lambda: np.zeros(3)),
    Made("pd.Series", lambda: pd.Series([1, 2])),
    Made("pa.array", lambda: pa.array([1, None])),
)


def used(result: object) -> None:
    """Take what an iterator yields, and give events to a matcher."""
    if isinstance(result, Iterator):
        for _ in result:
            pass
    if isinstance(result, uc.IncrementalMatcher | uc.RuleMatcher):
        result.push(EVENTS)
        result.close()


CALLS: Final = calls_of(FUNCTIONS, VALUES, STRANGE, used)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls may write to a path that is not there."""
    monkeypatch.chdir(tmp_path)


def test_every_parameter_has_values() -> None:
    unknown = {
        parameter
        for function in FUNCTIONS.values()
        for parameter in inspect.signature(function).parameters
        if parameter not in VALUES
    }
    assert not unknown, "say in VALUES what they may be given"


def test_a_sample_of_calls() -> None:
    CALLS.run(150, seed=1)


@pytest.mark.thorough
def test_calls() -> None:
    CALLS.run(50_000)
