"""Facts about the rows of a plan's result, and about the matches that they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from uncertain_cep.plan.options import Approximation
from uncertain_cep.plan.result_columns import least_confidence
from uncertain_cep.query import Query
from uncertain_cep.query.syntax import CountedEvents
from uncertain_cep.query.typed import TypedExpression, columns_in

__all__ = ["ResultRows"]

_OF_PARTS: Final = pa.schema([("part", pa.int64()), ("matches", pa.binary())])
"""Matches of groups, and the part that weighs these."""


class ResultRows:
    """The rows that a plan returns: matches, expected counts or probabilities of groups."""

    __slots__ = ()

    if TYPE_CHECKING:
        # The plan has these.
        confidence: bool
        approximate: Approximation | None
        output_schema: pa.Schema
        counted: object | None
        by_row: object | None
        spread: int
        keeps_undecided: bool
        having: TypedExpression | None
        unnamed_keys: tuple[pa.Field, ...]

        @property
        def query(self) -> Query:
            """The query as parsed."""

        @property
        def partition_attributes(self) -> tuple[str, ...]:
            """The partition keys that lead the result."""

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns of batches that tell the partition of a match, to choose among those of one."""
        return (*self.partition_attributes, *(field.name for field in self.unnamed_keys))

    @property
    def batch_schema(self) -> pa.Schema:
        """Columns of the engine's batches: the result's, and those that only choose among the matches."""
        if self.spread:
            return _OF_PARTS
        query, schema = self.query, self.output_schema
        chosen_by = query.is_ordered or query.non_overlapping or self._having_asks_confidence
        if chosen_by and not self.confidence:
            schema = schema.append(pa.field("confidence", pa.float64()))
        for key in self.unnamed_keys:
            schema = schema.append(key)
        return schema

    @property
    def needs_confidence(self) -> bool:
        """Whether confidences have to be computed, shown or not."""
        query = self.query
        chosen_by = query.min_confidence is not None or query.is_ordered or query.non_overlapping
        return self.confidence or chosen_by or self._having_asks_confidence

    @property
    def _having_asks_confidence(self) -> bool:
        return self.having is not None and any(
            column.name == "confidence" for column in columns_in(self.having)
        )

    @property
    def least_confidence(self) -> float:
        """A confidence that every match reaches which HAVING keeps, but for rounding; 0 if it asks none."""
        return max(self.query.min_confidence or 0.0, least_confidence(self.having))

    @property
    def counts(self) -> bool:
        """Whether the result is expected counts instead of matches."""
        return self.counted is not None

    @property
    def rows_are(self) -> str:
        """The name of the rows of the result."""
        if self.is_grouped:
            return "probabilities of groups"
        return "expected counts" if self.counts else "matches"

    @property
    def is_grouped(self) -> bool:
        """Whether the result is the probabilities of groups instead of matches."""
        return self.by_row is not None

    @property
    def returns_matches(self) -> bool:
        """Whether the rows of the result are matches."""
        return not self.counts and not self.is_grouped

    @property
    def bounds_groups(self) -> bool:
        """Whether the probabilities of groups need not be exact, and have certain bounds besides."""
        return self.is_grouped and (self.keeps_undecided or self.approximate is not None)

    @property
    def counted_events(self) -> CountedEvents | None:
        """The events that RETURN PROBABILITY counts, in pairs with another one."""
        return None if self.query.probability is None else self.query.probability.counted

    @property
    def at_least(self) -> int:
        """How many matches of a group RETURN PROBABILITY asks for."""
        clause = self.query.probability
        return 1 if clause is None else clause.at_least

    @property
    def needs_all(self) -> bool:
        """Whether the result is known only once all batches are: ordered, chosen from, or added up."""
        query = self.query
        chooses = query.non_overlapping or query.is_ordered or query.limit is not None
        return chooses or not self.returns_matches

    @property
    def collects(self) -> bool:
        """Whether all matches that the query speaks of end up in one table or in one place."""
        return self.returns_matches and (self.query.limit is None or self.query.non_overlapping)
