"""Rules that add up: their intervals are Minkowski sums, their laws convolutions where there are any."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.traces.test_uncertainty import bounds
from uncertain_cep import clock_offset, columns, granularity, histogram, plus_minus, window
from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.traces import exact, intervals_of
from uncertain_cep.traces.added_rules import added

LENGTHS = st.one_of(
    st.just(exact()),
    st.integers(0, 9).map(plus_minus),
    st.integers(1, 9).map(granularity),
    st.integers(1, 9).map(window),
)


@st.composite
def single_rules(draw: st.DrawFn) -> Any:
    low = draw(st.integers(-5, 5))
    high = low + draw(st.integers(0, 5))
    return draw(
        st.sampled_from(
            (
                columns("lo", "hi"),
                columns("lo - 3", "hi + 2 * 4"),
                clock_offset({"h": (low, high)}, unit="tick", key="host"),
                clock_offset({"h": (low, high)}, unit="tick", key="host", shared=True),
                clock_offset({"h": (low, high)}, unit="tick", key="host", shared=True, own=granularity(3)),
                uc.by_value("host", {"h": window(4), "g": plus_minus(1)}),
                histogram("p"),
                window(5, source="host"),
            )
        )
    )


@given(st.data())
def test_intervals_are_minkowski_sums(data: st.DataObject) -> None:
    rules = data.draw(st.lists(LENGTHS, min_size=1, max_size=4))
    if data.draw(st.booleans()):
        rules.insert(data.draw(st.integers(0, len(rules))), data.draw(single_rules()))
    stamps = data.draw(st.lists(st.integers(-50, 50), min_size=1, max_size=4))
    raw = pa.table(
        {
            "t": stamps,
            "lo": [stamp - 2 for stamp in stamps],
            "hi": [stamp + 7 for stamp in stamps],
            "host": ["h"] * len(stamps),
            "p": [[0.25, 0.0, 0.75]] * len(stamps),
        }
    )
    expected = [(stamp, stamp) for stamp in stamps]
    for rule in rules:
        alone = bounds(intervals_of(raw, time="t", uncertainty=rule))
        expected = [
            (low + first - stamp, high + last - stamp)
            for (low, high), (first, last), stamp in zip(expected, alone, stamps, strict=True)
        ]
    made = intervals_of(raw, time="t", uncertainty=added(rules))
    assert bounds(made) == expected
    if "pmf" in made.column_names:
        sizes = [len(weights) for weights in made["pmf"].to_pylist()]
        assert sizes == [last - first + 1 for first, last in expected]
    # The offset of a shared clock stays what it is; all else is of the event's own time.
    clock: Any = next((rule for rule in rules if getattr(rule, "shared", False)), None)
    if clock is not None:
        assert made["offset_lower"].to_pylist() == [clock.lower[0].as_py()] * len(stamps)
        assert made["offset_upper"].to_pylist() == [clock.upper[0].as_py()] * len(stamps)


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=9).filter(any),
    st.lists(st.tuples(st.sampled_from((plus_minus, granularity, window)), st.integers(1, 6)), max_size=3),
)
def test_laws_are_convolutions(weights: list[int], lengths: list[tuple[Any, int]]) -> None:
    """Of the histogram and of a time anywhere in the sum of all lengths, by exact fractions."""
    law = [Fraction(weight, sum(weights)) for weight in weights]
    raw = pa.table({"t": [10, 20], "p": [[float(part) for part in law], [1.0]]})
    rules = [make(length) for make, length in lengths]
    made = intervals_of(raw, time="t", uncertainty=added([histogram("p"), *rules]))
    width = 1 + sum(2 * length if make is plus_minus else length - 1 for make, length in lengths)
    expected = [
        sum((law[tick - one] for one in range(width) if 0 <= tick - one < len(law)), Fraction()) / width
        for tick in range(len(law) + width - 1)
    ]
    got = made["pmf"][0].as_py()
    assert got == [pytest.approx(float(one), rel=1e-12, abs=0) for one in expected]
    assert made["pmf"][1].as_py() == [pytest.approx(1 / width)] * width


def test_the_worked_example_in_every_door(tmp_path: Path) -> None:
    """A stamp cut to the second by a clock right to 200 ms: [T - 200 ms, T + 1200 ms)."""
    raw = pa.table({"at": pa.array([10]).cast(pa.timestamp("s")), "type": ["A"], "id": [1]})
    rules: list[Any] = [
        [granularity("1s"), plus_minus("200ms")],
        ("plus_minus:200ms", uc.granularity("1 s")),
        "granularity:1s + plus_minus:200ms",
        "granularity:1s+plus_minus:200ms",
        "columns:at - 200 ms,at + 1 s + 199 ms",
    ]
    for rule in rules:
        assert bounds(uc.to_intervals(raw, time="at", uncertainty=rule, tick="1ms")) == [(9_800, 11_199)]
    (tmp_path / "a.csv").write_text("at,id\n1970-01-01 00:00:10,1\n")
    schema = tmp_path / "schema.toml"
    schema.write_text(
        'tick = "1ms"\n[[events]]\ntype = "A"\ntime = "at"\n'
        'uncertainty = [{ kind = "granularity", of = "1s" }, { kind = "plus_minus", by = "200ms" }]\n'
    )
    assert bounds(uc.read_traces(tmp_path / "a.csv", schema)) == [(9_800, 11_199)]
    schema.write_text(
        'tick = "1ms"\n[[events]]\ntype = "A"\ntime = "at"\n[events.uncertainty_by.id]\n'
        '"*" = [{ kind = "as_written" }, { kind = "plus_minus", by = "200ms" }]\n'
    )
    assert bounds(uc.read_traces(tmp_path / "a.csv", schema)) == [(9_800, 11_199)]


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("[]", "names no uncertainty"),
        (
            '[{ kind = "columns", lower = "at", upper = "at" }, { kind = "as_written" }]',
            "cannot add columns and",
        ),
        (
            '[{ kind = "granularity", of = "1s" }, { kind = "plus_minus" }]',
            r"uncertainty\[2\].by: is missing",
        ),
        ('[{ kind = "granularity", of = "1s" }, 5]', r"uncertainty\[2\]: must be a table"),
    ],
)
def test_sums_that_a_schema_cannot_have(tmp_path: Path, rules: str, said: str) -> None:
    schema = tmp_path / "schema.toml"
    schema.write_text(f'[[events]]\ntype = "A"\ntime = "at"\nuncertainty = {rules}\n')
    with pytest.raises(TraceError, match=said):
        uc.load_schema(schema)


def test_sums_that_cannot_be() -> None:
    raw = pa.table({"t": [0], "lo": [4], "hi": [2], "p": [[0.5, 0.5]]})
    with pytest.raises(OptionError, match="name a rule"):
        uc.to_intervals(raw, time="t", uncertainty=[])
    with pytest.raises(OptionError, match="only one can be another one than"):
        uc.to_intervals(raw, time="t", uncertainty=[histogram("p"), columns("lo", "hi")])
    with pytest.raises(OptionError, match="give an uncertainty of stamps"):
        clock_offset({}, shared=True, own=[granularity("1s"), clock_offset({})])
    with pytest.raises(OptionError, match="is no rule"):
        uc.by_value("t", {"1": [granularity("1s"), 5]})  # type: ignore[list-item]
    with pytest.raises(OptionError, match="give a longer tick than one"):
        uc.to_intervals(raw, time="t", uncertainty=[histogram("p"), plus_minus(2**23)])
    with pytest.raises(TraceError, match=r"row 1: .*does not fit into 64 bits"):
        uc.to_intervals(pa.table({"t": [2**63 - 3]}), time="t", uncertainty=[window(3), plus_minus(5)])


def test_bounds_in_the_wrong_order_stay_a_fault() -> None:
    raw = pa.table({"type": ["A"], "id": [1], "lo": [4], "hi": [2]})
    made = uc.to_intervals(raw, uncertainty=[columns("lo", "hi"), plus_minus(5)])
    assert bounds(made) == [(4, 2)]
    with pytest.raises(TraceError, match="lower"):
        uc.match(made, "PATTERN SEQ(A a, A b) WITHIN 5")


def test_own_times_of_a_shared_clock_add_up() -> None:
    """Two stamps of one clock: its offset moves both, the doubt of each stamp does not."""
    raw = pa.table({"type": ["A", "B"], "id": [1, 2], "t": [10, 13], "host": ["h", "h"]})
    offsets = {"h": (-50, 50)}
    parts: list[Any] = [granularity(2), plus_minus(1)]
    rules: list[Any] = [
        [clock_offset(offsets, unit="tick", shared=True), *parts],
        clock_offset(offsets, unit="tick", shared=True, own=parts),
    ]
    for rule in rules:
        made = uc.to_intervals(raw, time="t", uncertainty=rule)
        assert bounds(made) == [(-41, 62), (-38, 65)]
        # own times are uniform on [9, 12] and [12, 15]: they tie at 12 in one of 16 worlds
        assert uc.match(made, "PATTERN SEQ(A a, B b) WITHIN 50")["confidence"].to_pylist() == [15 / 16]
