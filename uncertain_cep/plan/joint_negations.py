"""Negated groups: where it is not supported that several events forbid together."""

from __future__ import annotations

import pyarrow as pa

from uncertain_cep.errors import OptionError
from uncertain_cep.plan.options import MatchOptions
from uncertain_cep.query.syntax import Query
from uncertain_cep.query.walks import components_of
from uncertain_cep.timeline.lasting_columns import has_spans

__all__ = ["refuse_negated_groups"]


def refuse_negated_groups(schema: pa.Schema, query: Query, options: MatchOptions) -> None:
    """Raise OptionError where a negated group is not supported."""
    if not any(part.joint for part in components_of(query.pattern)):
        return
    names, what = options.names, None
    if has_spans(schema.names):
        what = "events that last"
    elif options.sources and names.source in schema.names and names.sequence in schema.names:
        what = f"ties that the column {names.sequence!r} breaks: leave it out"
    if what is not None:
        raise OptionError(f"a negated group, such as !SEQ(N n, M m), does not support {what}")
