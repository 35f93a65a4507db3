"""Limits that users are promised: the largest input that is taken, and the most that one answer may cost.

A call that goes beyond one ends in an error, or says what it left out; none changes an answer.
"""

from __future__ import annotations

from typing import Final

MAX_TICK: Final = 2**61
"""Largest magnitude of a time in ticks: differences and window ends of such times stay within int64."""

FAULT_LIMIT: Final = 20
"""How many rows with the same fault are listed one by one; the others are counted."""

MOST_TICKS_OF_READINGS: Final = 1 << 23
"""Probabilities, in all, of the events of a file that have two possible times; 64 MiB of them."""

MOST_BITS: Final = 62
"""Components that fit into the bits of an int64."""

MOST_PAIRS: Final = 100_000_000
"""Most pairs of events that one constraint on clocks may compare: about 3 GB."""

BATCH_ROWS: Final = 131_072
"""Rows of a batch unless the caller says otherwise."""

MOST_BATCH_ROWS: Final = 1 << 24
"""Rows of a batch at most, whatever the caller says: arrays of so many are made beforehand."""

MAX_MATCHES: Final = 50_000_000
"""Most matches that are collected in one table unless the caller says otherwise."""

LONGEST_PMF_CHAIN: Final = 10_000_000
"""Most ticks from the first to the last time of a match with an explicit pmf: its confidence walks them."""

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

GROUPED_MATCHES: Final = 50_000
"""Most matches of a report whose groups by shared events have exact probabilities; else they have bounds."""

LONGEST_POINT_INTERVAL: Final = 1_000_000
"""Most ticks of an interval that the point-based evaluation goes through one by one."""

MOST_CONFIDENCE_STEPS: Final = 200_000_000
"""Most multiplications spent on the confidence of one match, whatever weighs it: about a second."""

MOST_GROUP_STEPS: Final = 20_000_000
"""Most literals, or so, that are looked at for the probability of one group of matches: about 0.1 s."""

MOST_OFFSETS: Final = 1_000_000
"""Most choices of offsets of shared clocks that are gone through for one match: about a second."""

MOST_LENGTHS_OF_GROUP: Final = 10_000
"""Most choices of lengths that one group of matches of events that last is weighed for: about a second."""

MOST_RECORD_CELLS: Final = 10_000_000
"""Most cells of one array over the ticks of records whose order is known: some tenths of a second."""

MOST_CELLS_IN_TABLE: Final = 1 << 24
"""Most cells of one of these tables: 128 MiB."""

MOST_COVERED_TICKS: Final = 2**24
"""Most ticks of one partition over which expected counts are summed tick by tick: about 60 bytes each."""

MOST_REPEATED_STEPS: Final = 2_000_000_000
"""Most steps over pairs of ticks of events to take their uses with themselves off expected counts."""

MOST_SHARING: Final = 5
"""Components up to which what the uses of one event in several of them count is taken off again."""

DIAGNOSED_ROWS: Final = 16_384
"""Rows that tell how far the values of a column go."""

SAMPLED_FOR_NOTHING: Final = 1024
"""Events among which a query without matches is asked again without each of its conditions."""

SECONDS_FOR_NOTHING: Final = 1.0
"""How long that may take, all in all."""

MOST_COMPARED_TYPES: Final = 2000
"""Types among which names that are nearly the same are looked for."""

MOST_STREAM_COPIES: Final = 100
"""Slices that an event is kept in at most; with more, the slices are too short."""

IN_PROCESS_BYTES: Final = 512 * 2**20
"""Files of up to this size in total, unpacked, are matched in process, unless an option says otherwise."""

END_SECONDS: Final = 5.0
"""Seconds that Spark has to stop a stream, before it is asked again, and that Java has to end, before it is
killed."""
