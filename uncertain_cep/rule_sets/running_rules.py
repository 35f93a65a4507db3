"""A rule over a stream: its evaluation, and which of its alerts are told."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from uncertain_cep.errors import Fault, OptionError, QueryError
from uncertain_cep.plan import EvaluationPlan, MatchOptions
from uncertain_cep.rule_sets.events_by_type import types_of
from uncertain_cep.rule_sets.named_rules import Rule, Rules
from uncertain_cep.rule_sets.told_alerts import SUPPRESSED, AlertTeller, check_suppression
from uncertain_cep.streaming.query_evaluation import QueryEvaluation, stream_plan
from uncertain_cep.streaming.watermark import types_that_matter

__all__ = ["RunningRule", "running_rules"]


class RunningRule:
    """A rule, its evaluation over a stream, and the choice of its alerts that are told.

    Attributes
    ----------
    rule : Rule
    plan : EvaluationPlan
    types : frozenset of str or None
        The types of the events that matter to it; None: all.
    awaited : frozenset of str
        The types whose heartbeats matter to it; empty: none by themselves.
    matches : int
        How many matches became final.
    """

    def __init__(self, rule: Rule, plan: EvaluationPlan, method: str, schema: pa.Schema) -> None:
        self.rule, self.plan = rule, plan
        self.types = types_of(plan, schema)
        self.awaited = types_that_matter(plan)
        self.evaluation = QueryEvaluation(plan, schema, method)
        self.teller: AlertTeller | None = None
        if rule.suppress is not None:
            apart = check_suppression(plan, rule.suppress)
            self.teller = AlertTeller(plan, apart, rule.suppress.by)
        self.matches = 0

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of its alerts."""
        schema = self.plan.output_schema
        return schema if self.teller is None else schema.append(pa.field(SUPPRESSED, pa.int64()))

    @property
    def suppressed(self) -> int:
        """How many alerts were left out."""
        return 0 if self.teller is None else self.teller.suppressed

    @property
    def size(self) -> int:
        """Candidates, runs, events and alerts held now."""
        return self.evaluation.size + (0 if self.teller is None else self.teller.size)

    @property
    def held(self) -> tuple[Any, ...]:
        """All that changes with the events."""
        return self.evaluation.held, self.teller, self.matches

    def take_over(self, held: tuple[Any, ...]) -> None:
        """Go on from what another run of the same rule held."""
        evaluation, self.teller, self.matches = held
        self.evaluation.take_over(evaluation)

    def tell(self, matches: pa.RecordBatch, safe: int) -> pa.Table | None:
        """Return the alerts that are told, now that matches became final; None for none."""
        self.matches += matches.num_rows
        if self.teller is None:
            if not matches.num_rows:
                return None
            return pa.Table.from_batches([matches]).select(self.plan.output_schema.names)
        if not matches.num_rows and not self.teller.holds:
            return None
        alerts = pa.Table.from_batches([matches]).select(self.plan.output_schema.names)
        return self.teller.tell(alerts, self.evaluation.earliest_end(safe))


def running_rules(rules: Rules, schema: pa.Schema, options: MatchOptions) -> list[RunningRule]:
    """Return rules over a stream of events of a schema.

    Raises
    ------
    QueryError
        With the faults of all rules, each behind the name of its rule.
    OptionError
        With what keeps each rule from a stream.
    """
    faults: list[Fault] = []
    refusals: list[str] = []
    running = []
    for rule in rules:
        try:
            plan, method = stream_plan(rule.query, schema, options)
            running.append(RunningRule(rule, plan, method, schema))
        except QueryError as error:
            faults += [
                Fault(f"rule {rule.name!r}: {fault.message}", fault.line, fault.column)
                for fault in error.faults
            ]
        except OptionError as error:
            refusals.append(f"rule {rule.name!r}: {error}")
    if faults:
        raise QueryError(faults)
    if refusals:
        raise OptionError("\n".join(refusals))
    return running
