"""Numbers for the partitions of a stream: the same from one table of events to the next, and used again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.candidates.selection import Selection
from uncertain_cep.config.tuning import FEW_HELD
from uncertain_cep.plan import EvaluationPlan

__all__ = ["PartitionNumbers"]

Int64 = NDArray[np.int64]


def _plain(column: pa.ChunkedArray, common_type: pa.DataType) -> list[Any]:
    """Return values that are equal, and hash alike, exactly if the attributes are equal."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not pa.types.is_integer(column.type):
        column = column.cast(common_type.value_type if pa.types.is_dictionary(common_type) else common_type)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


class PartitionNumbers:
    """The partitions of which something is held."""

    def __init__(self, plan: EvaluationPlan) -> None:
        self._keys = plan.partitioning.keys
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._free: list[int] = []
        self._settled = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def numbered(self, table: pa.Table, selection: Selection) -> Selection:
        """Return the candidates of a table with lasting partition numbers. O(candidates + new partitions)."""
        if not self._keys:
            return selection
        sizes = [len(part) for part in selection.rows]
        rows = np.concatenate(selection.rows)
        component = np.repeat(np.arange(len(sizes)), sizes)
        if selection.partition is None:
            here: Int64 = np.zeros(len(rows), dtype=np.int64)
        else:
            here = np.concatenate(selection.partition)
        _, one, inverse = np.unique(here, return_index=True, return_inverse=True)
        columns = [self._values(table, key.columns, rows[one], component[one]) for key in self._keys]
        numbers_of_values = [self.number(values) for values in zip(*columns, strict=True)]
        numbers = np.array(numbers_of_values, dtype=np.int64)[inverse.reshape(-1)]
        return replace(
            selection,
            partition=tuple(np.split(numbers, np.cumsum(sizes)[:-1])),
            partitions=len(self._numbers) + len(self._free),
        )

    def _values(self, table: pa.Table, names: tuple[str, ...], rows: Int64, component: Int64) -> list[Any]:
        """Return one attribute of some candidates, whose column depends on the component."""
        values = np.empty(len(rows), dtype=object)
        common_type = table.schema.field(names[0]).type
        for name in dict.fromkeys(names):
            in_column = np.isin(component, [j for j, other in enumerate(names) if other == name])
            values[in_column] = _plain(table.column(name).take(pa.array(rows[in_column])), common_type)
        return list(values)

    def number(self, values: tuple[Any, ...]) -> int:
        """Return the lasting number of the partition with these values."""
        number = self._numbers.get(values)
        if number is None:
            number = self._free.pop() if self._free else len(self._numbers)
            self._numbers[values] = number
        return number

    @property
    def crowded(self) -> bool:
        """Whether so many partitions came that nothing may be held of most."""
        return len(self) > 2 * self._settled + FEW_HELD

    def forget(self, in_use: NDArray[np.bool_]) -> Int64:
        """Forget the partitions that are not in use, and return their numbers, which will be used again."""
        gone = {values: number for values, number in self._numbers.items() if not in_use[number]}
        for values in gone:
            del self._numbers[values]
        self._free += gone.values()
        self._settled = len(self._numbers)
        return np.array(list(gone.values()), dtype=np.int64)
