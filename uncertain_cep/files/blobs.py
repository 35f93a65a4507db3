"""Tables as blobs of compressed Arrow, marked with the stream that they belong to."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

__all__ = ["packed", "unpacked"]

_MARK: Final = b"uncertain_cep.fingerprint"


def packed(table: pa.Table, mark: bytes = b"") -> bytes:
    """Return a table as a blob, marked with a fingerprint."""
    sink = pa.BufferOutputStream()
    schema = table.schema.with_metadata({_MARK: mark})
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table.replace_schema_metadata(schema.metadata))
    blob: bytes = sink.getvalue().to_pybytes()
    return blob


def unpacked(blob: bytes) -> tuple[pa.Table, bytes]:
    """Return the table of a blob, and its mark."""
    with pa.ipc.open_stream(blob) as reader:
        table = reader.read_all()
    return table.replace_schema_metadata(None), (table.schema.metadata or {}).get(_MARK, b"")
