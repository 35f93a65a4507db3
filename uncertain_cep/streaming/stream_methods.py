"""The method by which a query is evaluated over a stream, and the queries that no method takes."""

from __future__ import annotations

from typing import Any, Final

from eventbased.incremental.run_pool import MOST_COMPONENTS
from uncertain_cep.errors import OptionError
from uncertain_cep.plan import EvaluationPlan, asks_of_times, beyond_plain
from uncertain_cep.query import Query
from uncertain_cep.query.walks import components_of

__all__ = [
    "BY_SLICES",
    "INCREMENTAL_EVALUATIONS",
    "check_when",
    "ends_in_absence",
    "method_of",
    "refuse",
    "refuse_open_groups",
    "usual_slice",
]

INCREMENTAL_EVALUATIONS: Final = ("auto", "any_state", "selectivity", "query_order", "sliced", "point")

BY_SLICES: Final = ("sliced", "point")


def refuse(query: Query, evaluation: str) -> None:
    """Raise OptionError if a query or method is not for streams."""
    if evaluation not in INCREMENTAL_EVALUATIONS:
        methods = ", ".join(INCREMENTAL_EVALUATIONS)
        raise OptionError(f"evaluation={evaluation!r} is unknown for streams: use one of {methods}")
    if query.is_ordered or query.limit is not None:
        raise OptionError(
            "ORDER BY and LIMIT choose among all matches, and a stream has not had all: leave them out, "
            "use HAVING CONFIDENCE >= x, or order what the matcher returned"
        )
    if query.non_overlapping or query.expected_count is not None:
        clause = "OUTPUT NON OVERLAPPING" if query.non_overlapping else "RETURN EXPECTED COUNT"
        raise OptionError(f"{clause} needs all matches, and a stream has not had all: leave it out")


def check_when(when: str, evaluation: str) -> None:
    """Raise OptionError if rows of a stream cannot be told when the option says."""
    if when not in ("final", "certain"):
        raise OptionError(f"when={when!r} is unknown: use final or certain")
    if when == "certain" and evaluation == "query_order":
        raise OptionError(
            'when="certain" does not go with evaluation="query_order", which waits: leave one of them out'
        )


def refuse_open_groups(plan: EvaluationPlan) -> None:
    """Raise OptionError if a group of RETURN PROBABILITY is not final before the end of a stream."""
    if not plan.is_grouped or plan.bound.every is not None:
        return
    firsts = {branch.components[0].variable for branch in plan.or_free}
    of_events = {key.variable for key in plan.bound.keys if key.attribute is None}
    several = plan.open_readings is not None or len(firsts) > 1
    if several or not firsts & of_events:
        first = plan.components[0].variable
        # A list that may be read as one event is a list all the same.
        is_list = f"{first}[]" in plan.query.text
        by_first = "" if several or is_list else f", or BY {first}"
        raise OptionError(
            "a group of RETURN PROBABILITY may get matches until the stream ends: add buckets, such as "
            f"EVERY 1 hour{by_first}"
        )


def method_of(
    query: Query, evaluation: str, slice_length: int | None, clocks: bool, doubtful: bool, lasting: bool
) -> str:
    """Return the method by which a stream is evaluated.

    ``clocks`` says whether events may share clocks, ``doubtful`` whether some may not have happened,
    ``lasting`` whether they may last.

    Raises
    ------
    OptionError
        If options do not go together.
    """
    more = "events of one clock (sources=False takes their times as independent)" if clocks else None
    if doubtful and query.strategy != "skip_till_any_match":
        more = f"events that may not have happened under {query.strategy}"
    more = beyond_plain(query) or more
    if lasting:
        more = "events that last"
    if query.probability is not None:
        more = "RETURN PROBABILITY"
    has_times = asks_of_times(query)
    if has_times and query.strategy != "skip_till_any_match":
        more = more or f"conditions on times, TIME(...), under {query.strategy}"
    if slice_length is not None:
        length: Any = slice_length
        if isinstance(length, bool) or not isinstance(length, int) or length < 1:
            raise OptionError(f"slice_length={slice_length!r}: it must be 1 tick or more")
        if evaluation not in ("auto", *BY_SLICES):
            raise OptionError(
                f"slice_length does not go with evaluation={evaluation!r}: leave one of them out"
            )
    if evaluation == "auto":
        long = sum(1 for _ in components_of(query.pattern)) > MOST_COMPONENTS
        return (
            "sliced" if long or slice_length is not None or more is not None or has_times else "selectivity"
        )
    if more is not None and evaluation not in BY_SLICES:
        raise OptionError(
            f"evaluation={evaluation!r} does not support {more} over a stream: leave evaluation= out"
        )
    return evaluation


def usual_slice(plan: EvaluationPlan) -> int:
    """Return how many ticks of a stream are evaluated together, unless the caller says.

    An absence at the end of a pattern is an alert: it is evaluated as soon as it is final. Such matches are
    few as a rule. All others are evaluated a window at a time, so that no event is in more than two slices.
    """
    return 1 if ends_in_absence(plan) else plan.window


def ends_in_absence(plan: EvaluationPlan) -> bool:
    """Return whether a pattern ends in a negation: nothing that comes completes a match, but time does."""
    return any(
        negation.after == len(branch.components) for branch in plan.or_free for negation in branch.negations
    )
