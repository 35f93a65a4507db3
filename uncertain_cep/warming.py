"""Compiling kernels before they are needed, group by group."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

import pyarrow as pa

from confidence.kernel import always_compiled
from confidence.kernel_cache import is_marked, mark
from uncertain_cep.api import match
from uncertain_cep.boundary import public
from uncertain_cep.config.tuning import WORTH_A_LOOK
from uncertain_cep.errors import OptionError, UncertainCepWarning
from uncertain_cep.streaming.matcher import IncrementalMatcher
from uncertain_cep.traces.formats import compile_reading

__all__ = ["GROUPS", "warm_up"]

_THREE: Final = "PATTERN SEQ(A a, B b, C c)"
_FOUR: Final = "PATTERN SEQ(A a, B b, C c, D d)"
_VARIABLES: Final = "abcdefgh"
_ACROSS: Final = "WHERE [k] AND a.k + 0.5 > b.k WITHIN 5"
_KLEENE: Final = "PATTERN SEQ(A a, B+ b[], C c)"
_OTHER_LENGTHS: Final = "joins of other lengths"
_CLOCKS: Final = "shared clocks"
_READING: Final = "reading"
_NEXT: Final = "skip_till_next_match"


def _alone(*queries: str, **options: Any) -> tuple[tuple[str, dict[str, Any]], ...]:
    return tuple((query, options) for query in queries)


def _plain(*options: Mapping[str, Any]) -> tuple[tuple[str, dict[str, Any]], ...]:
    kinds = ("", " HAVING CONFIDENCE >= 0.01")
    return tuple(
        (f"{pattern} {_ACROSS}{kind}", dict(option))
        for pattern in (_THREE, _FOUR)
        for kind in kinds
        for option in options
    )


GROUPS: Final[Mapping[str, tuple[tuple[str, dict[str, Any]], ...]]] = {
    "joins": (
        *_plain({"evaluation": "query_order"}, {"planner": "trivial"}),
        *_alone(
            f"{_THREE} WITHIN 5",
            f"{_THREE} WHERE a.k % 2 = 0 WITHIN 5",
            f"{_THREE} WITHIN 5 ORDER BY CONFIDENCE DESC LIMIT 2",
            f"{_THREE} WITHIN 5 OUTPUT NON OVERLAPPING",
        ),
        *_alone(f"{_THREE} WITHIN 5", confidence=False),
    ),
    _OTHER_LENGTHS: _alone(
        *(
            f"PATTERN SEQ({', '.join(f'(A|B|C|D) {name}' for name in _VARIABLES[:length])}) WITHIN 12"
            for length in (2, 5, 6, 7, 8)
        ),
        "PATTERN SEQ(A a, B b) WITHIN 5 ORDER BY CONFIDENCE DESC LIMIT 2",
    ),
    "joins with skip till next match": _alone(
        f"{_THREE} WHERE {_NEXT}(a, b, c) WITHIN 5",
        f"{_THREE} WHERE {_NEXT}(a, b, c) AND [k] AND a.k + 0.5 > b.k WITHIN 5 HAVING CONFIDENCE >= 0.01",
    ),
    "conditions on times": _alone(
        f"{_THREE} WHERE TIME(b) - TIME(a) <= 2 WITHIN 6",
        f"{_THREE} WHERE TIME(b) - TIME(a) BETWEEN 1 AND 2 AND TIME(c) - TIME(a) <= 4 WITHIN 6",
        f"{_THREE} WHERE TIME(c) - TIME(a) >= 3 AND [k] WITHIN 6 HAVING CONFIDENCE >= 0.01",
        f"{_THREE} WHERE {_NEXT}(a, b, c) AND TIME(b) - TIME(a) <= 2 WITHIN 6",
    ),
    _CLOCKS: _alone(
        "PATTERN SEQ(A a, B b) WITHIN 5",
        f"{_THREE} WITHIN 5",
        f"{_FOUR} WITHIN 6",
        f"{_THREE} WHERE {_NEXT}(a, b, c) WITHIN 5",
        "PATTERN SEQ(A a, !D n, C c) WITHIN 6",
    ),
    "backtracking searches": _alone(
        f"{_KLEENE} WHERE b[i].k >= b[i-1].k AND count(b[]) < 3 WITHIN 6",
        f"{_KLEENE} WITHIN 6 HAVING CONFIDENCE >= 0.01",
        f"{_KLEENE} WITHIN 6 ORDER BY CONFIDENCE DESC LIMIT 2",
        f"{_KLEENE} WHERE {_NEXT}(a, b[], c) {{ [k] }} WITHIN 6",
        "PATTERN SEQ(A a, !D n, C c) WHERE n.k >= a.k WITHIN 6",
        "PATTERN SEQ(A a, !D n, C c) WHERE TIME(n) - TIME(a) <= 2 WITHIN 6",
        "PATTERN SEQ(!D n, A a, B b, !C m) WITHIN 6",
        "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) WITHIN 6",
        "PATTERN SEQ(A a, B+ b[], !D n, C c) WHERE partition_contiguity(a, b[], c) { [k] } WITHIN 6",
    ),
    "searches in sets": _alone(
        "PATTERN AND(A a, B b, C c) WHERE a.k + 0.5 > b.k WITHIN 5",
        "PATTERN AND(A a, B+ b[]) WHERE sum(b[].k) >= 0 WITHIN 5 HAVING CONFIDENCE >= 0.01",
        "PATTERN SEQ(AND(A a, B b), !C n, D d) WITHIN 6 ORDER BY CONFIDENCE DESC LIMIT 2",
        "PATTERN SEQ(AND(A a, B b), !C n, D d) WHERE TIME(n) - TIME(a) <= 2 WITHIN 6",
    ),
    "compressed searches": _alone(f"{_KLEENE} WHERE b[i].k >= 0 WITHIN 6", kleene="compressed"),
    "point-based automata": _alone(
        f"{_THREE} {_ACROSS}",
        f"{_KLEENE} WHERE {_NEXT}(a, b[], c) WITHIN 6",
        "PATTERN SEQ(A a, !D n, C c) WITHIN 6",
        "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) WITHIN 6",
        evaluation="point",
    ),
    "incremental methods": (
        *_plain({"evaluation": "any_state"}, {"evaluation": "selectivity"}),
        *_alone(f"{_THREE} WHERE {_NEXT}(a, b, c) WITHIN 5", evaluation="selectivity"),
    ),
    "expected counts": _alone(
        f"{_THREE} WITHIN 5 RETURN EXPECTED COUNT",
        f"{_THREE} WHERE [k] WITHIN 5 RETURN EXPECTED COUNT BY k EVERY 2",
        "PATTERN SEQ(A a, (A|B) b, (B|C) c) WITHIN 5 RETURN EXPECTED COUNT",
    ),
    "probabilities of groups": _alone(
        f"{_THREE} WITHIN 5 RETURN PROBABILITY",
        f"{_THREE} WITHIN 5 RETURN PROBABILITY OF AT LEAST 2 MATCHES BY a EVERY 2",
    ),
    _READING: (),
}
"""Group, see :data:`~uncertain_cep.config.tuning.KERNELS` -> queries that need its kernels, and options."""


@cache
def _events(group: str) -> tuple[pa.Table, ...]:
    """Return events with uniform times first, and others as a group of kernels takes them."""
    # Of joins of other lengths one match can have them all.
    lower = list(range(1, 9)) if group == _OTHER_LENGTHS else [1, 2, 3, 4] * 2
    upper = [tick + 2 for tick in lower]
    events = {
        "type": ["A", "B", "C", "D"] * 2,
        "id": range(8),
        "lower": lower,
        "upper": upper,
        "k": [0, 0, 0, 0, 1, 1, 1, 1],
    }
    uniform = pa.table(events)
    if group == _CLOCKS:
        # Two clocks, certain by them, and uncertain.
        events |= {"source": ["g", "h", "g", "g", "h", "g", "h", "h"], "offset_lower": [0] * 8}
        return pa.table(events | {"offset_upper": [2] * 8}), pa.table(events | {"offset_upper": [1] * 8})
    pmfs = pa.array([[0.25, 0.25, 0.5], None] * 4, pa.list_(pa.float64()))
    explicit = uniform.append_column("pmf", pmfs)
    if group != "joins":
        return uniform, explicit
    # Most of so many are out of reach of the others, and are left out beforehand.
    ticks, count = range(-WORTH_A_LOOK, 0), WORTH_A_LOOK
    distant = {"type": ["A"] * count, "id": ticks, "lower": ticks, "upper": ticks, "k": [0] * count}
    return uniform, explicit, pa.concat_tables((uniform, pa.table(distant)))


@public
def warm_up(
    groups: Iterable[str] | None = ("joins",), *, progress: Callable[[str], None] | None = None
) -> None:
    """Compile the kernels of some kinds of patterns, or load them from the cache on disk.

    Parameters
    ----------
    groups : iterable of str or None
        Names in ``uncertain_cep.warming.GROUPS``; None: all of them. By default those for sequences of single
        events, half a minute the first time on a machine.
    progress : callable, optional
        Called with the name of each group before it is compiled.

    Raises
    ------
    OptionError
        If there is no such group.

    Examples
    --------
    >>> import uncertain_cep as uc
    >>> uc.warm_up([])
    """
    chosen = tuple(GROUPS if groups is None else groups)
    for group in chosen:
        if group not in GROUPS:
            raise OptionError(f"there is no group {group!r} of kernels: they are {', '.join(GROUPS)}")
    for group in chosen:
        if progress is not None:
            progress(group)
        _compile(group)


def _compile(group: str) -> None:
    if group == _READING:
        with always_compiled():
            compile_reading()
        mark(group)
        return
    events = _events(group)
    with always_compiled(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UncertainCepWarning)
        for query, options in GROUPS[group]:
            for table in events:
                match(table, query, **options)
            if group == "incremental methods":
                _stream(events[0], query, options)
    mark(group)


def _stream(events: pa.Table, query: str, options: Mapping[str, Any]) -> None:
    matcher = IncrementalMatcher(query, events.schema, **options)
    for start in range(0, events.num_rows, 4):
        matcher.push(events.slice(start, 4))
    matcher.close()


def compile_in_background() -> None:
    """Compile groups that are not kept, named by the arguments, at low priority, until the parent ends."""

    def wait() -> None:
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(19)
    warm_up(group for group in sys.argv[1:] if not is_marked(group))
