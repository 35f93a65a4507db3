"""The options of an evaluation: what each means, what it is by default, and which exclude each other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, cast, get_args

import numpy as np

from uncertain_cep.config.limits import BATCH_ROWS
from uncertain_cep.errors import OptionError
from uncertain_cep.plan.known_until import known_end
from uncertain_cep.query import Parameters, values_of
from uncertain_cep.running.resource_limits import Limits
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.durations import Duration, duration_text

__all__ = [
    "EVALUATIONS",
    "PLANNERS",
    "Approximation",
    "MatchOptions",
    "Method",
    "is_whole",
    "of_grouped_matches",
]

Method = Literal["query_order", "any_state", "selectivity", "point"]
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

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [7, 8], "lower": [1, 3], "upper": [4, 4]})
    >>> estimate = uc.Approximation(std_error=0.01, seed=1)
    >>> uc.match(events, "PATTERN SEQ(A a, B b) WITHIN 4", approximate=estimate)["exact"].to_pylist()
    [True]
    """

    std_error: float
    seed: int = 0

    def __post_init__(self) -> None:
        error: Any = self.std_error
        seed: Any = self.seed
        if not isinstance(error, int | float | np.floating) or not 0.0 < error < 1.0:
            raise OptionError(f"approximate: the standard error is {error!r}: it must be between 0 and 1")
        if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
            raise OptionError(f"approximate: the seed is {seed!r}: it must be at least 0 and below 2**63")

    @classmethod
    def of(cls, approximate: Approximation | float | None) -> Approximation | None:
        """Return an approximation, with seed 0 for a standard error alone.

        Raises
        ------
        OptionError
            If it is neither.
        """
        if approximate is None or isinstance(approximate, cls):
            return approximate
        if isinstance(approximate, bool) or not isinstance(approximate, (int, float)):
            raise OptionError(
                f"approximate={approximate!r}: it takes a standard error, such as 0.01, or nothing"
            )
        return cls(float(approximate))


