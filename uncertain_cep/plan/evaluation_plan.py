"""The plan of an evaluation: immutable, picklable, free of any data.

A predicate goes where it costs least. Of one variable: a mask over columns. Equality across all components: a
partition key. The rest: bytecode that kernels interpret as soon as its variables are bound.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from html import escape

import pyarrow as pa

from uncertain_cep.errors import OptionError
from uncertain_cep.plan.clock_columns import ClockNames
from uncertain_cep.plan.components import PlannedComponent, PlannedNegation
from uncertain_cep.plan.derived import Derived
from uncertain_cep.plan.equivalence import PartitionKey
from uncertain_cep.plan.event_order import EventOrder, InSequence, InSets
from uncertain_cep.plan.options import Approximation, Method
from uncertain_cep.plan.partitioning import Partitioning
from uncertain_cep.plan.readings import Readings
from uncertain_cep.plan.result_columns import SortKey
from uncertain_cep.plan.result_rows import ResultRows
from uncertain_cep.plan.time_bounds import Distances, LiteralBound
from uncertain_cep.plan.trees import Tree
from uncertain_cep.query import Query
from uncertain_cep.query.binder import BoundQuery
from uncertain_cep.query.branches import PartialOrder, ReadingTerm
from uncertain_cep.query.negated_groups import classes_of
from uncertain_cep.query.time_conditions import TimeCondition
from uncertain_cep.query.typed import Aggregated, Apply, TypedExpression, columns_in
from uncertain_cep.timeline.domain import Names, TimeDomain

__all__ = ["EvaluationPlan"]


@dataclass(frozen=True, slots=True, repr=False)
class EvaluationPlan(ResultRows):
    """The plan of a query's evaluation on any table with the columns it was made for."""

    bound: BoundQuery
    names: Names
    domain: TimeDomain
    components: tuple[PlannedComponent, ...]
    """The positive ones, in pattern order."""
    negations: tuple[PlannedNegation, ...]
    """The negated ones, in pattern order."""
    keys: tuple[PartitionKey, ...]
    """The attributes equated across all components; with OR, across those of every branch."""
    split_keys: tuple[PartitionKey, ...]
    """Those by which the events are split before anything is matched."""
    constant: tuple[TypedExpression, ...]
    """Predicates that mention no variable."""
    joined: tuple[TypedExpression, ...]
    """Predicates that neither splitting by keys nor looking at single events can enforce: across components,
    or across the events of a Kleene component."""
    evaluation: Method
    """{"query_order", "any_state", "selectivity", "point"}."""
    confidence: bool
    """Whether the result has a confidence column."""
    approximate: Approximation | None
    """Leave to estimate the confidences that exact arithmetic cannot follow."""
    compressed: bool
    """Whether a match is a choice of the single events, and its Kleene component all its candidates."""
    required_columns: tuple[str, ...]
    """Columns of the trace that the evaluation reads."""
    output_schema: pa.Schema
    lasting: bool = False
    """Whether events can last: columns tell begins and ends."""
    order: PartialOrder | None = None
    """The order that an OR-free pattern with AND asks of its events; None if it is that of the pattern."""
    branches: tuple[EvaluationPlan, ...] = ()
    """Those of a pattern with OR, see :class:`~uncertain_cep.query.branches.Branch`: no signature is that of
    two, so that their matches together are the answer. Then only ``keys``, ``required_columns``, the schema
    and the variables of this plan are looked at. Where ``is_open``, some of the readings: together they have
    each component in every role that it can have, and ask no more of an event than all readings do."""
    readings: Readings | None = None
    """Of a sequence with options."""
    counted: EvaluationPlan | None = None
    """With RETURN EXPECTED COUNT, that of the matches to count."""
    by_row: EvaluationPlan | None = None
    """With RETURN PROBABILITY, that of the matches, which returns the rows of their events besides."""
    spread: int = 0
    """With RETURN PROBABILITY, in how many parts groups are weighed elsewhere, from the matches of several
    tables, which are all that is returned then; 0: groups are weighed where their matches are."""
    keeps_undecided: bool = False
    """Whether a group whose probability takes too many steps has certain bounds instead of an error."""
    planner: str = "auto"
    """Who chooses the order in which events are put together: one of ``PLANNERS``; ``given`` if the caller
    did, by a tree; ``none`` if the evaluation has an order of its own."""
    tree: Tree | None = None
    """The caller's, over the single components, numbered from 0 in pattern order."""
    latency_weight: float = 0.0
    """What a partial match that the event of the last component has to be put together with weighs among the
    costs that a planner compares, in probes; 0: nothing."""
    match_windows: bool = True
    """Whether candidates that have too few others in reach are left out before anything is matched."""
    distances: Distances | None = None
    """Of a plain sequence that skips till any match, what its conditions on times say of neighbours; None if
    there are none."""
    clocks: bool = False
    """Whether events name the clocks that stamped them, so that those of one clock move together."""
    marginals: bool = False
    """Whether they do, have pmfs by these clocks, and are to be independent all the same."""
    doubtful: bool = False
    """Whether what the strategy and negations forbid may not have happened."""
    unnamed_keys: tuple[pa.Field, ...] = ()
    """With OUTPUT NON OVERLAPPING, the columns of batches that hold the values of those partition keys that
    the components call differently."""

    having: TypedExpression | None = None
    """What HAVING asks besides ``CONFIDENCE >= x``, of the columns of batches as those of a variable ``""``;
    those of other branches are null."""
    sort_keys: tuple[SortKey, ...] = ()
    """The columns of ORDER BY, unless it is by falling confidence alone."""
    widens: bool = False
    """Whether a returned column of whole numbers may become float64, where one has more than 64 bits."""
    binds_beside: bool = False
    """Whether the times of each match are bound beside what the query asks, see
    :mod:`uncertain_cep.weighers.beside`."""
    known_until: int | None = None
    """The tick up to which all events are known, see :mod:`uncertain_cep.plan.gap_ends`; None: all are."""
    derived: Derived = field(init=False, default_factory=Derived, compare=False)
    """What `once_a_plan` keeps."""

    def __repr__(self) -> str:
        return f"<EvaluationPlan of {self.query!r}, planner {self.planner}>"

    def _repr_html_(self) -> str:
        """Return the line for a notebook."""
        return f"<pre>{escape(repr(self))}</pre>"

    def model_columns(self, columns: Collection[str]) -> dict[str, str]:
        """Return the column of each part of the model, those that may be missing if among some columns."""
        return self.names.used(self.clocks, columns)

    def clock_columns(self, columns: Collection[str]) -> list[str]:
        """Return the columns among some that describe clocks; none if events share none."""
        return self.names.of_clocks(columns) if self.clocks else []

    @property
    def or_free(self) -> tuple[EvaluationPlan, ...]:
        """The plans without OR that stand for this one: its branches, or itself."""
        return self.branches or (self,)

    @property
    def clock_names(self) -> ClockNames:
        """The columns of clocks that the evaluation reads."""
        return ClockNames.of(self.names, self.required_columns if self.clocks else ())

    @property
    def sequences(self) -> bool:
        """Whether there are sequences that may tell the order of events of one source."""
        return self.clock_names.sequence is not None

    @property
    def orders(self) -> bool:
        """Whether the order of a source may tell something of the times of its events."""
        return self.clock_names.ordered is not None

    @property
    def least_step(self) -> int:
        """The ticks between an event and the next one at least: sequences put those at one tick in order."""
        return 0 if self.sequences else 1

    @property
    def has_pmfs_by_clocks(self) -> bool:
        """Whether a pmf is that of the time by the event's clock."""
        return self.clocks or self.marginals

    @property
    def is_of_differences(self) -> bool:
        """Whether the result stays as it is, but for ranges, if the times of all events move by as much."""
        is_of_moment = any(condition.earlier is None for condition in self.bound.times)
        return not self.counts and not self.sequences and not is_of_moment

    def refuse_orders(self) -> None:
        """Raise an OptionError if sources are ordered: in a stream more of their events may come."""
        if self.orders:
            raise OptionError(
                f"the column {self.names.ordered} says that the times of a source's events depend on each "
                "other, so on events that are yet to come, and no match of a stream would be final: leave it "
                f"out, so that {self.names.sequence} only tells the order of events at one tick, or match a "
                "table of the events"
            )

    def refuse_unbounded(self, what: str) -> None:
        """Raise an OptionError if a negation stands beside a set, which no slice of time bounds."""
        if not all(branch.bounds_negations for branch in self.or_free):
            raise OptionError(
                f"a negation beside a set, such as AND(A a, !N n), does not support {what} yet: match a "
                "table in this process, or let the negation stand in a SEQ(...)"
            )

    @property
    def query(self) -> Query:
        """The query as parsed."""
        return self.bound.query

    @property
    def window(self) -> int:
        """WITHIN, in ticks."""
        return self.bound.window

    @property
    def estimates(self) -> tuple[float, int]:
        """The standard error of what is left to estimate of confidences, 0 if nothing is, and the seed."""
        allowed = self.approximate
        return (0.0, 0) if allowed is None else (allowed.std_error / max(len(self.terms), 1), allowed.seed)

    @property
    def terms(self) -> tuple[ReadingTerm, ...]:
        """The terms that add up to the confidence of a signature; empty if one pattern gives it."""
        return self.bound.terms

    @property
    def is_plain(self) -> bool:
        """Whether it is a sequence of single events that skips, without negations and conditions on times.

        All of them are points.
        """
        if self.order is not None or self.branches or self.bound.times or self.lasting:
            return False
        if self.query.strategy == "skip_till_next_match" and any(map(_is_of_last, self.joined)):
            return False
        skips = self.query.strategy in ("skip_till_any_match", "skip_till_next_match")
        return skips and not self.negations and not any(component.kleene for component in self.components)

    @property
    def is_next_by_clocks(self) -> bool:
        """Whether the next event is another one for other offsets of clocks."""
        return self.clocks and self.query.strategy == "skip_till_next_match"

    @property
    def is_free_sequence(self) -> bool:
        """Whether it is a plain sequence, and nothing else that happens can spoil a match."""
        return self.is_plain and not self.forbids

    @property
    def is_join(self) -> bool:
        """Whether it joins the single events of a sequence."""
        return self.is_plain and len(self.components) > 1

    @property
    def open_readings(self) -> Readings | None:
        """The readings, if so many that those which events make possible are planned one by one."""
        return None if self.readings is None or self.readings.planned else self.readings

    @property
    def is_open(self) -> bool:
        """Whether readings are planned one by one."""
        return self.open_readings is not None

    @property
    def event_order(self) -> EventOrder:
        """The order that the pattern asks of the events of a match."""
        kleene = tuple(part.kleene for part in self.components)
        if self.order is None:
            return InSequence(kleene, tuple(negation.after for negation in self.negations))
        return InSets(kleene, self.order)

    @property
    def takes_set(self) -> tuple[bool, ...]:
        """Whether each component is a Kleene component whose events are a set, in any order."""
        in_set = self.event_order.is_set
        return tuple(part.kleene and free for part, free in zip(self.components, in_set, strict=True))

    @property
    def asks_order_alone(self) -> bool:
        """Whether times of a match have to be in one order, within the window, and nothing else."""
        return self.order is None and not (self.bound.times or self.forbids or self.binds_beside)

    @property
    def depends_on_others(self) -> bool:
        """Whether other events can change a match: those that spoil it, or those of an ordered source."""
        return self.forbids or self.orders

    @property
    def forbids(self) -> bool:
        """Whether what else happened can spoil a match: by the strategy, or as a negation says."""
        return bool(self.negations) or self.query.strategy != "skip_till_any_match"

    @property
    def negated_groups(self) -> tuple[tuple[int, ...], ...]:
        """The negations of each negated group, by their numbers, in the order of the group."""
        groups: dict[str, list[int]] = {}
        for number, negation in enumerate(self.negations):
            if negation.joint:
                groups.setdefault(negation.joint, []).append(number)
        return tuple(map(tuple, groups.values()))

    def keys_of_group(self, group: tuple[int, ...]) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """Return the keys that tie all events of a negated group: of each the columns of each component."""
        names = [self.negations[number].component.variable for number in group]
        pairs = [columns_in(predicate) for predicate in self.bound.ties_of_negated]
        classes = classes_of(
            ((one.variable, one.name), (other.variable, other.name))
            for one, other in pairs
            if one.variable in names
        )
        return tuple(
            tuple(tuple(sorted(column for owner, column in nodes if owner == name)) for name in names)
            for nodes in classes
        )

    @property
    def has_negated_groups(self) -> bool:
        """Whether several events together forbid, or do so in a branch."""
        if any(branch.has_negated_groups for branch in self.branches):
            return True
        return any(negation.joint for negation in self.negations)

    @property
    def negates_beside_sets(self) -> bool:
        """Whether a negation stands beside a set: no window bounds where its events forbid."""
        if any(branch.negates_beside_sets for branch in self.branches):
            return True
        return any(map(self.event_order.is_beside, range(len(self.negations))))

    @property
    def bounds_negations(self) -> bool:
        """Whether each negation beside a set is one between two events of the match, as that of UNTIL is."""
        return all(
            _is_between(negation.component.variable, self.bound.times)
            for number, negation in enumerate(self.negations)
            if self.event_order.is_beside(number)
        )

    @property
    def neighbour_bounds(self) -> tuple[LiteralBound, ...]:
        """Bounds on the differences of neighbours, one for each but the first; () if conditions set none."""
        return () if self.distances is None else self.distances.bounds

    @property
    def table_distances(self) -> tuple[LiteralBound, ...]:
        """Bounds of times in the table: with clocks, events are not at the ticks of their candidates."""
        return () if self.clocks else self.neighbour_bounds

    @property
    def predicates_to_join(self) -> tuple[TypedExpression, ...]:
        """The predicates across components that a join at distances has to evaluate besides."""
        return self.joined if self.distances is None else self.distances.unimplied(self.joined)

    @property
    def joins_at_distances(self) -> bool:
        """Whether events are joined at the distances that conditions on times ask of neighbours."""
        return self.distances is not None and self.evaluation == "query_order" and not self.clocks

    @property
    def partitioning(self) -> Partitioning:
        """How the events are split before anything is matched."""
        return Partitioning(self.split_keys)

    @property
    def singles(self) -> tuple[int, ...]:
        """The components that take one event, by their numbers."""
        return tuple(j for j, component in enumerate(self.components) if not component.kleene)

    @property
    def kleene(self) -> str:
        """The option of what a Kleene component gives: {"matches", "compressed"}."""
        return "compressed" if self.compressed else "matches"

    @property
    def owner(self) -> int:
        """The component by whose first event a match belongs to a slice of time: one that takes few events.

        A compressed match that begins with its Kleene component belongs to the event behind it.
        """
        return 1 if self.compressed and self.components[0].kleene else 0

    @property
    def partition_attributes(self) -> tuple[str, ...]:
        """The partition keys that have one name in all components; they lead the result."""
        return tuple(key.name for key in self.keys if key.name is not None)

    @property
    def shared_keys(self) -> tuple[str, ...]:
        """The columns that an event must agree on with all that a match depends on, in every branch."""
        if self.query.strategy == "strict_contiguity":
            # An event of any other key is forbidden as well.
            return ()
        names = [[key.name for key in branch.split_keys] for branch in self.or_free]
        return tuple(
            name
            for name in dict.fromkeys(names[0])
            if name is not None and all(name in names_of_branch for names_of_branch in names[1:])
        )

    @property
    def shared_attributes(self) -> tuple[str, ...] | None:
        """The partition attributes of all branches; None without OR."""
        return self.partition_attributes if self.branches else None

    def widening(self) -> EvaluationPlan:
        """Return the plan for a caller who takes whole numbers that became float64."""
        if not any(isinstance(item.expression, Apply | Aggregated) for item in self.bound.returns):
            return self
        branches = tuple(branch.widening() for branch in self.branches)
        return replace(self, widens=True, branches=branches)

    def with_branches(self, branches: Sequence[EvaluationPlan]) -> EvaluationPlan:
        """Return the plan with other plans in place of those without OR."""
        return replace(self, branches=tuple(branches)) if self.branches else branches[0]

    def of_branch(self, branch: EvaluationPlan) -> EvaluationPlan:
        """Return a branch, or the plan that counts its matches if those of this plan are counted."""
        if self.counted is None:
            return branch
        by, every, days = self.bound.by, self.bound.every, self.bound.days
        bound = replace(branch.bound, query=self.query, by=by, every=every, days=days)
        return replace(branch, bound=bound, output_schema=self.output_schema, counted=branch)


def _is_of_last(predicate: TypedExpression) -> bool:
    """Return whether a predicate waits for the last iteration of a repeated group."""
    return any(column.index == "last" for column in columns_in(predicate))


def _is_between(variable: str, times: Sequence[TimeCondition]) -> bool:
    """Return whether conditions put an event behind one event of the match, and before another one."""
    behind = before = False
    for condition in times:
        earlier, bare = condition.earlier, condition.apart is None and not condition.beside
        is_plain = bare and condition.ticks == 0 and condition.numbers is None and not condition.moments
        if earlier is None or not is_plain or variable not in (condition.later.variable, earlier.variable):
            continue
        is_later = condition.later.variable == variable
        behind |= condition.comparison == (">" if is_later else "<")
        before |= condition.comparison == ("<" if is_later else ">")
    return behind and before
