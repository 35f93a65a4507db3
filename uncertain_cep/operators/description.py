"""Time ranges and confidences of chosen candidates: what the kernels leave to exact arithmetic, and pmfs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import exact_chain_confidence
from confidence.budget import pieces
from eventbased import Candidates, describe_uncertain
from uncertain_cep.candidates.pmfs import ExplicitPmfs
from uncertain_cep.config import LONGEST_PMF_CHAIN
from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.plan import EvaluationPlan

__all__ = ["describe_explicit", "pooled", "redo_exactly"]

Int64 = NDArray[np.int64]


def pooled(size: int, dtype: type[np.generic]) -> NDArray[Any]:
    """Return an array in Arrow's memory pool, which hands memory back without a page fault for each page."""
    return np.frombuffer(pa.allocate_buffer(size * 8), dtype=dtype)


def describe_explicit(
    plan: EvaluationPlan,
    candidates: Candidates,
    chosen: Int64,
    pmfs: ExplicitPmfs,
    offset: Int64,
    wanted: bool,
    w: int,
    lower: Int64,
    upper: Int64,
    confidence: NDArray[np.float64],
) -> None:
    """Correct what was computed as if all intervals were uniform, see :func:`eventbased.describe_uncertain`.

    Raises
    ------
    TraceError
        If a match reaches over more than ``LONGEST_PMF_CHAIN`` ticks.
    """
    # A window that may bind takes a product of matrices for each tick.
    ticks = (upper - lower + 1).astype(np.float64)
    for part in pieces(ticks * np.where(ticks > plan.window, len(chosen) ** 2, len(chosen))):
        too_long = describe_uncertain(
            np.ascontiguousarray(chosen[:, part]), w, candidates.lower, candidates.upper, candidates.base,
            offset, pmfs.values, LONGEST_PMF_CHAIN, wanted, lower[part], upper[part], confidence[part],
        )  # fmt: skip
        if too_long < 0:
            continue
        message = (
            f"a match with an explicit pmf reaches over more than {LONGEST_PMF_CHAIN:,} ticks, "
            'too many to sum over: give a longer tick, such as tick="1ms", or a shorter WITHIN'
        )
        raise TraceError(TraceFault(message, column=plan.names.pmf))


def redo_exactly(
    plan: EvaluationPlan, candidates: Candidates, chosen: Int64, confidence: NDArray[np.float64]
) -> None:
    """Replace the confidences that float64 could not give (NaN) by those of exact arithmetic."""
    for row in np.flatnonzero(np.isnan(confidence)).tolist():
        lower = [int(candidates.lower[i]) + j for j, i in enumerate(chosen[:, row])]
        upper = [int(candidates.upper[i]) + j for j, i in enumerate(chosen[:, row])]
        confidence[row] = float(exact_chain_confidence(lower, upper, plan.window))