@dataclass(frozen=True, slots=True)
class MatchOptions:
    """How the events of a call are read, and how a query on them is evaluated.

    Attributes
    ----------
    names : Names
        The columns of the events that hold the parts of the model.
    tick : str or None
        Length of a tick, such as ``"100ms"``; it must not contradict the events' own. None: theirs, else 1us
        for timestamps, whatever their unit; for int64 columns needed only for ``WITHIN 15 seconds``.
    evaluation : {"auto", "query_order", "any_state", "selectivity", "point"}
        The method; all give the same answer. ``auto`` is ``query_order``, or any other order in which the
        planner prefers to put events together.
    confidence : bool
        Whether to compute confidences.
    approximate : Approximation or None
        Leave to estimate confidences whose exact value takes too long, with this standard error; without it
        they are an error. Only coupled gaps of ``skip_till_next_match`` ever do. The result then has the
        columns ``exact`` and ``std_error``.
    undecided : {"error", "bounds"}
        With RETURN PROBABILITY, the answer for a group whose probability takes too many steps, and an
        estimate, too, if ``approximate`` allows it: an error, or a row with a null and bounds that are
        certain. The result then has the columns ``exact``, ``probability_lower`` and ``probability_upper``.
    kleene : {"matches", "compressed"}
        Whether each choice of events for a Kleene component is a match of its own. Compressed, there is one
        row for each choice of the other events, for ``skip_till_any_match``, one Kleene component and
        conditions on its ``c[i]`` alone: its column lists the events that can stand for it, ``confidence``
        is the probability of a match with at least one of them, and, given that the other events are in
        order and within the window, ``p_nonempty`` is the probability that some of them is where the
        component stands, ``expected_subsets`` the expected number of non-empty sets of those that are, and
        ``expected_elements`` that of the events themselves.
    planner : str
        Who chooses the order in which events are put together, by what it is expected to cost on these
        events: ``auto``, ``trivial`` (the order of the pattern), ``frequency``, ``greedy``, ``ii_random``,
        ``ii_greedy``, ``dp_left_deep``, ``dp_bushy``, ``zstream`` or ``zstream_greedy``. Or the order itself,
        as a tree over the variables in which brackets join two parts: ``"((c a) b)"``. Kleene components,
        which are left out of a tree, take their events when those of the others are chosen. No tree with OR,
        each of whose branches is planned by itself. All give the same answer.
    latency_weight : float
        At least 0. Planners choose by the work of an evaluation, and with a weight above 0 also by how much
        of it is left once the event of the last component is there: each partial match that this event has to
        be put together with then counts as so many more that are looked at. It changes no answer. Not with a
        tree, nor with an evaluation that has an order of its own.
    max_matches : int or None
        Stop with an error beyond this many matches. Not used on Spark, whose matches stay on the cluster.
    batch_rows : int
        Most matches in a batch, at least 1. Not used on Spark.
    threads : int or None
        Most threads that look for matches at once, at least 1; None: as many as this process has cores. The
        matches are the same; without ORDER BY their order depends on the number of threads, and never on the
        run. So do the last digits of expected counts. Not used on Spark, where a task has one thread.
    sources : bool
        Whether events that name one clock, with bounds of its offset, move together.
    known_until : int, str or None
        The time up to which all events are known, as :func:`uncertain_cep.plan.known_until.known_end` has it:
        ticks, or ISO 8601 text. A match one of whose gaps can end behind it, in a world in which it is a
        match, is undecided and left out: an event that is not there yet may be in the gap. A warning counts
        such matches. None: there are no other events, and a warning counts the matches with a gap that can
        end behind the last event.
    parameters : tuple of (name, value)
        The values of the query's parameters, see :func:`uncertain_cep.query.values_of`.
    limit : Limits or None
        When to stop with an error. On Spark, whoever runs the job looks at it.
    takes_spans : bool
        Whether the caller weighs events that last by their begins and ends.

    Raises
    ------
    OptionError
        If an option has no such value, or does not go with another one.
    """

    names: Names = Names()  # noqa: RUF009
    tick: Duration | None = None
    evaluation: str = "auto"
    confidence: bool = True
    approximate: Approximation | None = None
    undecided: str = "error"
    kleene: str = "matches"
    planner: str = "auto"
    latency_weight: float = 0.0
    max_matches: int | None = None
    batch_rows: int = BATCH_ROWS
    threads: int | None = None
    sources: bool = True
    known_until: Any = None
    parameters: Parameters = ()
    limit: Limits | None = None
    takes_spans: bool = False

    @classmethod
    def among(cls, arguments: Mapping[str, Any]) -> MatchOptions:
        """Return the options among the arguments of a public function, by name, in any form that it takes."""
        forms: dict[str, Callable[[Any], Any]] = {
            "names": Names.of,
            "approximate": Approximation.of,
            "parameters": values_of,
        }
        options = {name: arguments[name] for name in cls.__slots__ if name in arguments}
        options |= {name: form(options[name]) for name, form in forms.items() if name in options}
        return cls(**options, limit=Limits.of(arguments.get("timeout"), arguments.get("memory_limit")))

    def __post_init__(self) -> None:
        self._check_values()
        self._check_together()
        object.__setattr__(self, "latency_weight", float(self.latency_weight))
        object.__setattr__(self, "tick", duration_text(self.tick, what="tick"))
        object.__setattr__(self, "known_until", known_end(self.known_until))

    @property
    def method(self) -> Method:
        """The method that the evaluation stands for."""
        return "query_order" if self.evaluation == "auto" else cast("Method", self.evaluation)

    @property
    def compressed(self) -> bool:
        """Whether a match is a choice of the single events, and its Kleene component all its candidates."""
        return self.kleene == "compressed"

    @property
    def gives_tree(self) -> bool:
        """Whether the planner is a tree, which leaves nothing to choose."""
        return str(self.planner).lstrip().startswith("(")

    def _check_values(self) -> None:
        if self.evaluation not in EVALUATIONS:
            raise OptionError(
                f"evaluation={self.evaluation!r} is unknown: use one of {', '.join(EVALUATIONS)}"
            )
        if self.planner not in PLANNERS and not self.gives_tree:
            raise OptionError(
                f"planner={self.planner!r} is unknown: use one of {', '.join(PLANNERS)}, or a tree over the "
                "variables in brackets, such as ((c a) b)"
            )
        if self.undecided not in ("error", "bounds"):
            raise OptionError(f"undecided={self.undecided!r} is unknown: use error or bounds")
        if self.kleene not in ("matches", "compressed"):
            raise OptionError(f"kleene={self.kleene!r} is unknown: use matches or compressed")
        weight: Any = self.latency_weight
        is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
        if not is_number or not 0.0 <= weight <= sys.float_info.max:
            raise OptionError(
                f"latency_weight={weight!r}: it must be a finite number, at least 0, such as 2.5"
            )
        if not isinstance(self.confidence, bool | np.bool_):
            raise OptionError(f"confidence={self.confidence!r}: it must be True or False")
        if not isinstance(self.sources, bool | np.bool_):
            raise OptionError(f"sources={self.sources!r}: it must be True or False")
        max_matches, rows, threads = self.max_matches, self.batch_rows, self.threads
        if max_matches is not None and (not is_whole(max_matches) or max_matches < 0):
            raise OptionError(f"max_matches={max_matches!r}: it must be a whole number, at least 0, or None")
        if not is_whole(rows) or rows < 1:
            raise OptionError(f"batch_rows={rows!r}: it must be a whole number, at least 1")
        if threads is not None and (not is_whole(threads) or threads < 1):
            raise OptionError(
                f"threads={threads!r}: it must be a whole number, at least 1, or None for all cores"
            )

    def _check_together(self) -> None:
        if self.planner != "auto" and self.evaluation != "auto":
            raise OptionError(
                f"planner={self.planner!r} does not go with evaluation={self.evaluation!r}, which has an "
                "order of its own: leave one of them out"
            )
        if self.latency_weight and self.evaluation != "auto":
            raise OptionError(
                f"latency_weight={self.latency_weight!r} is heeded by a planner, and "
                f"evaluation={self.evaluation!r} has an order of its own: leave one of them out"
            )
        if self.latency_weight and self.gives_tree:
            raise OptionError(
                f"latency_weight={self.latency_weight!r} is heeded by planners, and planner={self.planner!r} "
                "leaves nothing to choose: leave one of them out"
            )

    def check_counting(self) -> None:
        """Refuse options that expected counts have no use for."""
        if self.evaluation not in ("auto", "query_order"):
            raise OptionError(
                f"evaluation={self.evaluation!r} does not support RETURN EXPECTED COUNT: leave it out"
            )
        if not self.confidence:
            raise OptionError(
                "confidence=False does not go with RETURN EXPECTED COUNT: it is made of confidences"
            )
        if self.approximate is not None:
            raise OptionError("approximate= does not support RETURN EXPECTED COUNT: leave it out")
        if self.compressed:
            raise OptionError(
                'kleene="compressed" gives rows, RETURN EXPECTED COUNT numbers: choose one of them'
            )

    def check_of_matches(self) -> None:
        """Refuse options that only probabilities of groups have a use for."""
        if self.undecided != "error":
            raise OptionError(
                f"undecided={self.undecided!r} is for groups of matches: add RETURN PROBABILITY, or leave it "
                "out"
            )

    def check_grouping(self) -> None:
        """Refuse options that probabilities of groups have no use for."""
        if self.evaluation not in ("auto", "query_order"):
            raise OptionError(
                f"evaluation={self.evaluation!r} does not support RETURN PROBABILITY: leave it out"
            )
        if not self.confidence:
            raise OptionError("confidence=False does not go with RETURN PROBABILITY: leave one of them out")
        if self.compressed:
            raise OptionError('kleene="compressed" gives rows, RETURN PROBABILITY groups: choose one of them')


def of_grouped_matches(options: MatchOptions, *, weighs: bool) -> MatchOptions:
    """Return the options for the matches of groups: no match that is too dear stops the others' groups.

    ``weighs`` says whether a confidence of a match is of any use.
    """
    if not weighs:
        return replace(options, undecided="error", approximate=None, confidence=False)
    if options.undecided == "error":
        return options
    # What is estimated of a match alone is not used: its group is weighed like one of several matches.
    return replace(options, undecided="error", approximate=options.approximate or Approximation(0.1))


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number, of Python or of NumPy."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)
