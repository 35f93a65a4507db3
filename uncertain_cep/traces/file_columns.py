"""The columns that the events of each file have, where several files are one trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.timeline.domain import Names

__all__ = ["FileColumns", "types_of"]

_NAMES: Final = Names()


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns and the types of the events that one table of a schema makes of a file."""

    file: str
    columns: frozenset[str]
    types: frozenset[str]

    def __or__(self, other: FileColumns) -> FileColumns:
        """Merge the columns and types of two spans of the file."""
        return FileColumns(self.file, self.columns | other.columns, self.types | other.types)


def types_of(table: pa.Table) -> frozenset[str]:
    """Return the types of events."""
    types = table.column(_NAMES.type).cast(pa.string())
    return frozenset(pc.unique(types).drop_null().to_pylist())
