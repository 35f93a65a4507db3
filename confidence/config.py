"""Numeric thresholds of the confidence kernels, each named once.

``python -m benchmarks main --only throughput --only units`` measures confidences of plain sequences, ``--only
language`` those with forbidden events: what a change of a number costs or brings shows there.
"""

from __future__ import annotations

from typing import Final

# What float64 and int64 are trusted with. No benchmark tells: the tests compare with exact fractions.

WORST_CANCELLATION: Final = 1e5
"""Largest ratio of summed absolute terms to result that float64 is trusted with: about 1e-11 relative."""

LARGEST_COUNT: Final = 1e280
"""Counts above this leave float64's range soon; they are redone in exact arithmetic."""

MOST_EXACT_TICKS: Final = 2**53
"""Most ticks from the first to the last bound of a chain whose positions float64 tells apart."""

# How long a kernel runs before Python can handle an interrupt: `tests/cases/budgets.py` sets them to next to
# nothing.

STEPS_PER_CALL: int = 2**21
"""Steps of a search, some nanoseconds each, after which its kernel comes back to Python: 0.05 s or so."""

MULTIPLICATIONS_PER_CALL: float = 2.0**25
"""Multiplications for confidences after which a kernel comes back to Python: 0.1 s or so."""

# Kernels as plain Python: `python -m benchmarks main --only cold --only latency`.

SHARE_OF_BUDGET: Final = 256
"""Steps of compiled code that one in plain Python takes as long as: the budgets of a call are its share."""

# Forbidden events. Fitted to skip till next match at half intervals 5 to 50; `--only language`, and
# `python -m benchmarks paper --only 4e,5c` for long intervals.

FEW_STEPS: Final = 1e6
"""Multiplications up to which chains for every choice of places are taken without looking for less."""

FEW_TICKS: Final = 16
"""Ticks from which on a row of edges is weighed in vectors."""

STEPS_TO_HOLD: Final = 20.0
"""Steps counted for each choice of held times and each event: tightening bounds and filling nodes."""

# Explicit probabilities within a window.

MOST_MATRIX_CELLS: Final = 2**22
"""Cells of a matrix of all pairs of events, and of rows of such matrices, that are held at a time: 32 MiB."""

# Estimates, which the tests of approximate= compare with exact values.

FEWEST_DRAWS: Final = 256
"""Worlds drawn at least for an estimate."""

WARM_UP: Final = 20
"""Random numbers that are dropped after seeding."""

# Events in partial order.

MOST_STEPS_BETWEEN_IDEALS: Final = 1_000_000
"""Most steps between ideals of an order that are listed: beyond, a sweep costs too much for any match."""

# Conditions on times: `python -m benchmarks main --only times`.

MOST_EXCLUDED: Final = 2
"""Most differences bound from above that a signed sum is tried for: it is cheaper than polynomials."""

MOST_EXCLUDED_IF_LIKELY: Final = 5
"""The same where the window binds, so that one time would have to be held, or the sum is likely to hold."""

SHARE_OF_EXCLUDED: Final = 0.05
"""For each such difference, how much of what it can be each has to leave for the sum to be likely to hold: of
five a quarter. With less the sum cancels, and both ways are paid for (``benchmarks main --only times``)."""

WORST_EXCLUSION: Final = 1e3
"""Largest sum of the terms over that of what is left of them: with 1e5 errors of 1e-9 were met."""

MOST_BREAKS: Final = 2048
"""Most breakpoints; a cycle that has more is left to others."""

FEW_HELD_TICKS: Final = 12
"""Ticks of the time that is held whose values are added one by one."""

LONGEST_CYCLE: Final = 8
"""Most events of a cycle whose sum is taken by pieces: one more than the degree of the longest rule."""

MOST_PIECES: Final = 512
"""Most pieces of a polynomial; a path that takes more is left to others."""

MOST_FACTORS: Final = 16
"""Most tables that are multiplied at once; NumPy takes no more than 31."""

MOST_DRAWN_AT_ONCE: Final = 1 << 14
"""Most draws whose times are held at a time."""

# Times are within int64.

EVER: Final = 2**63 - 1
"""A time behind all others."""

NEVER: Final = -EVER
"""A time before all others."""
