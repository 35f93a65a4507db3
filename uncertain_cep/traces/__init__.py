"""Files and frames of raw stamps to interval events."""

from __future__ import annotations

from uncertain_cep.traces.constraints import all_before, causal, encloses
from uncertain_cep.traces.events_schema import by_value
from uncertain_cep.traces.intervals import intervals_of
from uncertain_cep.traces.offsets import clock_offset
from uncertain_cep.traces.raw_spans import period
from uncertain_cep.traces.read_files import read_traces
from uncertain_cep.traces.schema import TraceSchema, load_schema
from uncertain_cep.traces.uncertainty import (
    as_written,
    columns,
    exact,
    granularity,
    histogram,
    plus_minus,
    window,
)

__all__ = [
    "TraceSchema",
    "all_before",
    "as_written",
    "by_value",
    "causal",
    "clock_offset",
    "columns",
    "encloses",
    "exact",
    "granularity",
    "histogram",
    "intervals_of",
    "load_schema",
    "period",
    "plus_minus",
    "read_traces",
    "window",
]
