"""An alert as a line of JSON, and the key that tells it from all others."""

from __future__ import annotations

import hashlib
import json
from typing import Final

import pyarrow as pa

from uncertain_cep.plan.grouping import BOUND_COLUMNS
from uncertain_cep.results.text_files import text_of

__all__ = ["alert_keys", "alert_lines"]

_NUMBERS: Final = ("probability", "confidence", "exact", "std_error", "suppressed", *BOUND_COLUMNS)
"""Columns that say something of an alert, and not which one it is."""


def alert_lines(alerts: pa.Table) -> list[str]:
    """Return a line of JSON for each alert, without the columns that are null: those of other rules."""
    rows = [json.loads(line) for line in text_of(alerts, "json").splitlines()]
    return [
        json.dumps({name: value for name, value in row.items() if value is not None}, ensure_ascii=False)
        for row in rows
    ]


def alert_keys(alerts: pa.Table) -> list[str]:
    """Return a key for each alert, 32 hexadecimal digits: the same for the same rule, events and ranges.

    Columns of probabilities do not count. Events count by the columns that the rule returns of them.
    A run that goes on from a checkpoint tells an alert again with the key that it had.
    """
    named = alerts.select([name for name in alerts.column_names if name not in _NUMBERS])
    return [hashlib.sha256(line.encode()).hexdigest()[:32] for line in alert_lines(named)]
