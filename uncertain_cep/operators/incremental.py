"""Evaluation of SEQ by runs: plan and candidates to the incremental methods of the event-based framework."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence import CostlyMatchError, Limits
from confidence.config import EVER
from confidence.pools import AttributeValues
from eventbased.gaps.next_match import NextConfidences
from eventbased.incremental.candidate_pool import Cells, OneEvent
from eventbased.incremental.completed import LongChainError, Matches
from eventbased.incremental.method import AnyState, IncrementalMethod
from eventbased.incremental.query_order import QueryOrder
from eventbased.incremental.run_pool import MOST_COMPONENTS
from eventbased.incremental.selectivity import Selectivity
from uncertain_cep.candidates.pmfs import ExplicitPmfs
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.config.limits import LONGEST_PMF_CHAIN, MOST_CONFIDENCE_STEPS
from uncertain_cep.errors import OptionError
from uncertain_cep.expressions.run_bytecode import RunPredicates, Taken
from uncertain_cep.expressions.vectorised import Values, loaded_from
from uncertain_cep.operators.batch import MatchBatch
from uncertain_cep.operators.context import ExecutionContext
from uncertain_cep.operators.costly_matches import long_chain, too_dear
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query.typed import Column
from uncertain_cep.running.compiling import announce_compilation

__all__ = ["RunEvaluation", "run_pool"]

Int64 = NDArray[np.int64]

_METHODS: Final[dict[str, type[IncrementalMethod]]] = {
    "any_state": AnyState,
    "selectivity": Selectivity,
    "query_order": QueryOrder,
}


class RunEvaluation:
    """An incremental method together with the predicates of a plan of at least two components.

    ``ids`` returns the ids of the events with some numbers, for error messages.

    Raises
    ------
    OptionError
        If the pattern has more components than runs can tell apart.
    """

    def __init__(self, plan: EvaluationPlan, ids: Callable[[Int64], list[Any]]) -> None:
        announce_compilation()
        length = len(plan.components)
        if length > MOST_COMPONENTS:
            raise OptionError(
                f"evaluation={plan.evaluation!r} takes patterns of at most {MOST_COMPONENTS} components, "
                f"and this one has {length}: match it with evaluation='query_order'"
            )
        variables = [component.variable for component in plan.components]
        self._plan = plan
        self._ids = ids
        self._predicates = RunPredicates(plan.joined, variables)
        following = None
        if plan.query.strategy == "skip_till_next_match":
            limits = Limits(float(MOST_CONFIDENCE_STEPS), *plan.estimates)
            following = NextConfidences(length, plan.window - length, limits)
        self.method = _METHODS[plan.evaluation](
            length,
            plan.window,
            self._predicates.bytecode,
            confidence=plan.needs_confidence,
            longest=LONGEST_PMF_CHAIN,
            following=following,
        )

    def push(
        self,
        table: pa.Table,
        selection: Selection,
        pmfs: ExplicitPmfs | None,
        numbers: Int64 | None,
        safe: int,
    ) -> Iterator[Matches]:
        """Yield the matches that become final with the candidates of a table.

        ``numbers``, (n,) int64, stand for the rows in the matches; None: the rows do. No event to come has a
        lower bound below ``safe``, ticks.

        Raises
        ------
        TraceError
            If the chain of a match with an explicit pmf is too long.
        """
        sizes = [len(part) for part in selection.rows]
        rows = np.concatenate(selection.rows)
        if selection.partition is None:
            partition = np.zeros(len(rows), dtype=np.int64)
        else:
            partition = np.concatenate(selection.partition)
        matches = self.method.push(
            np.repeat(np.arange(len(sizes)), sizes),
            partition,
            np.concatenate(selection.lower),
            np.concatenate(selection.upper),
            rows if numbers is None else numbers[rows],
            np.full(len(rows), -1) if pmfs is None else pmfs.offset[rows],
            np.zeros(0) if pmfs is None else pmfs.values,
            self._values(table, selection, sizes),
            safe=safe,
        )
        yield from self.checked(matches)

    @property
    def takes_events(self) -> bool:
        """Whether :meth:`push_few` may take events."""
        return self._predicates.takes_events

    def cells_of(self, event: Mapping[str, Any], components: list[int]) -> list[Cells] | None:
        """Return the values of an event that predicates across components read; None if it needs a table."""
        return self._predicates.take_event(event, components)

    def push_few(self, events: Sequence[OneEvent], safe: int) -> Iterator[Matches]:
        """Do what :meth:`push` does for few events with uniform times."""
        return self.checked(self.method.push_few(events, safe))

    def checked(self, matches: Iterator[Matches]) -> Iterator[Matches]:
        """Yield matches, with the error of a chain that is too long in the user's words."""
        try:
            yield from matches
        except LongChainError:
            raise long_chain(self._plan.names.pmf) from None
        except CostlyMatchError as error:
            raise too_dear(self._plan, self._ids(error.events), error.steps) from None

    @property
    def held(self) -> tuple[IncrementalMethod, RunPredicates]:
        """All that changes with the events, which can be pickled."""
        return self.method, self._predicates

    def take_over(self, held: tuple[IncrementalMethod, RunPredicates]) -> None:
        """Go on with what another evaluation of the same plan held."""
        self.method, self._predicates = held

    def forget_strings(self) -> None:
        """Forget the strings of events that are gone."""
        slots = self._predicates.string_slots
        if not slots:
            return
        used = np.concatenate([self.method.pool.values(slot) for slot in slots])
        ranks = self._predicates.forget_strings(used)
        if ranks is not None:
            self._use(ranks)

    def _values(self, table: pa.Table, selection: Selection, sizes: list[int]) -> AttributeValues | None:
        columns = self._predicates.columns
        if not columns:
            return None
        component = {part.variable: j for j, part in enumerate(self._plan.components)}
        whole = loaded_from(table.column)
        values: dict[Column, Values] = {
            column: whole(column).take(selection.rows[component[column.variable]]) for column in columns
        }
        ends = np.cumsum([0, *sizes]).tolist()
        spans = [slice(ends[j], ends[j + 1]) for j in range(len(sizes))]
        taken: Taken = self._predicates.take(values, spans, ends[-1])
        if taken.bytecode is not None:
            self._use(taken.ranks)
        return taken.values

    def _use(self, ranks: Int64 | None) -> None:
        """Hand the bytecode as it is now, and ranks as they are now, to the candidates held."""
        pool = self.method.pool
        pool.use(self._predicates.bytecode)
        if ranks is not None:
            for slot in self._predicates.string_slots:
                pool.map_values(slot, ranks)


def run_pool(context: ExecutionContext) -> Iterator[MatchBatch]:
    """Yield the matches of a join by way of runs.

    The events are fed by ascending lower bound, so that runs are forgotten as soon as they can be;
    memory is O(candidates + runs in reach of the window + batch_rows).
    """
    plan, table, payload, batch_rows = context.plan, context.table, context.payload, context.batch_rows

    def ids(rows: Int64) -> list[Any]:
        names: list[Any] = table.column(plan.names.id).take(pa.array(rows)).to_pylist()
        return names

    for matches in RunEvaluation(plan, ids).push(table, context.candidates, context.pmfs, None, EVER):
        events = matches.events if payload is None else payload[matches.events]
        for start in range(0, len(matches.lower), batch_rows):
            part = slice(start, start + batch_rows)
            yield MatchBatch(
                events[:, part],
                matches.lower[part],
                matches.upper[part],
                matches.confidence[part] if context.with_confidence else None,
                matches.std_error[part],
            )
