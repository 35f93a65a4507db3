"""Pattern queries over events whose times are known only as intervals.

>>> import pyarrow as pa
>>> import uncertain_cep as uc
>>> events = pa.table({
...     "type": ["A", "C", "B", "C"], "id": ["a1", "c2", "b3", "c4"],
...     "lower": [1, 3, 3, 4], "upper": [5, 5, 5, 8],
... })
>>> matches = uc.match(events, "PATTERN SEQ(A a, B b, C c) WITHIN 4 ORDER BY CONFIDENCE DESC LIMIT 1")
>>> matches.to_pylist()
[{'a': 'a1', 'b': 'b3', 'c': 'c4', 'range_lower': 1, 'range_upper': 7, 'confidence': 0.12}]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from uncertain_cep.api import explain, iter_matches, match, warm_up
    from uncertain_cep.errors import (
        ConfidenceCostError,
        Fault,
        MatchLimitError,
        OptionError,
        QueryError,
        QuerySyntaxError,
        RuntimeEnvironmentError,
        TimeLimitError,
        TraceError,
        TraceFault,
        UncertainCepError,
        UncertainCepWarning,
    )
    from uncertain_cep.intervals import to_intervals
    from uncertain_cep.plan import Approximation
    from uncertain_cep.query import Query, parse
    from uncertain_cep.results.composition import to_events, with_matches
    from uncertain_cep.streaming.matcher import IncrementalMatcher
    from uncertain_cep.timedomain import Names
    from uncertain_cep.traces import (
        by_value,
        clock_offset,
        columns,
        exact,
        granularity,
        histogram,
        load_schema,
        plus_minus,
        read_traces,
        window,
    )
    from uncertain_cep.validation import validate

__version__: Final = "0.1.0"

__all__ = [
    "Approximation",
    "ConfidenceCostError",
    "Fault",
    "IncrementalMatcher",
    "MatchLimitError",
    "Names",
    "OptionError",
    "Query",
    "QueryError",
    "QuerySyntaxError",
    "RuntimeEnvironmentError",
    "TimeLimitError",
    "TraceError",
    "TraceFault",
    "UncertainCepError",
    "UncertainCepWarning",
    "__version__",
    "by_value",
    "clock_offset",
    "columns",
    "exact",
    "explain",
    "granularity",
    "histogram",
    "iter_matches",
    "load_schema",
    "match",
    "parse",
    "plus_minus",
    "read_traces",
    "to_events",
    "to_intervals",
    "validate",
    "warm_up",
    "window",
    "with_matches",
]

_MODULES: Final = {
    "uncertain_cep.api": ("explain", "iter_matches", "match", "warm_up"),
    "uncertain_cep.results.composition": ("to_events", "with_matches"),
    "uncertain_cep.streaming.matcher": ("IncrementalMatcher",),
    "uncertain_cep.intervals": ("to_intervals",),
    "uncertain_cep.plan": ("Approximation",),
    "uncertain_cep.query": ("Query", "parse"),
    "uncertain_cep.timedomain": ("Names",),
    "uncertain_cep.traces": (
        "by_value", "clock_offset", "columns", "exact", "granularity", "histogram", "load_schema",
        "plus_minus", "read_traces", "window",
    ),
    "uncertain_cep.validation": ("validate",),
}  # fmt: skip
_HOMES: Final = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import the part that holds a public name when it is first used: importing the package stays quick."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "uncertain_cep.errors")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
