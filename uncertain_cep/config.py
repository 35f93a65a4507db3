"""The numeric thresholds and prices of the library, each named once, with what tells whether it still holds.

None of them changes an answer. ``--only topk`` stands for ``python -m benchmarks main --only topk``, before
and after a change of the numbers below it. Those of kernels are in the ``config`` of their package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# What is accepted as input, and what float64 is trusted with: tested at its edge, not measured.

MAX_TICK: Final = 2**61
"""Largest magnitude of a time in ticks: differences and window ends of such times stay within int64."""

PMF_TOLERANCE: Final = 1e-9
"""How far the sum of a probability mass function may be from 1."""

CONFIDENCE_TOLERANCE: Final = 1e-9
"""How far below a threshold, relative to it, a confidence still passes it: what rounding may take off."""

CERTAIN: Final = 1.0 - CONFIDENCE_TOLERANCE
"""Confidence from which a match counts as certain: what ``HAVING CONFIDENCE >= 1`` keeps."""

RANKED_DIGITS: Final = 12
"""Significant digits by which confidences are ranked and tie."""

FAULT_LIMIT: Final = 20
"""How many rows with the same fault are listed one by one; the others are counted."""

MOST_TICKS_OF_READINGS: Final = 1 << 23
"""Probabilities, in all, of the events of a file that have two possible times; 64 MiB of them."""

MOST_BITS: Final = 62
"""Components that fit into the bits of an int64."""

MOST_PAIRS: Final = 100_000_000
"""Most pairs of events that one constraint on clocks may compare: about 3 GB."""

# Batches and memory: `python -m benchmarks main --only throughput --only memory`.

BATCH_ROWS: Final = 131_072
"""Rows of a batch unless the caller says otherwise."""

MOST_BATCH_ROWS: Final = 1 << 24
"""Rows of a batch at most, whatever the caller says: arrays of so many are made beforehand."""

MAX_MATCHES: Final = 50_000_000
"""Most matches that are collected in one table unless the caller says otherwise."""

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

LONGEST_PMF_CHAIN: Final = 10_000_000
"""Most ticks from the first to the last time of a match with an explicit pmf: its confidence walks them."""

BOXES_AT_ONCE: Final = 1 << 16
"""Confidences with an event at a tick, or up to one, that are asked for at once, to see when it happened."""

PMF_TICKS: Final = 10_000
"""Ticks of an interval up to which posteriors list the probability of each."""

MOST_TICKS_OF_A_LAW: Final = 100_000
"""Most ticks of the time of a match that becomes an event: each has a confidence of its own."""

SHOWN_MATCHES: Final = 10_000
"""Most matches in the table of a report: the best ones."""

WEIGHED_GROUPS: Final = 100
"""Most values of a column for which a report weighs how likely a match is; one may take .4 s."""

COMPARED_MATCHES: Final = 200_000
"""Most matches of a report that are compared with those on raw stamps."""

LONGEST_POINT_INTERVAL: Final = 1_000_000
"""Most ticks of an interval that the point-based evaluation goes through one by one."""

MOST_CONFIDENCE_STEPS: Final = 200_000_000
"""Most multiplications spent on the confidence of one match, whatever weighs it: about a second."""

MOST_GROUP_STEPS: Final = 20_000_000
"""Most literals, or so, that are looked at for the probability of one group of matches: about 0.1 s."""

GROUPED_AT_ONCE: Final = 1 << 15
"""Matches whose groups are weighed at once, about: a kilobyte each."""

WEIGHER_PRICES: Final = {
    "gap chain": (1_400.0, 1.4),
    "ideals": (750.0, 2.4),
    "bounded chain": (200.0, 0.25),
    "elimination": (1_000.0, 0.9),
}
"""ns of a match, and of each of its multiplications, by weighers: `python -m benchmarks fit-weighers`."""

MOST_OFFSETS: Final = 1_000_000
"""Most choices of offsets of shared clocks that are gone through for one match: about a second."""

MOST_RECORD_CELLS: Final = 10_000_000
"""Most cells of one array over the ticks of records whose order is known: some tenths of a second."""

# Conditions on times.

MOST_CELLS_IN_TABLE: Final = 1 << 24
"""Most cells of one of these tables: 128 MiB."""

# Expected counts: `--only expected`; the tests compare all ways with sums of confidences.

MOST_COVERED_TICKS: Final = 2**24
"""Most ticks of one partition over which expected counts are summed tick by tick: about 60 bytes each."""

COUNT_BATCH: Final = 1 << 20
"""Expected counts that are held before those of one group and bucket are added up."""

MOST_REPEATED_STEPS: Final = 2_000_000_000
"""Most steps over pairs of ticks of events to take their uses with themselves off expected counts."""

MOST_SHARING: Final = 5
"""Components up to which what the uses of one event in several of them count is taken off again."""

# The k best matches, and thresholds that rise: `--only topk`.

# Match windows: `--only throughput --only plans`.

WORTH_A_LOOK: Final = 1000
"""Fewer candidates are matched before it is known which of them to drop."""

# What a call warns of: a look that takes next to nothing beside `--only throughput`.

DIAGNOSED_ROWS: Final = 16_384
"""Rows that tell how far the values of a column go."""

SAMPLED_FOR_NOTHING: Final = 1024
"""Events among which a query without matches is asked again without each of its conditions."""

SECONDS_FOR_NOTHING: Final = 1.0
"""How long that may take, all in all."""

MOST_COMPARED_TYPES: Final = 2000
"""Types among which names that are nearly the same are looked for."""

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

LARGEST_ESTIMATE: Final = 1e300
"""What estimates are kept below, so that sums of products of them stay finite where it matters."""

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

MOST_STREAM_COPIES: Final = 100
"""Slices that an event is kept in at most; with more, the slices are too short."""

KAFKA_ROWS: Final = 10_000
"""Messages of Kafka that are handed on at a time."""

CUT_AT_ONCE: Final = 1_000_000
"""Rows of a stream that a Python worker cuts, or matches, at a time."""

# Spark, and when to start it: `--only spark`.

IN_PROCESS_BYTES: Final = 512 * 2**20
"""Files of up to this size in total, unpacked, are matched in process, unless an option says otherwise."""

ROWS_PER_PARTITION: Final = 4_000_000
"""Candidates that a Python worker holds in memory at a time."""

ROWS_WORTH_A_TASK: Final = 20_000
"""Fewer candidates are matched before another Python task has started."""

END_SECONDS: Final = 5.0
"""Seconds that Spark has to stop a stream, before it is asked again, and that Java has to end, before it is
killed."""
