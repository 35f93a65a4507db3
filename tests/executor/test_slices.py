"""Time slices, each evaluated apart, together give the unsliced answer, each match once."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, cases
from tests.cases.comparison import Row, assert_same, rows_of
from uncertain_cep.executor import Slicing, execute
from uncertain_cep.plan import make_plan
from uncertain_cep.results.order import finished
from uncertain_cep.testing.model import Key

_SLICE = "slice number"


def _sliced(case: Case, origin: int, length: int, *, replicate_all: bool) -> pa.Table:
    """Return the trace with every event in every slice it can matter to, or simply in all slices."""
    table = case.trace.table()
    lowers = [event.lower for event in case.trace.events]
    longest = max((event.upper - event.lower for event in case.trace.events), default=0)
    parts = [table[:0].append_column(_SLICE, pa.array([], pa.int64()))]
    numbers = range((min(lowers) - origin) // length, (max(lowers) - origin) // length + 1) if lowers else ()
    for number in numbers:
        start = origin + number * length
        # The first event happens in [start, start + length - 1 + longest], the others at most W - 1 later.
        end = start + length - 1 + longest + case.window - 1
        part = table.filter(
            [replicate_all or (lower <= end and upper >= start) for lower, upper in _intervals(table)]
        )
        parts.append(part.append_column(_SLICE, pa.array([number] * part.num_rows, pa.int64())))
    return pa.concat_tables(parts)


def _intervals(table: pa.Table) -> list[tuple[int, int]]:
    return list(zip(table.column("lower").to_pylist(), table.column("upper").to_pylist(), strict=True))


@given(
    cases(),
    st.integers(-5, 5),
    st.sampled_from([1, 2, 3, 5, 8, 100]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["auto", "trivial", "dp_bushy", "zstream"]),
)
def test_slices_together_are_the_answer(
    case: Case, origin: int, length: int, replicate_all: bool, confidence: bool, planner: str
) -> None:
    note(case.script())
    table = case.trace.table()
    plan = make_plan(uc.parse(case.text()), table.schema, confidence=confidence, planner=planner)
    slices = _sliced(case, origin, length, replicate_all=replicate_all)
    batches = list(execute(plan, slices, slicing=Slicing(_SLICE, origin, length), batch_rows=3))
    found = pa.Table.from_batches(batches, plan.output_schema)
    assert_same(rows_of(found, case), rows_of(uc.match(table, case.text(), confidence=confidence), case))


@given(cases(), st.sampled_from([1, 3, 8]), st.integers(1, 4))
def test_the_best_of_the_slices_are_the_best(case: Case, length: int, limit: int) -> None:
    clause = f"ORDER BY CONFIDENCE DESC LIMIT {limit}"
    note(case.script("", clause))
    table = case.trace.table()
    plan = make_plan(uc.parse(case.text("", clause)), table.schema)
    slices = _sliced(case, 0, length, replicate_all=True)
    batches: list[pa.RecordBatch] = []
    for number in sorted(set(slices.column(_SLICE).to_pylist())):
        one = slices.filter(pc.equal(slices.column(_SLICE), number))
        batches.extend(execute(plan, one, slicing=Slicing(_SLICE, 0, length)))
    merged = rows_of(finished(plan, batches), case)
    expected = rows_of(uc.match(table, case.text("", clause)), case)
    assert _confidences(merged) == _confidences(expected)
    everything = rows_of(uc.match(table, case.text()), case)
    assert_same(merged, {key: everything[key] for key in merged})


def _confidences(rows: Mapping[Key, Row]) -> list[float]:
    return [round(row.confidence, 9) for row in rows.values() if row.confidence is not None]


def test_a_slice_owns_by_the_interval_not_by_where_its_probability_begins() -> None:
    """Whoever cuts the slices sees ``lower``; here all of a's probability lies behind its slice [0, 2)."""
    table = pa.table(
        {
            "type": ["A", "B"],
            "id": [1, 2],
            "lower": [0, 4],
            "upper": [3, 4],
            "pmf": [[0.0, 0.0, 0.0, 1.0], None],
            _SLICE: [0, 0],
        }
    )
    plan = make_plan(uc.parse("PATTERN SEQ(A a, B b) WITHIN 5"), table.schema)
    assert sum(batch.num_rows for batch in execute(plan, table, slicing=Slicing(_SLICE, 0, 2))) == 1
