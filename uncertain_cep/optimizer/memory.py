"""A cache of statistics, by plan and candidates.

The key is a digest of what they are measured on: numbers of candidates, and a sample of their intervals and
attributes. So it does not matter in which object or file the events are, and no event is kept in memory. Two
traces that agree in all that share their statistics; a plan made with those of the other is at worst slow.
"""

from __future__ import annotations

import os
import tempfile
from collections import OrderedDict
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Final, Generic, TypeVar

import numpy as np
import pyarrow as pa

from uncertain_cep.candidates.selection import Selection
from uncertain_cep.config.tuning import COARSE_SAMPLE
from uncertain_cep.files.cache_folder import cache_folder
from uncertain_cep.optimizer.measuring import measure
from uncertain_cep.optimizer.statistics import Statistics
from uncertain_cep.plan.evaluation_plan import EvaluationPlan
from uncertain_cep.query import format_expression
from uncertain_cep.query.typed import attribute_names

__all__ = ["MEMORY", "Recent", "StatisticsMemory", "fingerprint", "keep_on_disk", "remembered"]

Held = TypeVar("Held")

MOST_HELD: Final = 64
"""Statistics, and choices by them, held in memory; those that were not asked for longest go first."""

MOST_FILES: Final = 256
"""Statistics kept on disk; the oldest go first."""

_SAMPLED_ROWS: Final = 64
"""Rows of each component whose intervals and attributes are part of the key of its statistics."""


class Recent(Generic[Held]):
    """A cache of the ``MOST_HELD`` values used last, by key; several threads may use it."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: str) -> Held | None:
        """Return the value of a key; None if there is none."""
        value = self._held.get(key)
        if value is not None:
            Recent.put(self, key, value)
        return value

    def put(self, key: str, held: Held) -> None:
        """Keep the value of a key."""
        with self._lock:
            self._held[key] = held
            self._held.move_to_end(key)
            while len(self._held) > MOST_HELD:
                self._held.popitem(last=False)

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._held.clear()


class StatisticsMemory(Recent[Statistics]):
    """A cache of statistics by key; once ``folder`` is set, also as JSON on disk.

    A file that cannot be read or written is passed over.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder: Path | None = None

    def get(self, key: str) -> Statistics | None:
        """Return the statistics of a key; None if there are none."""
        statistics = super().get(key)
        if statistics is None and self.folder is not None:
            with suppress(OSError, ValueError):
                statistics = Statistics.from_json((self.folder / f"{key}.json").read_text())
                super().put(key, statistics)
        return statistics

    def put(self, key: str, held: Statistics) -> None:
        """Keep the statistics of a key."""
        super().put(key, held)
        if self.folder is not None:
            with suppress(OSError):
                self._write(self.folder, key, held)

    def _write(self, folder: Path, key: str, statistics: Statistics) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # Written aside and moved into place, so that no other process reads half of it.
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".part", delete=False) as file:
            file.write(statistics.to_json())
        os.replace(file.name, folder / f"{key}.json")
        files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in files[: max(0, len(files) - MOST_FILES)]:
            path.unlink()


MEMORY: Final = StatisticsMemory()
"""The cache of this process."""


def keep_on_disk() -> None:
    """Keep the statistics of this process in the user's cache directory, for later processes."""
    MEMORY.folder = cache_folder() / "statistics"


def remembered(
    plan: EvaluationPlan,
    table: pa.Table,
    selection: Selection,
    *,
    sampled: int = COARSE_SAMPLE,
    key: str | None = None,
) -> Statistics:
    """Return the statistics of candidates, from the cache or measured.

    ``key`` is their :func:`fingerprint`, if it is known.
    """
    key = f"{fingerprint(plan, table, selection) if key is None else key}-{sampled}"
    statistics = MEMORY.get(key)
    if statistics is None:
        statistics = measure(plan, table, selection, sampled=sampled)
        MEMORY.put(key, statistics)
    return statistics


def fingerprint(plan: EvaluationPlan, table: pa.Table, selection: Selection) -> str:
    """Return a digest of what the statistics of a plan's candidates depend on, of a sample of the candidates.

    O(components), whatever the number of events.
    """
    parts = (*plan.components, *(negation.component for negation in plan.negations))
    facts = [
        repr((part.variable, part.types, part.kleene, [format_expression(local) for local in part.local]))
        for part in parts
    ]
    facts += [format_expression(predicate) for predicate in plan.joined]
    sizes = [len(rows) for rows in selection.rows]
    facts += [repr((plan.window, table.num_rows, selection.partitions, sizes))]
    digest = blake2b("\n".join(facts).encode(), digest_size=16)
    places = [np.linspace(0, size - 1, min(size, _SAMPLED_ROWS)).astype(np.int64) for size in sizes]
    columns = [selection.rows, selection.lower, selection.upper]
    columns += [] if selection.partition is None else [selection.partition]
    sampled = [
        np.concatenate(
            [part[places_of_component] for part, places_of_component in zip(column, places, strict=True)]
        )
        for column in columns
    ]
    digest.update(np.concatenate(sampled).tobytes())
    names = sorted({name for predicate in plan.joined for name in attribute_names(predicate)})
    if plan.negations:
        # The events of negated components are not selected yet.
        model = [plan.names.type, plan.names.lower, plan.names.upper]
        rows = np.linspace(0, table.num_rows - 1, min(table.num_rows, _SAMPLED_ROWS)).astype(np.int64)
        digest.update(repr(table.select(model).take(pa.array(rows)).to_pydict()).encode())
        if plan.names.pmf in table.column_names and not pa.types.is_null(table.column(plan.names.pmf).type):
            pmfs = table.column(plan.names.pmf).take(pa.array(rows)).combine_chunks()
            digest.update(np.asarray(pmfs.flatten().to_numpy(zero_copy_only=False), np.float64).tobytes())
    if names:
        digest.update(repr(table.select(names).take(pa.array(sampled[0])).to_pydict()).encode())
    return digest.hexdigest()
