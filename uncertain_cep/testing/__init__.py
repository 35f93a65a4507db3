"""For those who test pipelines: what has to hold of matches, what a right answer is, and events to try.

``assert_certain``, ``assert_likely`` and ``assert_never`` say what has to hold of some matches.
``assert_answer`` holds them against ``answer``: the possible worlds, enumerated with exact fractions by code
that has nothing in common with the engine. ``strategies``, which needs the extra ``testing``, draws events
and queries for Hypothesis.

>>> import uncertain_cep as uc
>>> from uncertain_cep.testing import Event, Query, answer, one, seq, table
>>> events = [Event("A", 1, 0, 3), Event("B", 2, 2, 5)]
>>> [(match.signature, str(match.confidence)) for match in answer(Query(seq(one("A", "a"), one("B", "b")), 9), events)]
[((('a', 1), ('b', 2)), '13/16')]
>>> uc.testing.assert_likely(uc.match(table(events), "PATTERN SEQ(A a, B b) WITHIN 9"), 0.8, a=1, b=2)
"""  # noqa: E501 - an example is a line

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from uncertain_cep.testing.assertions import assert_answer, assert_certain, assert_likely, assert_never, table
from uncertain_cep.testing.counted_worlds import probabilities
from uncertain_cep.testing.model import (
    Clock,
    Component,
    Event,
    Match,
    Predicate,
    Query,
    conj,
    disj,
    no,
    one,
    plus,
    seq,
    where,
)
from uncertain_cep.testing.worlds import answer, answer_literally

if TYPE_CHECKING:
    from uncertain_cep.testing import strategies as strategies

__all__ = [
    "Clock",
    "Component",
    "Event",
    "Match",
    "Predicate",
    "Query",
    "answer",
    "answer_literally",
    "assert_answer",
    "assert_certain",
    "assert_likely",
    "assert_never",
    "conj",
    "disj",
    "no",
    "one",
    "plus",
    "probabilities",
    "seq",
    "strategies",
    "table",
    "where",
]


def __getattr__(name: str) -> object:
    """Import what draws when it is first used: it needs Hypothesis."""
    if name != "strategies":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.strategies")
