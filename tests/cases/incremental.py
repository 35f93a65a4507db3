"""Sizes at which incremental state grows and is compacted, made small enough for small cases to meet them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from unittest.mock import patch

from eventbased.incremental import candidate_pool, method, run_pool
from uncertain_cep.candidates import partition_ids as partition_numbers
from uncertain_cep.streaming import event_buffer as retained
from uncertain_cep.streaming import micro_batches as sliced
from uncertain_cep.streaming import reoptimisation as replanning

__all__ = ["thresholds"]

_SMALL: tuple[tuple[ModuleType, str, float], ...] = (
    (candidate_pool, "FIRST_CAPACITY", 1),
    (run_pool, "FIRST_RUNS", 1),
    (run_pool, "FIRST_FOUND", 1),
    (method, "PART_ROWS", 2),
    (method, "SETTLED_ROWS", -(10**6)),
    (retained, "FEW_HELD", -(10**6)),
    (partition_numbers, "FEW_HELD", -(10**6)),
    (sliced, "FEW_HELD", -(10**6)),
    (replanning, "SHARE_OF_MEASURING", 1e9),
    (replanning, "WORTH_A_CHANGE", 1.0),
)


@contextmanager
def thresholds(*, small: bool) -> Iterator[None]:
    """Grow from next to nothing and compact after every step, if ``small``; else leave all as it is."""
    with ExitStack() as stack:
        if small:
            for module, name, value in _SMALL:
                stack.enter_context(patch.object(module, name, value))
        yield
