"""What a caller may ask of an evaluation, and which of these wishes exclude each other."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Final, Literal, cast, get_args

from uncertain_cep.errors import OptionError

__all__ = [
    "EVALUATIONS",
    "PLANNERS",
    "Approximation",
    "Evaluation",
    "Method",
    "check_counting",
    "check_latency_weight",
    "checked_method",
]

Method = Literal["query_order", "any_state", "selectivity", "point"]
Evaluation = Literal["auto", Method]
EVALUATIONS: Final[tuple[str, ...]] = ("auto", *get_args(Method))

PLANNERS: Final = (
    "auto", "trivial", "frequency", "greedy", "ii_random", "ii_greedy", "dp_left_deep", "dp_bushy", "zstream",
    "zstream_greedy",
)  # fmt: skip
"""Who chooses the order in which events are put together; a tree in brackets says it outright."""


@dataclass(frozen=True, slots=True)
class Approximation:
    """Leave to estimate, by drawing worlds, a confidence whose exact value costs too much.

    Only confidences beyond the cost limit are estimated. The result then has the columns ``exact`` and
    ``std_error``.

    Attributes
    ----------
    std_error : float
        The standard error to reach, above 0.
    seed : int
        The same seed gives the same estimates, wherever and in whatever order they are computed.
    """

    std_error: float
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 < self.std_error < 1.0:
            raise OptionError(
                f"approximate: the standard error is {self.std_error}: it must be between 0 and 1"
            )
        if not 0 <= self.seed < 2**63:
            raise OptionError(f"approximate: the seed is {self.seed}: it must be at least 0 and below 2**63")

    @classmethod
    def of(cls, given: Approximation | float | None) -> Approximation | None:
        """Return what a caller gave, with seed 0 for a standard error alone.

        Raises
        ------
        OptionError
            If it is neither.
        """
        if given is None or isinstance(given, cls):
            return given
        if isinstance(given, bool) or not isinstance(given, (int, float)):
            raise OptionError(f"approximate={given!r}: it takes a standard error, such as 0.01, or nothing")
        return cls(float(given))


def checked_method(evaluation: str, planner: str, kleene: str) -> Method:
    """Return the method that an evaluation stands for.

    Raises
    ------
    OptionError
        If an option has no such value, or does not go with another one.
    """
    if evaluation not in EVALUATIONS:
        raise OptionError(f"evaluation={evaluation!r} is unknown: use one of {', '.join(EVALUATIONS)}")
    if planner not in PLANNERS and not planner.lstrip().startswith("("):
        raise OptionError(
            f"planner={planner!r} is unknown: use one of {', '.join(PLANNERS)}, or a tree over the variables "
            "in brackets, such as ((c a) b)"
        )
    if planner != "auto" and evaluation != "auto":
        raise OptionError(
            f"planner={planner!r} does not go with evaluation={evaluation!r}, which has an order of its own: "
            "leave one of them out"
        )
    if kleene not in ("matches", "compressed"):
        raise OptionError(f"kleene={kleene!r} is unknown: use matches or compressed")
    return "query_order" if evaluation == "auto" else cast("Method", evaluation)


def check_latency_weight(latency_weight: float, evaluation: str, planner: str) -> float:
    """Return the weight of latency among the costs of plans.

    Raises
    ------
    OptionError
        If it is no weight, or there is no planner to heed it.
    """
    given: Any = latency_weight
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if not is_number or not 0.0 <= given <= sys.float_info.max:
        raise OptionError(
            f"latency_weight={latency_weight!r}: it must be a finite number, at least 0, such as 2.5"
        )
    if latency_weight and evaluation != "auto":
        raise OptionError(
            f"latency_weight={latency_weight!r} is heeded by a planner, and evaluation={evaluation!r} has an "
            "order of its own: leave one of them out"
        )
    if latency_weight and planner.lstrip().startswith("("):
        raise OptionError(
            f"latency_weight={latency_weight!r} is heeded by planners, and planner={planner!r} leaves "
            "nothing to choose: leave one of them out"
        )
    return float(latency_weight)


def check_counting(evaluation: str, confidence: bool, approximate: Approximation | None, kleene: str) -> None:
    """Refuse options that expected counts have no use for."""
    if evaluation not in ("auto", "query_order"):
        raise OptionError(f"evaluation={evaluation!r} does not support RETURN EXPECTED COUNT: leave it out")
    if not confidence:
        raise OptionError(
            "confidence=False does not go with RETURN EXPECTED COUNT: it is made of confidences"
        )
    if approximate is not None:
        raise OptionError("approximate= does not support RETURN EXPECTED COUNT: leave it out")
    if kleene == "compressed":
        raise OptionError('kleene="compressed" gives rows, RETURN EXPECTED COUNT numbers: choose one of them')
