"""The matches of one query as events of the next, in Python."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import uncertain_cep as uc
from uncertain_cep.errors import OptionError
from uncertain_cep.timeline.domain import TICK_METADATA

EVENTS = pa.table(
    {
        "type": ["Load", "Crash", "Load", "Crash", "Page"],
        "id": [1, 2, 3, 4, 9],
        "lower": [1, 4, 11, 13, 18],
        "upper": [3, 6, 12, 16, 19],
        "host": ["u", "u", "v", "v", None],
    }
)
OVERLOAD = "PATTERN SEQ(Load a, Crash b) WHERE [host] WITHIN 10 RETURN b.id - a.id AS gap"


def _frame(kind: str, table: pa.Table) -> Any:
    return {"pyarrow": lambda: table, "pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table)}[
        kind
    ]()


def _rows(frame: Any) -> list[dict[str, Any]]:
    if isinstance(frame, pd.DataFrame):
        frame = pa.Table.from_pandas(frame, preserve_index=False)
    rows: list[dict[str, Any]] = (
        frame.to_arrow().to_pylist() if isinstance(frame, pl.DataFrame) else frame.to_pylist()
    )
    return rows


@pytest.mark.parametrize("kind", ["pyarrow", "pandas", "polars"])
def test_matches_as_events(kind: str) -> None:
    made = uc.to_events(uc.match(_frame(kind, EVENTS), OVERLOAD), "Overload")
    assert isinstance(made, type(_frame(kind, EVENTS)))
    common = {"type": "Overload", "gap": 1, "confidence": 1.0}
    assert _rows(made) == [
        {**common, "id": 1, "lower": 1, "upper": 6, "host": "u", "a": 1, "b": 2},
        {**common, "id": 2, "lower": 11, "upper": 16, "host": "v", "a": 3, "b": 4},
    ]


@pytest.mark.parametrize("kind", ["pyarrow", "pandas", "polars"])
def test_a_query_over_the_matches_of_another(kind: str) -> None:
    events = _frame(kind, EVENTS)
    joined = uc.with_matches(events, uc.match(events, OVERLOAD), "Overload")
    assert isinstance(joined, type(events))
    matches = uc.match(joined, "PATTERN SEQ(Overload first, Overload second, Page p) WITHIN 30")
    assert _rows(matches) == [
        {"first": 10, "second": 11, "p": 9, "range_lower": 1, "range_upper": 19, "confidence": 1.0}
    ]
    again = uc.match(joined, "PATTERN SEQ(Load a, Overload o) WHERE o.gap = 1 AND o.a = a.id WITHIN 30")
    # An event and the match it is part of are independent: it can come before it.
    assert {(row["a"], row["o"]) for row in _rows(again)} == {(1, 10), (3, 11)}


def test_ids_of_a_column_and_of_text() -> None:
    matches = uc.match(EVENTS, OVERLOAD)
    assert uc.to_events(matches, "X", id="b")["id"].to_pylist() == [2, 4]
    assert uc.to_events(matches, "X", first_id=7)["id"].to_pylist() == [7, 8]
    assert uc.to_events(matches, "X", prefix="x")["id"].to_pylist() == ["x1", "x2"]
    text = EVENTS.set_column(1, "id", EVENTS["id"].cast(pa.string()))
    joined = uc.with_matches(text, uc.match(text, OVERLOAD.replace("b.id - a.id", "1")), "X")
    assert joined["id"].to_pylist() == ["1", "2", "3", "4", "9", "X:1", "X:2"]


def test_other_names_and_the_tick() -> None:
    names = {"type": "kind", "lower": "from", "upper": "to"}
    events = EVENTS.rename_columns(["kind", "id", "from", "to", "host"])
    events = events.replace_schema_metadata({TICK_METADATA: b"1s"})
    joined = uc.with_matches(events, uc.match(events, OVERLOAD, names=names), "X", names=names)
    assert joined.schema.metadata[TICK_METADATA] == b"1s"
    matches = uc.match(joined, "PATTERN SEQ(X a, X b) WITHIN 20 seconds", names=names)
    assert matches.num_rows == 1
    made = uc.to_events(uc.match(events, OVERLOAD, names=names), "X", tick="1s")
    assert made.schema.metadata[TICK_METADATA] == b"1s"


def test_no_match_still_brings_the_columns() -> None:
    none = uc.match(EVENTS, OVERLOAD.replace("WITHIN 10", "WITHIN 1"))
    joined = uc.with_matches(EVENTS, none, "X")
    assert joined.num_rows == EVENTS.num_rows
    assert uc.match(joined, "PATTERN SEQ(X a) WHERE a.gap > 1 WITHIN 1").num_rows == 0


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "PATTERN SEQ(Load a, Crash b) WITHIN 10 RETURN a.host AS type",
            "an attribute type, which is a column",
        ),
        ("PATTERN SEQ(Load host, Crash b) WITHIN 10", "host is of type string in the trace and int64 in the"),
    ],
)
def test_columns_that_do_not_go_together(query: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        uc.with_matches(EVENTS, uc.match(EVENTS, query), "X")


def test_what_is_refused() -> None:
    matches = uc.match(EVENTS, OVERLOAD)
    with pytest.raises(OptionError, match="the trace has events of type Load already"):
        uc.with_matches(EVENTS, matches, "Load")
    with pytest.raises(OptionError, match="the matches have no column range_lower"):
        uc.to_events(EVENTS, "X")
    with pytest.raises(OptionError, match="the matches have no column c"):
        uc.to_events(matches, "X", id="c")
    with pytest.raises(OptionError, match="the events have no column lower"):
        uc.with_matches(EVENTS.drop(["lower"]), matches, "X")
