"""Statistics that were measured before, of the same candidates for the same plan.

The key is a digest of what they are measured on: numbers of candidates, and a sample of their intervals and
attributes. So it does not matter in which object or file the events are, and nothing is kept alive. Should
two traces ever agree in all that, one would be planned for with the statistics of the other: a plan is never
wrong, at worst slow.
"""

from __future__ import annotations

import os
import tempfile
from collections import OrderedDict
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np
import pyarrow as pa

from uncertain_cep.cache_folder import cache_folder
from uncertain_cep.plan.measuring import COARSE, measure
from uncertain_cep.plan.plan import EvaluationPlan
from uncertain_cep.plan.statistics import Statistics
from uncertain_cep.query import format_expression
from uncertain_cep.query.typed import columns_in
from uncertain_cep.selection import Selection

__all__ = ["MEMORY", "StatisticsMemory", "fingerprint", "keep_on_disk", "remembered"]

MOST_HELD: Final = 64
"""Statistics held in memory; those that were not asked for longest go first."""

MOST_FILES: Final = 256
"""Statistics kept on disk; the oldest go first."""

SAMPLED_ROWS: Final = 64
"""Rows of each component whose intervals and attributes are part of the key."""


class StatisticsMemory:
    """A bounded memory of statistics by their key; on disk too once a folder is set.

    Attributes
    ----------
    folder : Path or None
        Where to look and keep them, as JSON; problems with files are passed over.
    """

    def __init__(self) -> None:
        self.folder: Path | None = None
        self._held: OrderedDict[str, Statistics] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: str) -> Statistics | None:
        """Return the statistics of a key; None if there are none."""
        found = self._held.get(key)
        if found is None and self.folder is not None:
            with suppress(OSError, ValueError):
                found = Statistics.from_json((self.folder / f"{key}.json").read_text())
        if found is not None:
            self._hold(key, found)
        return found

    def put(self, key: str, statistics: Statistics) -> None:
        """Keep the statistics of a key."""
        self._hold(key, statistics)
        if self.folder is not None:
            with suppress(OSError):
                self._write(self.folder, key, statistics)

    def clear(self) -> None:
        """Forget what is in memory."""
        with self._lock:
            self._held.clear()

    def _hold(self, key: str, statistics: Statistics) -> None:
        with self._lock:
            self._held[key] = statistics
            self._held.move_to_end(key)
            while len(self._held) > MOST_HELD:
                self._held.popitem(last=False)

    def _write(self, folder: Path, key: str, statistics: Statistics) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # Written aside and moved, so that no other process reads half of it.
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".part", delete=False) as file:
            file.write(statistics.to_json())
        os.replace(file.name, folder / f"{key}.json")
        files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in files[: max(0, len(files) - MOST_FILES)]:
            path.unlink()


MEMORY: Final = StatisticsMemory()
"""That of this process."""


def keep_on_disk() -> None:
    """Have the statistics of this process kept in the user's cache directory, for programs to come."""
    MEMORY.folder = cache_folder() / "statistics"


def remembered(
    plan: EvaluationPlan, table: pa.Table, selection: Selection, *, sampled: int = COARSE
) -> Statistics:
    """Return the statistics of candidates, measured unless that was done before.

    Parameters
    ----------
    plan, table, selection, sampled
        As for :func:`uncertain_cep.plan.measuring.measure`.
    """
    key = fingerprint(plan, table, selection, sampled)
    found = MEMORY.get(key)
    if found is None:
        found = measure(plan, table, selection, sampled=sampled)
        MEMORY.put(key, found)
    return found


def fingerprint(plan: EvaluationPlan, table: pa.Table, selection: Selection, sampled: int) -> str:
    """Return a digest of what statistics of a plan's candidates depend on, as far as a sample tells it.

    Parameters are those of :func:`remembered`. O(components), whatever the number of events.
    """
    digest = blake2b(digest_size=16)
    parts = (*plan.components, *(found.component for found in plan.negations))
    facts = [
        repr((part.variable, part.types, part.kleene, [format_expression(local) for local in part.local]))
        for part in parts
    ]
    facts += [format_expression(predicate) for predicate in plan.joined]
    facts += [repr((plan.window, sampled, table.num_rows, selection.partitions))]
    digest.update("\n".join(facts).encode())
    names = sorted(
        {column.name for predicate in plan.joined for column in columns_in(predicate) if column.name}
    )
    for j, rows in enumerate(selection.rows):
        places = np.linspace(0, len(rows) - 1, min(len(rows), SAMPLED_ROWS)).astype(np.int64)
        digest.update(repr(len(rows)).encode())
        for array in (rows, selection.lower[j], selection.upper[j]):
            digest.update(np.ascontiguousarray(array[places]).tobytes())
        if selection.partition is not None:
            digest.update(np.ascontiguousarray(selection.partition[j][places]).tobytes())
        if names:
            digest.update(repr(table.select(names).take(pa.array(rows[places])).to_pydict()).encode())
    return digest.hexdigest()
