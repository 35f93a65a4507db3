"""The weighers of a plan: those that can weigh its matches, and in a run who took how many, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from confidence import Limits
from eventbased.gaps.gap_events import GapRules
from uncertain_cep.config.limits import MOST_CONFIDENCE_STEPS
from uncertain_cep.operators.table import operator_of
from uncertain_cep.optimizer.choice import time_text
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plurals import counted
from uncertain_cep.weighers.cheapest import weighers_of
from uncertain_cep.weighers.log import WeigherUse, WeighingLog
from uncertain_cep.weighers.pattern import MatchPattern
from uncertain_cep.weighers.weigher import Weigher

__all__ = ["weigher_facts", "weigher_rows"]

Row = tuple[str, str]


def _weighers(plan: EvaluationPlan) -> list[Weigher]:
    """Return the weighers that may take matches of a plan; none where a join computes confidences."""
    if not operator_of(plan).weighs:
        return []
    nothing = np.empty(0, dtype=np.int64)
    rules = GapRules(np.full(len(plan.components), -1), -1, nothing, nothing)
    limits = Limits(float(MOST_CONFIDENCE_STEPS), *plan.estimates)
    return weighers_of(MatchPattern(plan, pa.table({}), rules, None, plan.window, None, limits))


def weigher_rows(plan: EvaluationPlan, log: WeighingLog | None) -> list[Row]:
    """Return labelled lines: each weigher, and after a run what it took, and what others would have cost."""
    weighers = _weighers(plan)
    if not weighers:
        return []
    lines = ["each match by the cheapest of these that can"]
    for weigher in weighers:
        lines.append(f"  {weigher.name}: {weigher.why}")
        use = None if log is None else log.uses.get(weigher.name)
        if use is not None:
            lines.append(f"    {_took(use)}")
    return [("weighed", lines[0]), *(("", line) for line in lines[1:])]


def _took(use: WeigherUse) -> str:
    """Return the work of a weigher as text."""
    each = f"{time_text(use.nanoseconds / max(use.matches, 1))} estimated for each"
    dearer = ", ".join(f"{name} {time_text(cost)}" for name, cost in use.others.items())
    beside = f"; others at least: {dearer}" if dearer else ""
    return f"took {counted(use.matches, 'match', 'matches')}, {each}{beside}"


def weigher_facts(plan: EvaluationPlan, log: WeighingLog | None) -> list[dict[str, Any]]:
    """Return the same for machines: ``name``, ``why``, and after a run ``matches``, ``ns``, ``others``.

    ``others`` has for other weighers the cheapest price of one of these matches.
    """
    listed: list[dict[str, Any]] = []
    for weigher in _weighers(plan):
        facts: dict[str, Any] = {"name": weigher.name, "why": weigher.why}
        if log is not None:
            use = log.uses.get(weigher.name, WeigherUse())
            facts |= {"matches": use.matches, "ns": use.nanoseconds, "others": dict(use.others)}
        listed.append(facts)
    return listed
