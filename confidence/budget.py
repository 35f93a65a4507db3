"""How much a kernel does before it comes back to Python, and what Python does in between.

A kernel that can run long counts its steps. When it has spent the budget of a call it comes back, with all
that it knows in its state, to be called again. Between two calls Python raises what a signal asks for
(``KeyboardInterrupt``), and the caller's own limits are looked at (:func:`checkpoint`). No answer depends on
the budget.

One match is bound by the steps that it may take (``MOST_CONFIDENCE_STEPS`` and the like), which take a second
or so at most where kernels are compiled. As plain Python they would take minutes, so what is long there looks
at the limits itself (:func:`plain_checkpoint`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.checkpoints import checkpoint, looking_at
from confidence.kernel import kernel, runs_plain

__all__ = [
    "checkpoint",
    "looking_at",
    "multiplications_per_call",
    "pieces",
    "plain_checkpoint",
    "steps_per_call",
]

# `tests/cases/budgets.py` sets them to next to nothing.

STEPS_PER_CALL: int = 2**21
"""Steps of a search, some nanoseconds each, after which its kernel comes back to Python: 0.05 s or so."""

MULTIPLICATIONS_PER_CALL: float = 2.0**25
"""Multiplications for confidences after which a kernel comes back to Python: 0.1 s or so."""

_SHARE_OF_BUDGET: Final = 256
"""Steps of compiled code that one in plain Python takes as long as: the budgets of a call are its share."""


def steps_per_call() -> int:
    """Return how many steps a search may take in one call of its kernel.

    A step is a candidate that is tried, an instruction of a predicate, or anything else that takes some
    nanoseconds.
    """
    return max(STEPS_PER_CALL // _slower(), 1)


def multiplications_per_call() -> float:
    """Return how many multiplications may be spent on confidences in one call of a kernel.

    The match that exceeds them is finished.
    """
    return max(MULTIPLICATIONS_PER_CALL / _slower(), 1.0)


@kernel(inline=True, plain=checkpoint)
def plain_checkpoint():
    """Let the evaluation end here if kernels run as plain Python; compiled code does nothing."""


def _slower() -> int:
    return _SHARE_OF_BUDGET if runs_plain() else 1


def pieces(costs: NDArray[np.float64]) -> Iterator[slice]:
    """Yield matches in pieces whose confidences take the budget of a call, or one match that takes more.

    Parameters
    ----------
    costs : (m,) float64
        About how many multiplications each match takes.
    """
    if len(costs) and float(costs.sum()) <= multiplications_per_call():
        checkpoint()
        yield slice(0, len(costs))
        return
    ends = np.cumsum(costs)
    done = 0
    while done < len(ends):
        checkpoint()
        before = float(ends[done - 1]) if done else 0.0
        stop = int(np.searchsorted(ends, before + multiplications_per_call(), side="right"))
        yield slice(done, max(stop, done + 1))
        done = max(stop, done + 1)
