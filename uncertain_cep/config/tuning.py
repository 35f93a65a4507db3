"""Numbers and prices that only decide how long an answer takes, with the benchmark that tells.

``--only topk`` stands for ``python -m benchmarks main --only topk``, before and after a change of the numbers
below it. What one module reads stands beside its code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Batches and memory: `python -m benchmarks main --only throughput --only memory`.

EXPRESSION_ROWS: Final = 1 << 19
"""Rows that are looked at together: so many that threads seldom wait for the interpreter, and an interrupt is
minded soon."""

WORTH_A_KERNEL: Final = 1 << 16
"""Rows from which on a kernel compares their texts or remainders, which may have to be compiled first."""

# Threads: `--only threads`.

PARTS_PER_THREAD: Final = 4
"""Parts of the candidates for each thread, so that a busy hour is shared by several."""

EVEN_PARTS_PER_THREAD: Final = 1
"""The same where every part has about as much work, and all is soon done: each part takes half a millisecond
in which no other thread has the interpreter."""

MOST_IN_FEW_PARTS: Final = 1 << 20
"""Candidates from which on a call takes so long that it says more often how far it is."""

UNEVEN_PARTS: Final = 1.25
"""Matches of an event in one part as a multiple of their mean, up to which parts are even."""

LEAST_LOOKED_AT: Final = 1 << 16
"""Rows of a table below which it is not worth a thread to look which components they are for, where texts or
pmfs are looked at."""

LEAST_NUMBERS: Final = 1 << 17
"""The same for numbers: in a smaller table a thread waits for the interpreter as long as it works."""

LEAST_GATHERED: Final = 1 << 20
"""Rows of a table below which times of candidates are gathered before another thread begins."""

LEAST_PART: Final = 8192
"""Candidates below which a part is not worth a thread."""

MOST_REPEATED: Final = 1.25
"""Candidates of all parts as a multiple of those there are, above which they are not cut by time."""

# What a call says of its progress.

BETWEEN_LINES: Final = 0.2
"""Seconds between two lines of it."""

# What one answer may cost: `--only language --only points --only expected`.

BOXES_AT_ONCE: Final = 1 << 16
"""Confidences with an event at a tick, or up to one, that are asked for at once, to see when it happened."""

GROUPED_AT_ONCE: Final = 1 << 15
"""Matches whose groups are weighed at once, about: a kilobyte each."""

WEIGHER_PRICES: Final = {
    "gap chain": (1_400.0, 1.4),
    "ideals": (750.0, 2.4),
    "bounded chain": (200.0, 0.25),
    "two times": (1_200.0, 1.2),
    "held chain": (31_000.0, 0.08),
    "held time": (60_000.0, 0.25),
    "elimination": (1_000.0, 0.9),
}
"""ns of a match, and of each of its multiplications, by weighers: `python -m benchmarks fit-weighers`."""

# Expected counts: `--only expected`; the tests compare all ways with sums of confidences.

COUNT_BATCH: Final = 1 << 20
"""Expected counts that are held before those of one group and bucket are added up."""

# Match windows: `--only throughput --only plans`.

WORTH_A_LOOK: Final = 1000
"""Fewer candidates are matched before it is known which of them to drop."""

# Statistics that planners choose by: `--only plans`, which also measures the time that planning takes;
# tests/optimizer/test_statistics.py compares them with counts over everything.

SAMPLED_EVENTS: Final = 2048
"""Rows of the table that types and local predicates are looked at on."""

COARSE_SAMPLE: Final = 3072
"""Candidates of all components together in the sample that is joined at first."""

FINE_SAMPLE: Final = 16_384
"""The same where it pays to know more."""

UNKNOWN_SELECTIVITY: Final = 0.5
"""Of a predicate over several events of a Kleene component, which no pair of events can tell."""

# How far planners look, and from when on a plan is worth while: `--only plans`, at most 50 ms a plan.

FEW_CHOICES: Final = 2_000_000
"""Choices of one candidate for each component that are tried sooner than a plan is made."""

LONG_EVALUATION: Final = 5e7
"""From so many ns on that an evaluation is expected to take, statistics are measured on a larger sample."""

# Prices of the steps of an evaluation: `python -m benchmarks fit` fits those of joins anew; `--only plans`
# compares the plans that they choose with the best.


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of the steps of an evaluation, ns; measured on one machine, only ratios matter."""

    candidate: float
    """To lay a candidate out."""
    search: float
    """To find where the partners of a partial match begin and end."""
    probe: float
    """To look at two partial matches that order, window and equalities let go together, or at a candidate."""
    ask: float
    """To evaluate predicates of them."""
    partial: float
    """To keep a partial match."""
    sort: float
    """To sort a partial match of several components before it is joined with others."""
    match: float
    """To describe a match."""


TREE_PRICES: Final = Prices(
    candidate=100.0, search=45.0, probe=3.0, ask=130.0, partial=5.0, sort=120.0, match=160.0
)
"""Of the joins of a tree: rounded from a fit to 341 runs, on 69 random patterns of 3 to 5 components."""

PIVOT_PRICES: Final = Prices(
    candidate=100.0, search=0.0, probe=5.0, ask=57.0, partial=52.0, sort=0.0, match=45.0
)
"""Of the join without a tree: rounded from a fit to 68 runs on the same patterns."""

BACKTRACKING_PRICES: Final = Prices(
    candidate=0.0, search=0.0, probe=30.0, ask=100.0, partial=1000.0, sort=0.0, match=4000.0
)
"""Of the backtracking search, which looks whether the gaps of a match can be free of what is forbidden."""

# Kernels as plain Python, and compiled: `--only cold --only latency`.

FEW_EVENTS: int = 20_000
"""Events below which an evaluation begins with plain Python."""

PLAIN_SECONDS: float = 1.0
"""Seconds of plain Python in a process until compiled kernels are loaded, which takes about as long."""

PLAIN_SECONDS_UNCOMPILED: float = 10.0
"""The same where kernels would have to be compiled first, which takes 10 to 80 s."""

TOO_FEW_EVENTS: Final = 200
"""Events of a first call that is over before anything could be compiled beside it."""

SOON_SECONDS: Final = 0.1
"""Seconds of plain Python in a process after which calls even with so few events have kernels compiled."""

BETWEEN_WORDS: Final = 5.0
"""Seconds between two lines on how far compiling is."""

KERNELS: Final = {
    "joins": 55,
    "joins of other lengths": 35,
    "joins with skip till next match": 45,
    "conditions on times": 30,
    "shared clocks": 40,
    "backtracking searches": 115,
    "searches in sets": 80,
    "compressed searches": 50,
    "point-based automata": 100,
    "incremental methods": 60,
    "expected counts": 15,
    "probabilities of groups": 60,
    "reading": 4,
}
"""Group of kernels -> how many there are, more or less: what users are told while they are compiled."""

# Streams: `python -m benchmarks incremental`.

FEW_HELD: Final = 1024
"""Events, or partitions, below which it is not worth a pass to drop some."""

KAFKA_ROWS: Final = 10_000
"""Messages of Kafka that are handed on at a time."""

CUT_AT_ONCE: Final = 1_000_000
"""Rows of a stream that a Python worker cuts, or matches, at a time."""

# Spark, and when to start it: `--only spark`.

ROWS_PER_PARTITION: Final = 4_000_000
"""Candidates that a Python worker holds in memory at a time."""

ROWS_WORTH_A_TASK: Final = 20_000
"""Fewer candidates are matched before another Python task has started."""
