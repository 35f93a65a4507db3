"""Numeric thresholds of the event-based evaluation, each named once."""

from __future__ import annotations

from typing import Final

CLASS_RATIO_BITS: Final = 2
"""Intervals of one length class differ in length by at most a factor of 2 to this power."""

CLASS_MERGE_EVENTS: Final = 4.0
"""Two length classes are merged while a search then passes at most about this many more events."""

LONGEST_LINE: Final = 2**62 + 2**20
"""Ticks of the time line on which partitions are laid out one behind the other, around tick 0."""

BLOCK_ROWS: Final = 8192
"""Partial matches that are extended together."""

SPARE: Final = 8
"""Places behind the last candidate, or the last match of an output column, that kernels read or write."""

BOUND_MARGIN: Final = 1.0 - 4e-9
"""A match is left out if a bound is below this share of the confidence to reach; see ``thresholds.py``."""

ROUNDING: Final = 4e-15
"""Above what float64 may lose of a probability of two uniform times, so that an upper bound stays one."""

BLOCK_PLACES: Final = 2**23
"""Blocks have fewer rows where all blocks of a chain of joins would hold more candidates than this."""

MATERIALISED_ROWS: Final = 2**20
"""Most partial matches of a right subtree that are held at a time: about 40 bytes each for two components."""

DENSE_KEYS: Final = 4
"""Groups of equal values are found by a table while it has at most so many entries for each row."""

SEARCH_STEPS: Final = 16
"""Steps that a search by bisection among the candidates counts for."""

MATCH_CUBES: Final = 2**24
"""Matches times the third power of their length that are described at a time: a tenth of a second or so."""
