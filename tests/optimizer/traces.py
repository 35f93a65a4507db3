"""Small skewed traces, and candidates of queries in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import uncertain_cep as uc
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.executor import candidates
from uncertain_cep.plan import EvaluationPlan, make_plan


@dataclass(frozen=True, slots=True)
class Selected:
    plan: EvaluationPlan
    table: pa.Table
    selection: Selection


def selected(query: str, table: pa.Table, planner: str = "auto") -> Selected:
    plan = make_plan(uc.parse(query), table.schema, planner=planner)
    return Selected(plan, table, candidates(plan, table))


def skewed(
    events: int, rates: Sequence[float], *, seed: int, longest: int = 6, bursts: bool = False, keys: int = 3
) -> pa.Table:
    """Return events of types A, B, ... with given relative rates; keys are skewed too, rows in time order.

    With ``bursts`` most events stand close to one of a few times.
    """
    rng = np.random.default_rng(seed)
    shares = np.array(rates, dtype=np.float64)
    types = np.array([chr(ord("A") + number) for number in range(len(rates))])
    if bursts:
        centres = rng.integers(0, events * 4, max(3, events // 40))
        lower = np.maximum(0, rng.choice(centres, events) + rng.integers(-15, 15, events))
    else:
        lower = rng.integers(0, events * 4, events)
    lower.sort()
    weights = 1.0 / np.arange(1, keys + 1)
    return pa.table({
        "type": types[rng.choice(len(types), events, p=shares / shares.sum())],
        "id": np.arange(events),
        "lower": lower,
        "upper": lower + rng.integers(0, longest, events) * (rng.random(events) < 0.7),
        "x": rng.integers(0, 6, events),
        "y": rng.random(events),
        "s": rng.choice(["u", "v", "w"], events),
        "k": rng.choice(keys, events, p=weights / weights.sum()),
    })  # fmt: skip
