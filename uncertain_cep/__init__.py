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

# isort: skip_file
import sys as _sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

from uncertain_cep.running.installation import VERSION as _VERSION, check_at_import as _check_at_import

if TYPE_CHECKING:
    from uncertain_cep import examples as examples, plot as plot, testing as testing
    from uncertain_cep.api import (
        explain as explain,
        iter_matches as iter_matches,
        match as match,
    )
    from uncertain_cep.clocks.inferring import infer_offsets as infer_offsets
    from uncertain_cep.clocks.logs import read_clock_log as read_clock_log
    from uncertain_cep.reporting.calibrated import calibration as calibration
    from uncertain_cep.reporting.why import why as why
    from uncertain_cep.resolving.decided import deciding as deciding
    from uncertain_cep.errors import (
        ConfidenceCostError as ConfidenceCostError,
        Fault as Fault,
        InternalError as InternalError,
        MatchExistsError as MatchExistsError,
        MatchLimitError as MatchLimitError,
        MemoryLimitError as MemoryLimitError,
        OptionError as OptionError,
        QueryError as QueryError,
        QuerySyntaxError as QuerySyntaxError,
        RuntimeEnvironmentError as RuntimeEnvironmentError,
        TimeLimitError as TimeLimitError,
        TraceError as TraceError,
        TraceFault as TraceFault,
        UncertainCepError as UncertainCepError,
        UncertainCepWarning as UncertainCepWarning,
    )
    from uncertain_cep.happened_before.drawn_worlds import draw_worlds as draw_worlds
    from uncertain_cep.happened_before.ordering import order as order
    from uncertain_cep.inspection import (
        events_of as events_of,
        posteriors as posteriors,
        report as report,
        show as show,
    )
    from uncertain_cep.intervals import to_intervals as to_intervals
    from uncertain_cep.misses import why_not as why_not
    from uncertain_cep.joining.asof_joins import join_asof as join_asof
    from uncertain_cep.joining.elapsed_times import elapsed as elapsed
    from uncertain_cep.joining.pair_joins import join as join
    from uncertain_cep.joining.tied_spans import spans as spans
    from uncertain_cep.plan import Approximation as Approximation
    from uncertain_cep.query import Query as Query, parse as parse
    from uncertain_cep.query.sql_queries import sql as sql
    from uncertain_cep.results.composition import to_events as to_events, with_matches as with_matches
    from uncertain_cep.rule_sets.rule_files import rules as rules
    from uncertain_cep.rule_sets.rule_streams import RuleMatcher as RuleMatcher
    from uncertain_cep.streaming.matcher import IncrementalMatcher as IncrementalMatcher
    from uncertain_cep.timeline.domain import Names as Names
    from uncertain_cep.traces import (
        all_before as all_before,
        as_written as as_written,
        by_value as by_value,
        causal as causal,
        clock_offset as clock_offset,
        columns as columns,
        encloses as encloses,
        exact as exact,
        granularity as granularity,
        histogram as histogram,
        load_schema as load_schema,
        period as period,
        plus_minus as plus_minus,
        read_traces as read_traces,
        window as window,
    )
    from uncertain_cep.validation import validate as validate
    from uncertain_cep.warming import warm_up as warm_up

_check_at_import()

__version__: Final = _VERSION

_MODULES: Final = {
    "uncertain_cep.api": ("explain", "iter_matches", "match"),
    "uncertain_cep.clocks.inferring": ("infer_offsets",),
    "uncertain_cep.clocks.logs": ("read_clock_log",),
    "uncertain_cep.reporting.calibrated": ("calibration",),
    "uncertain_cep.reporting.why": ("why",),
    "uncertain_cep.resolving.decided": ("deciding",),
    "uncertain_cep.results.composition": ("to_events", "with_matches"),
    "uncertain_cep.rule_sets.rule_files": ("rules",),
    "uncertain_cep.rule_sets.rule_streams": ("RuleMatcher",),
    "uncertain_cep.streaming.matcher": ("IncrementalMatcher",),
    "uncertain_cep.errors": (
        "ConfidenceCostError", "Fault", "InternalError", "MatchExistsError", "MatchLimitError",
        "MemoryLimitError", "OptionError", "QueryError", "QuerySyntaxError", "RuntimeEnvironmentError",
        "TimeLimitError", "TraceError", "TraceFault", "UncertainCepError", "UncertainCepWarning",
    ),
    "uncertain_cep.happened_before.drawn_worlds": ("draw_worlds",),
    "uncertain_cep.happened_before.ordering": ("order",),
    "uncertain_cep.inspection": ("events_of", "posteriors", "report", "show"),
    "uncertain_cep.intervals": ("to_intervals",),
    "uncertain_cep.misses": ("why_not",),
    "uncertain_cep.joining.asof_joins": ("join_asof",),
    "uncertain_cep.joining.elapsed_times": ("elapsed",),
    "uncertain_cep.joining.pair_joins": ("join",),
    "uncertain_cep.joining.tied_spans": ("spans",),
    "uncertain_cep.plan": ("Approximation",),
    "uncertain_cep.query": ("Query", "parse"),
    "uncertain_cep.query.sql_queries": ("sql",),
    "uncertain_cep.timeline.domain": ("Names",),
    "uncertain_cep.traces": (
        "all_before", "as_written", "by_value", "causal", "clock_offset", "columns", "encloses", "exact",
        "granularity", "histogram", "load_schema", "period", "plus_minus", "read_traces", "window",
    ),
    "uncertain_cep.validation": ("validate",),
    "uncertain_cep.warming": ("warm_up",),
}  # fmt: skip
_HOMES: Final = {name: module for module, names in _MODULES.items() for name in names}

_ROOMS: Final = ("examples", "plot", "testing")
"""Modules that are public themselves."""

__all__ = sorted(("__version__", *_HOMES, *_ROOMS))


def __getattr__(name: str) -> object:
    """Import the part that holds a public name when it is first used: importing the package stays quick."""
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


if "IPython" in _sys.modules:
    import_module("uncertain_cep.results.notebooks").show_matches()
