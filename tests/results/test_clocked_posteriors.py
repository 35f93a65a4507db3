"""When the events of matches happened that share clocks: the law that enumerated worlds give."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.clocks import by_clocks
from tests.cases.existence import doubtful
from tests.cases.language import LanguageCase, language_cases
from tests.cases.nested import NestedCase, nested_cases
from tests.executor.test_shared_clocks import table_of, text, traces
from tests.oracle import Event, Query, one, seq
from tests.results.test_posteriors import check, check_law, weighed_by_boxes
from uncertain_cep.testing.worlds import times_given

TYPES = st.sampled_from(["AB", "ABA", "AAB", "ABAB"])


@pytest.mark.parametrize("by", [nullcontext, weighed_by_boxes])
@given(types=TYPES, window=st.integers(2, 14), events=traces(weighed=True), listed=st.booleans())
def test_posteriors_are_those_of_the_worlds(
    by: Callable[[], AbstractContextManager[None]], types: str, window: int, events: list[Event], listed: bool
) -> None:
    """By closed forms, and by weighers with a box more."""
    query = Query(seq(*(one(type, f"v{place}") for place, type in enumerate(types))), window)
    laws = {
        tuple(entry for _, entry in signature): law
        for (_, signature), law in times_given(query, events).items()
    }
    table = table_of(events)
    matches = uc.match(table, text(types, window), threads=1)
    with by():
        rows = uc.posteriors(matches, table, text(types, window), pmf_ticks=1000 if listed else 0).to_pylist()
    lower = {event.id: event.lower for event in events}
    ids = [f"v{place}" for place in range(len(types))]
    for place, record in enumerate(matches.select(ids).to_pylist()):
        expected = laws[tuple(record.values())]
        for row, law in zip(rows[place * len(types) : (place + 1) * len(types)], expected, strict=True):
            check_law({**row, "lower": lower[row["id"]]}, law, listed)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from("hhgg ")), min_size=3, max_size=4),
    st.integers(3, 90), st.tuples(st.integers(8, 20), st.integers(5, 9)),
)  # fmt: skip
def test_means_of_long_intervals_are_summed_by_pieces(
    stamps: list[tuple[int, str]], window: int, widths: tuple[int, int]
) -> None:
    """Pieces are longer than what is summed tick by tick; the brute force knows numbers alone."""
    bounds = {"h": (-3, widths[0] * 3), "g": (0, widths[1] * 6)}
    types = "ABCD"[: len(stamps)]
    free = [bounds.get(name, (0, 4)) for _, name in stamps]
    named = pa.array([name if name in bounds else None for _, name in stamps], pa.string())
    table = pa.table(
        {
            "type": list(types), "id": list(range(len(types))),
            "lower": [own + low for (own, _), (low, _) in zip(stamps, free, strict=True)],
            "upper": [own + high for (own, _), (_, high) in zip(stamps, free, strict=True)],
            "source": named,
            "offset_lower": pa.array([low for low, _ in free], mask=np.array(named.is_null())),
            "offset_upper": pa.array([high for _, high in free], mask=np.array(named.is_null())),
        }
    )  # fmt: skip
    clocks = list(dict.fromkeys(name if name in bounds else place for place, (_, name) in enumerate(stamps)))
    places = [clocks.index(name if name in bounds else place) for place, (_, name) in enumerate(stamps)]
    ranges = [bounds[name] if isinstance(name, str) else (0, 4) for name in clocks]
    choices = np.array(list(product(*(range(low, high + 1) for low, high in ranges))))
    times = choices[:, places] + np.array([own for own, _ in stamps])
    good = (np.diff(times, axis=1) > 0).all(axis=1) & (times[:, -1] - times[:, 0] < window)
    query = f"PATTERN SEQ({', '.join(f'{type} v{type}' for type in types)}) WITHIN {window}"
    matches = uc.match(table, query, threads=1)
    assert matches.num_rows == int(good.any())
    for place, row in enumerate(uc.posteriors(matches, table, query, pmf_ticks=0).to_pylist()):
        held = times[good][:, place]
        law = {int(tick): Fraction(int((held == tick).sum()), len(held)) for tick in np.unique(held)}
        check_law(row, law, False)


@given(by_clocks(language_cases(most=4)), st.booleans())
def test_patterns_that_forbid_and_events_uncertain_by_their_clocks(case: LanguageCase, listed: bool) -> None:
    note(case.text())
    check(case, listed)


@given(by_clocks(nested_cases("SA", 4)), st.booleans())
def test_sets_of_events_of_clocks(case: NestedCase, listed: bool) -> None:
    note(case.text())
    check(case, listed)


def test_the_options_of_functions_that_look_at_matches() -> None:
    events = [
        {"type": "A", "id": 1, "lower": 5, "upper": 15, "source": "h", "offset_lower": -5, "offset_upper": 5},
        {"type": "B", "id": 2, "lower": 7, "upper": 17, "source": "h", "offset_lower": -5, "offset_upper": 5},
    ]
    table, query = pa.Table.from_pylist(events), "PATTERN SEQ(A a, B b) WITHIN 5"
    matches = uc.match(table, query)
    together = uc.posteriors(matches, table, query)
    assert together["mean"].to_pylist() == [10.0, 12.0]
    apart = uc.posteriors(matches, table, query, sources=False)["mean"].to_pylist()
    assert apart != [10.0, 12.0]
    kleene = "PATTERN SEQ(A+ a[], B b) WITHIN 5"
    found = uc.match(table, kleene, sources=False)
    assert uc.events_of(found, table, kleene).num_rows == 2
    assert uc.posteriors(found, table, kleene, sources=False).num_rows == 2
    with pytest.raises(uc.OptionError, match="sources=0"):
        uc.posteriors(matches, table, query, sources=0)  # type: ignore[arg-type]


@given(doubtful(by_clocks(language_cases(most=4))), st.booleans())
def test_what_forbids_may_not_have_happened(case: LanguageCase, listed: bool) -> None:
    note(case.text())
    check(case, listed)


@pytest.mark.parametrize("pmf_ticks", [0, 1000])
def test_a_pmf_of_one_tick_says_nothing_of_the_offset(pmf_ticks: int) -> None:
    table = pa.table(
        {
            "type": ["A", "B"], "id": [1, 2], "lower": [0, 0], "upper": [0, 2], "pmf": [None, [1.0]],
            "source": [None, "h"], "offset_lower": [None, 0], "offset_upper": [None, 2],
        }
    )  # fmt: skip
    for pattern, mean, median in (("SEQ(B b)", 1.0, 1), ("SEQ(A a, B b)", 1.5, 1)):
        query = f"PATTERN {pattern} WITHIN 5"
        matches = uc.match(table, query)
        *_, row = uc.posteriors(matches, table, query, pmf_ticks=pmf_ticks).to_pylist()
        assert (row["mean"], row["q50"]) == (mean, median)
        nothing = uc.posteriors(matches.slice(0, 0), table.slice(0, 0), query, pmf_ticks=pmf_ticks)
        assert nothing.num_rows == 0
