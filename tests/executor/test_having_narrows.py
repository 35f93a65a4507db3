"""A confidence that HAVING asks for narrows a join, or does not: the matches are the same."""

from __future__ import annotations

from contextlib import nullcontext
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from eventbased import narrowing
from tests.cases.kernels import WAYS, running
from tests.cases.sampling import sampled_from
from uncertain_cep.operators import pivot_join

_INTERVALS = st.lists(
    st.tuples(st.sampled_from("ABC"), st.integers(0, 12), st.integers(0, 4)), min_size=1, max_size=14
)


def _events(found: list[tuple[str, int, int]], size: int | None) -> pa.Table:
    """Return events, all of so many ticks if a number is given."""
    types, lower, more = zip(*found, strict=True)
    upper = [low + (own if size is None else size) for low, own in zip(lower, more, strict=True)]
    return pa.table({"type": types, "id": range(len(found)), "lower": lower, "upper": upper})


def _rows(matches: pa.Table) -> list[tuple[object, ...]]:
    return sorted(zip(*(column.to_pylist() for column in matches.columns), strict=True))


@given(_INTERVALS, sampled_from((None, 0, 1, 3, 6)), st.integers(2, 14), st.data())
def test_the_same_matches(
    found: list[tuple[str, int, int]], size: int | None, window: int, data: st.DataObject
) -> None:
    events = _events(found, size)
    pattern = data.draw(
        st.sampled_from(
            ["A a, B b", "A a, B b, C c", "A a, B b, A c", "A a, A b, A c, B d", "A a, B b, A c, B d, A e"]
        )
    )
    strategy = data.draw(st.sampled_from(["", "skip_till_next_match"]))
    names = ", ".join(part.split()[1] for part in pattern.split(", "))
    where = f" WHERE {strategy}({names})" if strategy else ""
    query = f"PATTERN SEQ({pattern}){where} WITHIN {window}"
    every = uc.match(events, query)
    occurs = sorted({float(value) for value in every.column("confidence").to_pylist()}) or [0.5]
    least = data.draw(st.sampled_from(occurs)) * data.draw(sampled_from((1.0, 1.0 - 1e-6, 1.0 + 1e-6)))
    expected = [row for row in _rows(every) if float(str(row[-1])) >= least * (1.0 - 1e-9)]
    with (
        mock.patch.object(narrowing, "WORTH_CLIMBING", 0),
        mock.patch.object(pivot_join, "WORTH_FILTERING", data.draw(sampled_from((0.0, 0.3, 2.0)))),
        running(data.draw(WAYS)) if data.draw(st.booleans()) else nullcontext(),
    ):
        if least > 1.0:
            return
        batches = list(
            uc.iter_matches(
                events,
                f"{query} HAVING CONFIDENCE >= {least!r}",
                threads=data.draw(st.integers(1, 2)),
                batch_rows=data.draw(sampled_from((1, 3, 100))),
            )
        )
    narrow = pa.Table.from_batches(batches, every.schema)
    assert [row[:-1] for row in _rows(narrow)] == [row[:-1] for row in expected]
    assert [row[-1] for row in _rows(narrow)] == pytest.approx([row[-1] for row in expected])


def test_a_join_that_is_narrowed_much_looks_at_little() -> None:
    """The matches that are weighed by themselves show the way that is taken."""
    count = 3000
    events = pa.table(
        {"type": ["A", "B", "C"] * count, "id": range(3 * count), "lower": range(3 * count),
         "upper": range(100, 3 * count + 100)}
    )  # fmt: skip
    query = "PATTERN SEQ(A a, B b, C c) WITHIN 100"
    best = uc.match(events, f"{query} ORDER BY CONFIDENCE DESC LIMIT 1").column("confidence")[0].as_py()
    for share, narrows in ((0.02, False), (0.99, True)):
        with mock.patch.object(pivot_join, "narrowed", wraps=narrowing.narrowed) as narrow:
            found = uc.match(events.slice(0, 6000), f"{query} HAVING CONFIDENCE >= {best * share!r}")
        assert narrow.called == narrows
        assert found.num_rows
