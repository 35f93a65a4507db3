"""Conditions on times: confidences by shape and tick, distances, what pruning saves; and options."""

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

_MATCHES: Final = 20_000
_CHAIN: Final = "PATTERN SEQ(A a, B b, C c, D d, E e)"


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
    _add_distances(options, results)
    _add_forbidden(options, results)
    _add_pruning(options, results)
    _add_options(options, results)
    return results


def _add_distances(options: Options, results: Results) -> None:
    """Add what whole queries with bounds between neighbours take beside one without."""
    events = _events(options.events(20_000), 10)
    plain = "PATTERN SEQ(A a, B b, C c)"
    queries = {
        "none": plain,
        "least": f"{plain} WHERE TIME(b) - TIME(a) >= 5 AND TIME(c) - TIME(b) >= 5",
        "largest": f"{plain} WHERE TIME(b) - TIME(a) <= 150",
    }
    timings = take_turns(
        {
            name: partial(uc.match, events, f"{query} WITHIN 300", threads=1)
            for name, query in queries.items()
        },
        options.rounds,
    )
    each = {name: 1e6 * timing.seconds(options.clock) / timing.rows for name, timing in timings.items()}
    note = f"{each['least']:.2f} us a match against {each['none']:.2f}"
    rounds = timings["least"].rounds(options.clock)
    results.add(
        "least distances against none", each["least"] / each["none"], "x", at_most(1.15), rounds, note
    )
    rounds = timings["largest"].rounds(options.clock)
    results.add("one largest distance, the whole query", each["largest"], "us", None, rounds, "a match, l=3")


def _add_forbidden(options: Options, results: Results) -> None:
    """Add what a match takes whose gaps forbid events under conditions, or whose conditions cross."""
    events = _events(options.events(20_000), 30)
    within = " AND TIME(d) - TIME(b) <= 40 AND TIME(c) - TIME(a) <= 40 WITHIN 150"
    queries = {
        "a negation with a condition": "SEQ(A a, !E n, B b) WHERE TIME(n) - TIME(a) <= 20 WITHIN 60",
        "skip till next match with conditions": (
            "SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c) AND TIME(b) - TIME(a) >= 5 "
            "AND TIME(c) - TIME(b) <= 60 WITHIN 200"
        ),
        "conditions that cross": f"SEQ(A a, B b, C c, D d) WHERE a.id < d.id{within}",
    }
    for name, query in queries.items():
        matched = partial(uc.match, events, f"PATTERN {query}", threads=1)
        timing = take_turns({"": matched}, options.rounds)[""]
        each = 1e6 * timing.seconds(options.clock) / timing.rows
        rounds = timing.rounds(options.clock)
        results.add(f"{name}, the whole query", each, "us", None, rounds, "a match, up to 30 ticks")


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

    def found(some: EvaluationPlan) -> int:
        return sum(batch.num_rows for batch in execute(some, events))

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
    for name, count, asked, longest in shapes:
        lower = 5 * np.arange(count + 2)
        upper = lower + np.random.default_rng(1).integers(0, 9, count + 2)
        types = ["A", *["B"] * count, "C"]
        events = pa.table({"type": types, "id": np.arange(count + 2), "lower": lower, "upper": upper})

        def found(pattern: str, events: pa.Table = events) -> int:
            batches = uc.iter_matches(events, f"PATTERN {pattern} WITHIN 1000", threads=1)
            return sum(batch.num_rows for batch in batches)

        timings = take_turns(
            {"all": partial(found, asked), "longest": partial(found, longest)}, options.rounds
        )
        whole, one = (timings[key].seconds(options.clock) for key in ("all", "longest"))
        rounds = timings["all"].rounds(options.clock)
        note = f"{timings['all'].rows:,} matches against {timings['longest'].rows:,}"
        results.add(f"{name} against its longest reading", whole / one, "x", at_most(2.0), rounds, note)
