"""The engine gives the oracle's answer, whatever the query, the batch size and the order of the rows."""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.cases import Case, Trace, cases
from tests.cases.comparison import assert_answer, assert_same, records, rows_of
from tests.cases.expressions import kind_of
from uncertain_cep.testing.model import Value


@given(cases())
def test_engine_is_the_oracle(case: Case) -> None:
    note(case.script())
    rows = rows_of(uc.match(case.trace.table(), case.text()), case)
    assert_answer(rows, case.answer())
    assert all(row.confidence is not None and 0 < row.confidence <= 1 for row in rows.values())


@given(cases())
def test_columns_are_the_fixed_ones_in_order(case: Case) -> None:
    note(case.script())
    table = case.trace.table()
    result = uc.match(table, case.text())
    partition = sorted(case.query().partition)
    assert sorted(result.column_names[: len(partition)]) == partition
    assert result.column_names[len(partition) :] == [
        *case.variables,
        "range_lower",
        "range_upper",
        "confidence",
    ]
    id_type = table.schema.field("id").type
    for variable in case.variables:
        assert result.schema.field(variable).type == getattr(id_type, "value_type", id_type)
    assert result.schema.field("range_lower").type == pa.int64()
    assert result.schema.field("range_upper").type == pa.int64()
    assert result.schema.field("confidence").type == pa.float64()
    assert result.column("confidence").null_count == 0


@given(cases())
def test_without_confidences_the_signatures_and_ranges_are_the_same(case: Case) -> None:
    note(case.script())
    table = case.trace.table()
    result = uc.match(table, case.text(), confidence=False)
    assert "confidence" not in result.column_names
    expected = {
        key: replace(row, confidence=None) for key, row in rows_of(uc.match(table, case.text()), case).items()
    }
    assert_same(rows_of(result, case), expected)


@given(cases(), st.sampled_from([1, 2, 7]), st.booleans())
def test_batches_hold_the_same_rows(case: Case, batch_rows: int, confidence: bool) -> None:
    note(case.script())
    table = case.trace.table()
    whole = uc.match(table, case.text(), confidence=confidence)
    batches = list(uc.iter_matches(table, case.text(), batch_rows=batch_rows, confidence=confidence))
    assert all(batch.schema == whole.schema for batch in batches)
    assert all(batch.num_rows <= batch_rows for batch in batches)
    joined = pa.Table.from_batches(batches, whole.schema)
    assert_same(rows_of(joined, case), rows_of(whole, case))


@given(cases(), st.data())
def test_the_order_of_the_rows_does_not_matter(case: Case, data: st.DataObject) -> None:
    note(case.script())
    shuffled = Trace(tuple(data.draw(st.permutations(case.trace.events))), case.trace.types)
    assert_same(
        rows_of(uc.match(shuffled.table(), case.text()), case),
        rows_of(uc.match(case.trace.table(), case.text()), case),
    )


@given(cases())
def test_a_uniform_pmf_may_be_written_out(case: Case) -> None:
    """All events with an explicit pmf: the general kernel instead of the closed form, the same answer."""
    note(case.script())
    explicit = tuple(
        replace(event, pmf=tuple(weight for _, weight in event.ticks())) if event.pmf is None else event
        for event in case.trace.events
    )
    assert_answer(
        rows_of(uc.match(Trace(explicit, case.trace.types).table(), case.text()), case), case.answer()
    )


@given(cases())
def test_a_pmf_column_of_nulls_is_no_pmf(case: Case) -> None:
    note(case.script())
    assume(all(event.pmf is None for event in case.trace.events))
    assert_same(
        rows_of(uc.match(case.trace.table(with_pmf=True), case.text()), case),
        rows_of(uc.match(case.trace.table(), case.text()), case),
    )


@given(cases(returns=True))
def test_return_expressions_are_evaluated_on_the_match(case: Case) -> None:
    note(case.script())
    by_id = {
        (tuple(event[name] for name in case.query().partition), event.id): event
        for event in case.trace.events
    }
    result = uc.match(case.trace.table(), case.text())
    for record in records(result):
        partition = tuple(record[name] for name in case.query().partition)
        bound = {variable: by_id[partition, record[variable]] for variable in case.variables}
        for alias, expression in case.returns:
            expected = expression.value(bound)
            if isinstance(expected, int) and kind_of(expression, case.kind) == "float":
                expected = float(expected)
            assert same_value(record[alias], expected), alias
    assert_answer(rows_of(result, case), case.answer())


def same_value(got: Value, expected: Value) -> bool:
    """Tell whether a returned value is the expected one, and of the same kind."""
    if isinstance(expected, float) and isinstance(got, float):
        return got == expected or math.isclose(got, expected, rel_tol=1e-12)
    return type(got) is type(expected) and bool(got == expected)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [("COALESCE(a.x, a.x + a.y)", 1.0), ("GREATEST(a.x, a.y)", 1.0), ("COALESCE(a.x, 2)", 1)],
)
def test_what_chooses_among_numbers_has_one_type(expression: str, expected: float) -> None:
    """Integers stay integers where the columns are: not beside a column of others."""
    table = pa.table({"type": ["A"], "id": [1], "lower": [0], "upper": [0], "x": [1], "y": [0.5]})
    (row,) = uc.match(table, f"PATTERN SEQ(A a) WITHIN 5 RETURN {expression} AS r").to_pylist()
    assert same_value(row["r"], expected)


@given(cases())
def test_nan_is_null(case: Case) -> None:
    note(case.script())
    table = case.trace.table()
    place = table.schema.get_field_index("y")
    with_nan = table.set_column(place, "y", table.column("y").cast(pa.float64()).fill_null(math.nan))
    assert_answer(rows_of(uc.match(with_nan, case.text()), case), case.answer())


@given(cases(clocks=False), st.data())
def test_events_far_apart(case: Case, data: st.DataObject) -> None:
    """Partitions over which so much time goes by that they cannot all lie on one int64 time line."""
    far = tuple(
        replace(event, lower=event.lower + shift, upper=event.upper + shift)
        for event in case.trace.events
        for shift in [data.draw(st.sampled_from([0, 0, 2**60]))]
    )
    moved = replace(case, trace=Trace(far, case.trace.types))
    note(moved.script())
    assert_answer(rows_of(uc.match(moved.trace.table(), case.text()), moved), moved.answer())


@given(cases(), st.integers(0, 3))
def test_max_matches_stops_exactly_above_the_limit(case: Case, limit: int) -> None:
    note(case.script())
    count = len(case.answer())
    if count > limit:
        with pytest.raises(uc.MatchLimitError):
            uc.match(case.trace.table(), case.text(), max_matches=limit)
    else:
        assert uc.match(case.trace.table(), case.text(), max_matches=limit).num_rows == count


@given(cases())
def test_explain_takes_every_query(case: Case) -> None:
    note(case.script())
    assert uc.explain(case.text())
    assert uc.explain(case.text(), case.trace.table())
