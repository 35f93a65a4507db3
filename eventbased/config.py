"""Numeric thresholds of the event-based evaluation, each named once.

``python -m benchmarks main`` tells whether they still hold: ``--only throughput --only peers`` for joins of
candidates (``peers`` has mixed lengths), ``--only plans`` for trees, ``--only language`` for searches and
gaps; ``python -m benchmarks incremental`` for events as they arrive.
"""

from __future__ import annotations

from typing import Final

POSITION_STEP: Final = 1
"""Ticks taken off a time for each component before its own where sequences are joined.

``A_j = lower_j - j`` and ``B_j = upper_j - j``: what has to be in strict order then has to be in weak order,
and components need not be neighbours to be compared. A backtracking search takes off nothing, as its matches
differ in length. :func:`eventbased.layout.lay_out` takes positions off, and what describes matches adds them.
"""

LONGEST_LINE: Final = 2**62 + 2**20
"""Ticks of the time line on which partitions are laid out one behind the other, around tick 0."""

BLOCK_ROWS: Final = 8192
"""Partial matches that are extended together."""

SPARE: Final = 8
"""Places behind the last candidate, or the last match of an output column, that kernels read or write."""

FILTERED_AT_ONCE: Final = 8192
"""Matches that are weighed before those that are not likely enough are left out: their columns stay in the
processor's cache."""

BOUND_MARGIN: Final = 1.0 - 4e-9
"""A match is left out if a bound is below this share of the confidence to reach; see ``thresholds.py``."""

CONFIDENCE_ERROR: Final = 1e-9
"""What float64 may lose of a confidence, relatively; see ``thresholds.py``."""

WORTH_CLIMBING: Final = 4096
"""Candidates from which on a join costs more than to find out how far a match's events are apart at least."""

ROUNDING: Final = 4e-15
"""Above what float64 may lose of a probability of two uniform times, so that an upper bound stays one."""

MATERIALISED_ROWS: Final = 2**20
"""Most partial matches of a right subtree that are held at a time: about 40 bytes each for two components."""

MATCH_CUBES: Final = 2**24
"""Matches times the third power of their length that are described at a time: a tenth of a second or so."""

WHOLE_BATCHES: Final = (2, 3, 4)
"""Lengths of matches that one kernel finds and weighs, which takes two seconds to compile each.

Longer ones take two kernels: the time between their calls is a smaller share of the whole.
"""

MOST_TICK_STEPS: Final = 2**24
"""Most steps that the ticks of one interval count for."""

# Survival tables of gaps under skip till next match. Fitted to v = (10, 11, 13), W = 100 at half intervals 5,
# 20 and 50: at 5 no table is made, at 50 a match takes half as long; `python -m benchmarks paper --only 4e`.

MOST_SPREAD: Final = 1024
"""Ticks from the start of one interval to the end of the next up to which a gap uses tables."""

TABLE_CELLS: Final = 2**18
"""Cells held for each component if the spreads are small; a power of two."""

LEAST_TABLED: int = 64
"""Matches with negations from which on it is tried whether they share what tables hold."""

FEW_FORBIDDEN: Final = 4
"""Forbidden events of a gap from which on its survival table pays."""

# Events as they arrive: `python -m benchmarks incremental`.
