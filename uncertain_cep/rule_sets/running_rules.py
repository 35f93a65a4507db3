"""A rule over a stream: its evaluation, and which of its alerts are told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from confidence.config import EVER, NEVER
from uncertain_cep.errors import UncertainCepError
from uncertain_cep.plan import MatchOptions
from uncertain_cep.rule_sets.events_by_type import types_of
from uncertain_cep.rule_sets.named_rules import Rule, of_each_rule
from uncertain_cep.rule_sets.rule_changes import cut_column
from uncertain_cep.rule_sets.told_alerts import SUPPRESSED, AlertTeller, check_suppression
from uncertain_cep.streaming.early_rows import why_not_early
from uncertain_cep.streaming.query_evaluation import QueryEvaluation, StreamPlan, stream_plan
from uncertain_cep.streaming.recent_events import reach_back
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
    reach : int
        See :func:`uncertain_cep.streaming.recent_events.reach_back`.
    matches : int
        How many matches became final.
    since, until : int
        Only matches whose ``range_upper``, or buckets whose begin, is at ``since`` or later and before
        ``until``, ticks, are of this rule: others are of those that were there before, or came after it.
    latest : int
        The latest of these ticks of any match so far.
    failure : str
        The error that ended it; empty while it goes on.
    """

    def __init__(self, rule: Rule, stream: StreamPlan) -> None:
        plan = stream.plan
        self.rule, self.plan = rule, plan
        self.types = types_of(plan, stream.schema)
        self.awaited = types_that_matter(plan)
        self.reach = reach_back(plan)
        self._stream = stream
        self.evaluation = QueryEvaluation(stream)
        self.teller: AlertTeller | None = None
        if rule.suppress is not None:
            apart = check_suppression(plan, rule.suppress)
            self.teller = AlertTeller(plan, apart, rule.suppress.by)
        self.matches = 0
        self.failure = ""
        self.since, self.until, self.latest = NEVER, EVER, NEVER
        self._cut_by = cut_column(plan)

    @property
    def is_cut(self) -> bool:
        """Whether its answer can be cut in two at a tick."""
        return self._cut_by is not None

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
        counted = self.matches, self.since, self.until, self.latest
        return self.evaluation.held, self.teller, counted, self.failure

    def take_over(self, held: tuple[Any, ...]) -> None:
        """Go on from what another run of the same rule held."""
        evaluation, self.teller, counted, *failure = held
        self.matches, self.since, self.until, self.latest = counted
        # Snapshots of before have none.
        self.failure = failure[0] if failure else ""
        self.evaluation.take_over(evaluation)

    def fail(self, error: UncertainCepError) -> pa.Table | None:
        """End as an error says; return the alerts that waited to be told, which are true nevertheless."""
        self.failure = str(error)
        self.evaluation = QueryEvaluation(self._stream)
        return None if self.teller is None else self.teller.tell(self.plan.output_schema.empty_table())

    def is_same(self, rule: Rule) -> bool:
        """Return whether a rule tells the same alerts as this one, which goes on."""
        if self.failure:
            return False
        query, name, suppress = self.rule.query, self.rule.name, self.rule.suppress
        same_query = query.text_with_values == rule.query.text_with_values
        return same_query and (name, suppress) == (rule.name, rule.suppress)

    def has_ended(self, safe: int) -> bool:
        """Return whether it tells no alert any more, as it is followed by another one."""
        if self.failure:
            return True
        if self.until == EVER or (self.teller is not None and self.teller.holds):
            return False
        return self.evaluation.earliest_end(safe) >= self.until

    def tell(self, matches: pa.RecordBatch, safe: int) -> pa.Table | None:
        """Return the alerts that are told, now that matches became final; None for none."""
        alerts = None
        if matches.num_rows:
            alerts = self._cut(pa.Table.from_batches([matches]).select(self.plan.output_schema.names))
            self.matches += alerts.num_rows
        if self.teller is None or (alerts is None and not self.teller.holds):
            return alerts
        if alerts is None:
            alerts = self.plan.output_schema.empty_table()
        return self.teller.tell(alerts, self.evaluation.earliest_end(safe))

    def _cut(self, alerts: pa.Table) -> pa.Table:
        """Return the alerts that are of this rule, and note the latest."""
        if self._cut_by is None:
            return alerts
        ticks = self.plan.domain.ticks(alerts.column(self._cut_by))
        if (self.since, self.until) != (NEVER, EVER):
            kept = (ticks >= self.since) & (ticks < self.until)
            alerts, ticks = alerts.filter(pa.array(kept)), ticks[kept]
        self.latest = max(self.latest, int(ticks.max(initial=NEVER)))
        return alerts


def running_rules(
    rules: Iterable[Rule], schema: pa.Schema, options: MatchOptions, when: str = "final"
) -> list[RunningRule]:
    """Return rules over a stream of events of a schema.

    With ``when="certain"`` rules whose rows are not certain before they are final tell these.

    Raises
    ------
    QueryError, OptionError
        As :func:`uncertain_cep.rule_sets.named_rules.of_each_rule`.
    """

    def running_rule(rule: Rule) -> RunningRule:
        usual = stream_plan(rule.query, schema, options)
        is_early = when == "certain" and not why_not_early(usual.plan)
        return RunningRule(rule, stream_plan(rule.query, schema, options, when=when) if is_early else usual)

    return of_each_rule(rules, running_rule)
