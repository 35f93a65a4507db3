"""Files and frames of raw stamps to interval events."""

from __future__ import annotations

from uncertain_cep.traces.bounds import columns
from uncertain_cep.traces.by_value import by_value
from uncertain_cep.traces.intervals import intervals_of
from uncertain_cep.traces.offsets import clock_offset
from uncertain_cep.traces.reading import read_traces
from uncertain_cep.traces.schema import TraceSchema, load_schema
from uncertain_cep.traces.uncertainty import (
    exact,
    granularity,
    histogram,
    plus_minus,
    window,
)
from uncertain_cep.traces.validate import (
    RowOrigin,
    ValidationReport,
    check_events,
    validate_traces,
    validation_report,
)

__all__ = [
    "RowOrigin",
    "TraceSchema",
    "ValidationReport",
    "by_value",
    "check_events",
    "clock_offset",
    "columns",
    "exact",
    "granularity",
    "histogram",
    "intervals_of",
    "load_schema",
    "plus_minus",
    "read_traces",
    "validate_traces",
    "validation_report",
    "window",
]
