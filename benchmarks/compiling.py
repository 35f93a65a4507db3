"""The cost of compiling: how many functions, for how long, and which kernels are the dearest."""

from __future__ import annotations

import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, Final

from numba.core import event

import uncertain_cep as uc
from benchmarks.figures import Options, Results
from benchmarks.isolated import ONE_THREAD, IsolatedError, run_isolated
from benchmarks.workload import KEYED, THREE, WINDOW, Stream, sequence_query
from confidence.kernel_cache import PACKAGES
from uncertain_cep.config import tuning

__all__ = ["measure"]

_EVENTS: Final = 1000

_SERIES: Final = "a.value % 40 = 0 AND b[i].value % 44 = 0 AND c.value % 52 = 0"
_SINGLES: Final = "a.value % 40 = 0 AND b.value % 44 = 0 AND c.value % 52 = 0"

_QUERIES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "plain": (sequence_query(THREE), {}),
    "Kleene": (f"PATTERN SEQ(E a, E+ b[], E c) WHERE {_SERIES} WITHIN {WINDOW}", {}),
    "negation": (
        "PATTERN SEQ(E a, !E n, E b) WHERE a.value % 20 = 0 AND n.value % 26 = 0 AND b.value % 22 = 0 "
        f"WITHIN {WINDOW}",
        {},
    ),
    "skip till next": (sequence_query(KEYED, next_match=True), {}),
    "set": (f"PATTERN AND(E a, E b, E c) WHERE {_SINGLES} WITHIN {WINDOW}", {}),
    "point based": (sequence_query(KEYED), {"evaluation": "point"}),
}
"""Name -> the text of the query, and what else :func:`uncertain_cep.match` gets."""

_DEAREST: Final = 12


@dataclass(slots=True)
class _Compiled:
    """One function that Numba compiled: its own seconds on the processor, without what it calls."""

    name: str
    is_ours: bool
    seconds: float


@dataclass(slots=True)
class _Compiles(event.Listener):
    done: list[_Compiled] = field(default_factory=list)
    begun: list[list[float]] = field(default_factory=list)

    def on_start(self, _: Any) -> None:
        self.begun.append([time.process_time(), 0.0])

    def on_end(self, event: Any) -> None:
        begun, inner = self.begun.pop()
        took = time.process_time() - begun
        if self.begun:
            self.begun[-1][1] += took
        function = event.data["dispatcher"].py_func
        module = getattr(function, "__module__", None) or ""
        is_ours = module.partition(".")[0] in PACKAGES
        self.done.append(_Compiled(f"{module}.{function.__qualname__}", is_ours, took - inner))


def _compiled(name: str) -> tuple[float, list[_Compiled]]:
    """Return the seconds of a first answer, on the processor, and what was compiled for it."""
    events = Stream(_EVENTS, 5).table()
    compiles = _Compiles()
    register: Any = event.register
    register("numba:compile", compiles)
    query, options = _QUERIES[name]
    tuning.FEW_EVENTS = 0
    started = time.process_time()
    uc.match(events, query, **options)
    return time.process_time() - started, compiles.done


def measure(_: Options) -> Results:
    """Ask each query once in a fresh process with an empty cache, whatever the number of rounds."""
    results = Results()
    for name in _QUERIES:
        with tempfile.TemporaryDirectory() as cache:
            try:
                seconds, done = run_isolated(
                    _compiled, name, environment=ONE_THREAD | {"NUMBA_CACHE_DIR": cache}
                )
            except IsolatedError as error:
                results.failures.append(f"{name}: {error}")
                continue
        variants = Counter(one.name for one in done if one.is_ours)
        spent: defaultdict[str, float] = defaultdict(float)
        for one in done:
            spent[one.name] += one.seconds
        count = variants.total()
        note = f"{len(variants)} kernels in {count} variants, {len(done) - count} functions of Numba"
        results.add(f"{name}, first answer", seconds, "s of the processor")
        results.add(f"{name}, functions compiled", len(done), "functions", note=note)
        results.breakdowns[f"{name}: the dearest, without what they call"] = [
            {"kernel": kernel, "s": took, "variants": variants[kernel]}
            for kernel, took in sorted(spent.items(), key=lambda item: -item[1])[:_DEAREST]
        ]
    return results
