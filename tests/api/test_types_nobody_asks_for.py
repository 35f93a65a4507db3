"""A column of any type that no query names is no fault, by whatever way events come in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import uncertain_cep as uc
from uncertain_cep.cli import main

QUERY: Final = "PATTERN SEQ(A a, B b) WITHIN 9"


class Note(pa.ExtensionType):  # type: ignore[misc]
    """A type of a user; it has no hash, as any class with ``__eq__`` alone."""

    def __init__(self, storage: pa.DataType) -> None:
        super().__init__(storage, "tests.note")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Note:
        return cls(storage)


TEXTS: Final = pa.array(["x", None])
COLUMNS: Final = {
    "a user's text": pa.ExtensionArray.from_storage(Note(pa.string()), TEXTS),
    "a user's lists": pa.ExtensionArray.from_storage(Note(pa.list_(pa.int64())), pa.array([[1], None])),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, None], pa.binary(16))),
    "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", None])),
    "object": pa.array([{"a": 1}, None]),
    "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    "lists of lists": pa.array([[[1]], None]),
    "large list": pa.array([[1], None], pa.large_list(pa.int64())),
    "bytes": pa.array([b"\xff", None]),
    "view": TEXTS.cast(pa.string_view()),
    "views in lists": pa.array([["x"], None]).cast(pa.list_(pa.string_view())),
    "views in objects": pa.array([{"a": "x"}, None], pa.struct({"a": pa.string_view()})),
    "runs": pc.run_end_encode(TEXTS),
    "month": pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
}
OF_NO_FILE: Final = ("month", "runs")
"""Columns that Parquet does not know."""


@pytest.fixture(params=COLUMNS)
def events(request: pytest.FixtureRequest) -> Iterator[pa.Table]:
    column = COLUMNS[request.param]
    registered = isinstance(column.type, Note)
    if registered:
        pa.register_extension_type(column.type)
    yield pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [0, 5], "upper": [1, 5], "host": column})
    if registered:
        pa.unregister_extension_type("tests.note")


def test_frames(events: pa.Table) -> None:
    matches = uc.match(events, QUERY)
    assert matches.to_pylist() == [{"a": 1, "b": 2, "range_lower": 0, "range_upper": 5, "confidence": 1.0}]
    assert pa.Table.from_batches(uc.iter_matches(events, QUERY)) == matches
    assert uc.validate(events) == uc.validate(events, query=QUERY) == []
    assert "a: A" in uc.explain(QUERY, events)
    assert uc.events_of(matches, events, QUERY)["host"].to_pylist() == events["host"].to_pylist()
    assert uc.posteriors(matches, events, QUERY).num_rows == 2
    assert uc.with_matches(events, matches, "M")["type"].to_pylist() == ["A", "B", "M"]
    assert "<html" in str(uc.report(events, QUERY))
    with pytest.raises(uc.QueryError):
        uc.match(events, "PATTERN SEQ(A a, B b) WHERE a.host > 3 WITHIN 9")


@pytest.mark.parametrize("evaluation", ["auto", "sliced", "any_state"])
def test_streams(events: pa.Table, evaluation: str) -> None:
    def begun() -> uc.IncrementalMatcher:
        return uc.IncrementalMatcher(QUERY, events.schema, evaluation=evaluation, largest_interval=9)

    matcher, other = begun(), begun()
    assert matcher.push(events.slice(0, 1)).num_rows == 0
    other.restore(matcher.snapshot())
    assert other.push(events.slice(1)).num_rows + other.close().num_rows == 1
    alone = begun()
    rows: list[dict[str, Any]] = events.to_pylist()
    counts = [alone.push(event).num_rows for event in rows] + [alone.close().num_rows]
    assert sum(counts) == 1


def test_files(events: pa.Table, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if any(f"[{name}]" in request.node.name for name in OF_NO_FILE):
        pytest.skip("Parquet does not know the type")
    file, schema = tmp_path / "t.parquet", tmp_path / "schema.toml"
    pq.write_table(events, file)
    schema.write_text(
        'deduplicate = true\n[[events]]\ntype_column = "type"\nid = "id"\n'
        'uncertainty = { kind = "columns", lower = "lower", upper = "upper" }\n'
    )
    with pytest.warns(uc.UncertainCepWarning, match="2 events agree in everything with an earlier one"):
        assert uc.match(uc.read_traces([file, file], schema), QUERY).num_rows == 1
    commands: list[tuple[str, ...]] = [
        ("match", QUERY), ("match", f"{QUERY} RETURN a.*"),
        ("match", f"{QUERY} RETURN a.*", "--format", "json"),
        ("match", f"{QUERY} RETURN a.*", "-o", str(tmp_path / "m.parquet")),
        ("match", "PATTERN SEQ(A a, A b) WITHIN 3", QUERY, "--as", "M"), ("explain", QUERY), ("validate",),
        ("report", QUERY, "-o", str(tmp_path / "page.html")),
    ]  # fmt: skip
    for command in commands:
        result = CliRunner().invoke(main, [*command, str(file)])
        assert result.exit_code == 0, (command, result.stderr)


def test_what_csv_does_not_know_is_json_there(tmp_path: Path) -> None:
    rows = [
        {"type": "A", "id": 1, "lower": 0, "upper": 1, "o": {"a": 1, "b": [1, None]}},
        {"type": "B", "id": 2, "lower": 5, "upper": 5, "o": None},
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = CliRunner().invoke(main, ["match", f"{QUERY} RETURN a.*, b.*", str(tmp_path / "t.jsonl")])
    assert result.exit_code == 0, result.stderr
    assert '"{""a"": 1, ""b"": [1, null]}"' in result.stdout
