"""The state of a matcher as bytes, for a matcher made in the same way."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from typing import Any, Final

from uncertain_cep.errors import OptionError
from uncertain_cep.streaming.stream_layout import differences

__all__ = ["packed_snapshot", "unpacked_snapshot"]

_MAGIC: Final = b"uncertain-cep snapshot\n"


def packed_snapshot(fingerprint: Mapping[str, Any], held: Mapping[str, Any]) -> bytes:
    """Return the state as bytes, marked with the fingerprint of its matcher."""
    mark = json.dumps(fingerprint, sort_keys=True).encode()
    return b"".join((_MAGIC, mark, b"\n", pickle.dumps(dict(held), protocol=5)))


def unpacked_snapshot(fingerprint: Mapping[str, Any], snapshot: bytes) -> dict[str, Any]:
    """Return the state in a snapshot.

    Raises
    ------
    OptionError
        If it is no snapshot, or one of another matcher.
    """
    blob: Any = snapshot
    if not isinstance(blob, bytes | bytearray | memoryview) or not bytes(blob).startswith(_MAGIC):
        raise OptionError("this is no snapshot of an IncrementalMatcher: give what snapshot() returned")
    mark, _, body = bytes(blob).removeprefix(_MAGIC).partition(b"\n")
    if difference := differences(json.loads(mark), fingerprint):
        raise OptionError(f"the snapshot is of another matcher: {difference}")
    try:
        held: dict[str, Any] = pickle.loads(body)
    except (EOFError, pickle.UnpicklingError) as error:
        raise OptionError(f"the snapshot is cut off or changed: {error}") from None
    return held
