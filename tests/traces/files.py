"""Small files and schemas for the tests of reading."""

from __future__ import annotations

from pathlib import Path

import pytest

from uncertain_cep.errors import TraceError
from uncertain_cep.traces import TraceSchema, load_schema, read_traces, validate_traces

__all__ = ["flags", "messages", "put", "schema_of"]


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


def messages(*paths: Path, schema: TraceSchema | None = None) -> list[str]:
    """Return the faults, which reading and validating must tell alike."""
    with pytest.raises(TraceError) as caught:
        read_traces(paths, schema)
    found = [str(fault) for fault in caught.value.faults]
    assert [str(fault) for fault in validate_traces(paths, schema)][: len(found)] == found
    return found
