"""Groups of matches whose events sequences put in order, against all worlds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.grouped import Grouping, assert_probabilities
from tests.executor.test_sequences import table_of, traces
from tests.oracle import Event, no, one, plus, seq
from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.testing.counted_worlds import probabilities
from uncertain_cep.testing.model import Pattern, Query, Strategy

PATTERNS: dict[str, Pattern] = {
    "A v0, B v1": seq(one("A", "v0"), one("B", "v1")),
    "(A|B) v0, B v1": seq(one("A|B", "v0"), one("B", "v1")),
    "A v0, B v1, A v2": seq(one("A", "v0"), one("B", "v1"), one("A", "v2")),
    "A v0, B+ v1[]": seq(one("A", "v0"), plus("B", "v1")),
    "A v0, !B n, A v1": seq(one("A", "v0"), no("B", "n"), one("A", "v1")),
    "!A n, A v0, B v1": seq(no("A", "n"), one("A", "v0"), one("B", "v1")),
    "A v0, B v1, !B n": seq(one("A", "v0"), one("B", "v1"), no("B", "n")),
    "A v0, !B n, B+ v1[]": seq(one("A", "v0"), no("B", "n"), plus("B", "v1")),
}
STRATEGIES: list[Strategy] = [
    "skip_till_any_match", "skip_till_next_match", "strict_contiguity", "partition_contiguity",
]  # fmt: skip
GROUPINGS = st.builds(
    Grouping, st.sampled_from([(), ("v0",)]), st.sampled_from([None, None, 2]), st.integers(1, 2)
)


@given(
    st.sampled_from(sorted(PATTERNS)),
    st.one_of(traces(ordered=False), traces(sources=1, total=True)),
    st.integers(1, 9),
    st.sampled_from(STRATEGIES),
    GROUPINGS,
)
def test_sequences_break_ties(
    pattern: str, events: list[Event], window: int, strategy: Strategy, grouping: Grouping
) -> None:
    assume(strategy == "skip_till_any_match" or "!" not in pattern)
    names = ", ".join(name for name in ("v0", "v1[]" if "v1[]" in pattern else "v1", "v2") if name in pattern)
    condition = "" if strategy == "skip_till_any_match" else f"WHERE {strategy}({names})"
    text = f"PATTERN SEQ({pattern}) {condition} WITHIN {window} {grouping.clause}"
    note(text)
    try:
        expected: dict[Any, Any] = dict(
            probabilities(
                Query(PATTERNS[pattern], window, (), strategy),
                events,
                by=grouping.by,
                every=grouping.every,
                at_least=grouping.at_least,
            )
        )
    except ValueError:
        # An ordered source whose events have no times in their order.
        assume(False)
    try:
        rows = uc.match(table_of(events), text)
    except OptionError as error:
        if "ordered source whose times overlap" not in str(error):
            raise
        return
    except TraceError as error:
        # The oracle need not look at the times of a source whose events no match can have.
        if "leaves none" not in str(error):
            raise
        return
    assert_probabilities(rows, expected, grouping)


def test_a_tie_that_a_sequence_breaks() -> None:
    """Without jitter at one reading: the order is that of the sequences in every world."""
    clock = uc.testing.Clock(0, 4)
    events = [Event(kind, id, 0, 4, clock=clock, sequence=id) for id, kind in enumerate("ABB")]
    text = "PATTERN SEQ(A a, B b) WITHIN 9 RETURN PROBABILITY OF AT LEAST 2 MATCHES"
    assert uc.match(table_of(events), text).to_pylist() == [{"probability": 1.0}]


def test_a_tie_that_a_sequence_breaks_for_what_forbids() -> None:
    """N, at the tick of all others, is between A and both B, or behind the first B."""
    clock = uc.testing.Clock(0, 4)
    for place, expected in ((1, []), (2, [{"probability": 1.0}])):
        kinds = ["A", "B", "B"]
        kinds.insert(place, "N")
        events = [Event(kind, id, 0, 4, clock=clock, sequence=id) for id, kind in enumerate(kinds)]
        text = "PATTERN SEQ(A a, !N n, B b) WITHIN 9 RETURN PROBABILITY"
        assert uc.match(table_of(events), text).to_pylist() == expected


def test_records_of_ordered_sources_are_refused_where_a_group_has_several_matches() -> None:
    clock = uc.testing.Clock(0, 0, ordered=True)
    events = [Event(kind, id, 0, 5, clock=clock, sequence=id) for id, kind in enumerate("ABB")]
    table = table_of(events)
    text = "PATTERN SEQ(A a, B b) WITHIN 9 RETURN PROBABILITY"
    with pytest.raises(OptionError, match="ordered source whose times overlap"):
        uc.match(table, text)
    # What one match depends on was weighed with it.
    (one_row, other) = uc.match(table, f"{text} BY b").to_pylist()
    assert one_row["probability"] == other["probability"] == pytest.approx(1.0)
