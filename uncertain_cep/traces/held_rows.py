"""Faults of events whose rows nobody knows, as they are some of a stream or of a partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from uncertain_cep.errors import TraceError
from uncertain_cep.timeline.domain import Names
from uncertain_cep.traces.checks import OTHER_BOUNDS, OTHER_PMF, used_again

__all__ = ["naming_no_rows"]


@contextmanager
def naming_no_rows(names: Names, partition: Sequence[str]) -> Iterator[None]:
    """Have a `TraceError` name no rows of a table that only some call holds.

    ``partition`` is the attributes of which ids are unique for each combination.
    """
    try:
        yield
    except TraceError as error:
        messages = {
            names.source: OTHER_BOUNDS,
            names.offset_pmf: OTHER_PMF,
            names.id: used_again(partition),
        }
        raise TraceError(
            [
                replace(fault, row=None, message=messages.get(fault.column or "", fault.message))
                for fault in error.faults
            ]
        ) from None
