"""Conditions on times: confidences by shape and tick, queries beside those without, pruning; and options."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

import uncertain_cep as uc
from benchmarks.figures import Options, Results, Target, at_least, at_most
from benchmarks.timing import pin_to_one_core, take_turns
from confidence.timed.bounded_matches import describe_bounded
from confidence.timed.bounds import UNBOUND
from confidence.timed.cycles import CycleWork
from confidence.timed.ticks import describe_by_ticks
from uncertain_cep.executor import execute
from uncertain_cep.plan import EvaluationPlan, make_plan
from uncertain_cep.query.binder import MAX_WINDOW

__all__ = ["measure"]

_SHAPES: Final[tuple[tuple[str, int, int, float, Target], ...]] = (
    ("one upper bound", 3, 1, 0.0, at_most(0.4)),
    ("one upper bound", 6, 1, 0.0, at_most(0.8)),
    ("all bounded", 3, 2, 0.0, at_most(2.0)),
    ("all bounded", 6, 5, 0.0, at_most(10.0)),
    ("all bounded, in a window", 3, 2, 1.0, at_most(15.0)),
    ("all bounded, in a window", 6, 5, 1.0, at_most(120.0)),
)
"""Name, events, differences bound from above, the window in lengths of an interval (0: none), us a match."""

_BY_TICKS: Final = ((3, 130), (6, 65))
"""Events, and the ticks of each: below 400 in all."""

_MATCHES: Final = 20_000
_CHAIN: Final = "PATTERN SEQ(A a, B b, C c, D d, E e)"
_ABC: Final = "SEQ(A a, B b, C c)"
_NEXT: Final = f"{_ABC} WHERE skip_till_next_match(a, b, c)"
_ABCD: Final = "SEQ(A a, B b, C c, D d) WHERE a.id < d.id"


def measure(options: Options) -> Results:
    """Time the confidences of matches, and whole queries beside those without conditions."""
    pin_to_one_core(options.core)
    results = Results()
    for ticks in (100, 10_000, 1_000_000):
        for name, length, uppers, window, target in _SHAPES:
            weighed = partial(_weighed, _random(ticks, length, uppers, window))
            timing = take_turns({"": weighed}, options.rounds)[""]
            each = timing.seconds(options.clock) / _MATCHES * 1e6
            rounds = timing.rounds(options.clock)
            results.add(f"confidence, l={length}, {ticks:,} ticks, {name}", each, "us", target, rounds, "")
    for length, ticks in _BY_TICKS:
        timing = take_turns(
            {"": partial(_added_up, _random(ticks, length, length - 1, 0.0))}, options.rounds
        )[""]
        each = timing.seconds(options.clock) / _MATCHES * 1e6
        rounds = timing.rounds(options.clock)
        results.add(
            f"by ticks, l={length}, {ticks:,} ticks, all bounded", each, "us", at_most(1.5), rounds, ""
        )
    _add_whole(options, results)
    _add_pruning(options, results)
    _add_options(options, results)
    return results


_WHOLE: Final[tuple[tuple[str, int, str, str, Target], ...]] = (
    (
        "least distances against none", 10,
        f"{_ABC} WHERE TIME(b) - TIME(a) >= 5 AND TIME(c) - TIME(b) >= 5 WITHIN 300", f"{_ABC} WITHIN 300",
        at_most(1.15),
    ),
    (
        "one largest distance against none", 10, f"{_ABC} WHERE TIME(b) - TIME(a) <= 150 WITHIN 300",
        f"{_ABC} WITHIN 300", at_most(10.0),
    ),
    (
        "a negation with a condition against one without", 30,
        "SEQ(A a, !E n, B b) WHERE TIME(n) - TIME(a) <= 20 WITHIN 60", "SEQ(A a, !E n, B b) WITHIN 60",
        at_most(2.0),
    ),
    (
        "skip till next match with conditions against without", 30,
        f"{_NEXT} AND TIME(b) - TIME(a) >= 5 AND TIME(c) - TIME(b) <= 60 WITHIN 200", f"{_NEXT} WITHIN 200",
        at_most(15.0),
    ),
    (
        "conditions that cross against those of neighbours", 30,
        f"{_ABCD} AND TIME(d) - TIME(b) <= 40 AND TIME(c) - TIME(a) <= 40 WITHIN 150",
        f"{_ABCD} AND TIME(b) - TIME(a) <= 20 AND TIME(c) - TIME(b) <= 20 AND TIME(d) - TIME(c) <= 20 "
        "WITHIN 150",
        at_most(4.0),
    ),
)  # fmt: skip
"""Name, longest interval, a query and the one that it stands beside, and how much more a match may take."""


def _add_whole(options: Options, results: Results) -> None:
    """Add what a match takes by whole queries with conditions, beside queries that ask less."""
    for name, longest, query, beside, target in _WHOLE:
        events = _events(options.events(20_000), longest)
        timings = take_turns(
            {
                key: partial(uc.match, events, f"PATTERN {pattern}", threads=1)
                for key, pattern in (("own", query), ("beside", beside))
            },
            options.rounds,
        )
        own_time, other = (
            1e6 * timings[key].seconds(options.clock) / timings[key].rows for key in ("own", "beside")
        )
        rounds, note = timings["own"].rounds(options.clock), f"{own_time:.2f} us a match against {other:.2f}"
        results.add(name, own_time / other, "x", target, rounds, note)


def _events(count: int, longest: int) -> pa.Table:
    random = np.random.default_rng(1)
    lower = np.sort(random.integers(0, 10 * count, count))
    types, upper = random.choice(list("ABCDE"), count), lower + random.integers(0, longest, count)
    return pa.table({"type": types, "id": np.arange(count), "lower": lower, "upper": upper})


def _weighed(matches: tuple[Any, ...]) -> int:
    """Weigh matches, and return their number."""
    kernel: Any = describe_bounded
    kernel(*matches)
    return _MATCHES


def _added_up(matches: tuple[Any, ...]) -> int:
    """Weigh matches tick by tick, and return their number."""
    lower, upper, size, g, h, windows, _, *_, out = matches
    length, longest = lower.shape[1], int(size.max())
    work = np.empty((2, length), dtype=np.int64), np.empty((2, longest)), np.empty((2, longest))
    kernel: Any = describe_by_ticks
    kernel(lower, upper, np.zeros_like(lower), size, np.empty(0), g, h, windows, *work, out)
    return _MATCHES


def _random(ticks: int, length: int, uppers: int, window: float) -> tuple[Any, ...]:
    """Return random matches as the kernel takes them."""
    shape = _MATCHES, length
    lower = np.sort(np.random.default_rng(1).integers(0, ticks, shape), axis=1)
    g, h = np.full(shape, max(ticks // 10, 1)), np.full(shape, UNBOUND)
    h[:, 1 : uppers + 1] = ticks // 2
    windows = np.full(_MATCHES, int(window * ticks) if window else MAX_WINDOW)
    out = (*np.empty((2, _MATCHES), dtype=np.int64), np.empty(_MATCHES))
    return (
        lower, lower + ticks - 1, np.full(shape, float(ticks)), g, h, windows, True,
        np.empty((10, length), dtype=np.int64), np.empty((4, 2 * length + 1)), CycleWork.of(length), out,
    )  # fmt: skip


def _add_pruning(options: Options, results: Results) -> None:
    """Add what it saves that bounds between events prune the search."""
    events = _events(options.events(1500), 8)
    gaps = " AND ".join(f"TIME({y}) - TIME({x}) <= 20" for x, y in ("ab", "bc", "cd", "de"))
    plan = make_plan(uc.parse(f"{_CHAIN} WHERE {gaps} WITHIN 1000"), events.schema)
    unpruned = replace(plan, joined=(), distances=None, bound=replace(plan.bound, window=1000))

    def found(plan: EvaluationPlan) -> int:
        return sum(batch.num_rows for batch in execute(plan, events))

    timings = take_turns({"on": partial(found, plan), "off": partial(found, unpruned)}, 1)
    on, off = (timings[name].seconds(options.clock) for name in ("on", "off"))
    rounds = timings["on"].rounds(options.clock)
    note = f"five components, {timings['on'].rows:,} matches: {on:.3f} s against {off:.3f} s"
    results.add(
        "gaps of at most 20 in a window of 1,000, pruned", off / on, "x", at_least(10.0), rounds, note
    )


def _add_options(options: Options, results: Results) -> None:
    """Add what options cost beside their longest reading alone."""
    shapes = (
        ("B{1,6}", 22, "SEQ(A a, B{1,6} b[], C c)", "SEQ(A a, B{6} b[], C c)"),
        ("four B?", 50, "SEQ(A a, B? b, B? d, B? e, B? f, C c)", "SEQ(A a, B b, B d, B e, B f, C c)"),
    )
    for name, count, pattern, longest in shapes:
        lower = 5 * np.arange(count + 2)
        upper = lower + np.random.default_rng(1).integers(0, 9, count + 2)
        types = ["A", *["B"] * count, "C"]
        events = pa.table({"type": types, "id": np.arange(count + 2), "lower": lower, "upper": upper})

        def found(pattern: str, events: pa.Table = events) -> int:
            batches = uc.iter_matches(events, f"PATTERN {pattern} WITHIN 1000", threads=1)
            return sum(batch.num_rows for batch in batches)

        timings = take_turns(
            {"all": partial(found, pattern), "longest": partial(found, longest)}, options.rounds
        )
        whole, one = (timings[key].seconds(options.clock) for key in ("all", "longest"))
        rounds = timings["all"].rounds(options.clock)
        note = f"{timings['all'].rows:,} matches against {timings['longest'].rows:,}"
        results.add(f"{name} against its longest reading", whole / one, "x", at_most(2.0), rounds, note)
