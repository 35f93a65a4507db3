"""Small files and schemas for the tests of reading."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from uncertain_cep.errors import TraceError
from uncertain_cep.traces import TraceSchema, load_schema, read_traces
from uncertain_cep.traces.reading import LoadedTrace, load_traces

__all__ = ["flags", "messages", "put", "schema_of", "validation_report"]


def schema_of(folder: Path, text: str) -> TraceSchema:
    path = folder / "schema.toml"
    path.write_text(text, encoding="utf-8")
    return load_schema(path)


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def flags(**options: str) -> TraceSchema:
    return TraceSchema.from_flags(**{"uncertainty": "exact", "time": "t", **options})


def validation_report(
    paths: Sequence[Path] | Path, schema: TraceSchema | None = None, *, partition: Sequence[str] = ()
) -> LoadedTrace:
    return load_traces(paths, schema).with_checked_ids(partition)


def messages(*paths: Path, schema: TraceSchema | None = None) -> list[str]:
    """Return the faults, which reading and validating must tell alike."""
    with pytest.raises(TraceError) as caught:
        read_traces(paths, schema)
    faults = [str(fault) for fault in caught.value.faults]
    assert [str(fault) for fault in validation_report(paths, schema).faults][: len(faults)] == faults
    return faults
