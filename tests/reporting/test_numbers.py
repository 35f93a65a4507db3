"""Every number on a page is the one that ``uc.match`` says, or a sum of these."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.nested import nested_cases
from tests.cases.options import option_cases
from tests.cases.sampling import FEWER
from tests.reporting.pages import data_of, values
from uncertain_cep.config.tolerances import CERTAIN
from uncertain_cep.reporting.comparison import unchosen
from uncertain_cep.reporting.gathered import BINS

KINDS: dict[str, st.SearchStrategy[Any]] = {"nested": nested_cases("SAO"), "options": option_cases(most=4)}
FOUR_DIGITS = 1e-4


def key_of(row: dict[str, Any], names: list[str]) -> tuple[Any, ...]:
    return tuple(tuple(row[name]) if isinstance(row[name], list) else row[name] for name in names)


def check_sums(facts: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    confidences = [row["confidence"] for row in rows]
    certain = sum(p >= CERTAIN for p in confidences)
    likely = sum(p >= 0.5 for p in confidences)
    assert facts["totals"] == {
        "matches": len(rows),
        "expected": pytest.approx(sum(confidences)),
        "certain": certain,
        "likely": likely - certain,
        "possible": len(rows) - likely,
    }
    bars = [0] * BINS
    for p in confidences:
        bars[min(int(p * BINS), BINS - 1)] += 1
    assert facts["histogram"] == bars
    moments, origin = facts["moments"], int(facts["clock"]["origin"])
    assert (moments is None) == (not rows)
    if moments is not None:
        expected: dict[int, float] = defaultdict(float)
        counts: dict[int, int] = defaultdict(int)
        for row in rows:
            middle = row["range_lower"] + (row["range_upper"] - row["range_lower"]) // 2
            bar = (middle - origin - moments["begin"]) // moments["width"]
            expected[bar] += row["confidence"]
            counts[bar] += 1
        assert moments["count"] == [counts[bar] for bar in range(len(moments["count"]))]
        assert moments["expected"] == pytest.approx(
            [expected[bar] for bar in range(len(moments["count"]))], abs=FOUR_DIGITS
        )
    for group in facts["groups"]:
        for one in group["values"]:
            chances = [row["confidence"] for row in rows if row[group["name"]] == one["value"]]
            assert one["count"] == len(chances)
            assert one["expected"] == pytest.approx(sum(chances), abs=FOUR_DIGITS)
            if one["happened"] is not None and one["count"]:
                low, high = one["happened"]
                assert max(chances) <= high * (1 + 1e-9)
                assert low <= min(sum(chances), 1.0) * (1 + 1e-9)
        if group["cells"] is not None:
            check_cells(group, facts, rows)


def check_cells(group: dict[str, Any], facts: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """A cell of key and time has the matches of one value whose middle lies in one bar."""
    moments, origin = facts["moments"], int(facts["clock"]["origin"])
    assert len(group["cells"]) == len(group["values"])
    for one, cells in zip(group["values"], group["cells"], strict=True):
        expected = [0.0] * len(moments["count"])
        for row in rows:
            middle = (row["range_lower"] + row["range_upper"]) // 2 - origin
            if row[group["name"]] == one["value"]:
                expected[(middle - moments["begin"]) // moments["width"]] += row["confidence"]
        assert cells == pytest.approx(expected, rel=1e-3)
        assert [value > 0 for value in cells] == [value > 0 for value in expected]


def check_comparison(facts: dict[str, Any], table: pa.Table, text: str) -> None:
    """Count the missed and invented matches by two calls of match: on intervals, and on stamps."""
    names, query = facts["match_columns"], unchosen(uc.parse(text))
    lower, upper = (table.column(side).to_numpy() for side in ("lower", "upper"))
    stamp = pa.array(lower + (upper - lower) // 2)
    if "stamp" in table.column_names:
        stamp = pc.coalesce(table.column("stamp"), stamp)
    certain = table.drop_columns([name for name in table.column_names if name == "pmf"])
    for side in ("lower", "upper"):
        certain = certain.set_column(certain.column_names.index(side), side, stamp)
    on_stamps = uc.match(certain, query, confidence=False, sources=False).to_pylist()
    raw = {key_of(row, names) for row in on_stamps}
    chances = {key_of(row, names): row["confidence"] for row in uc.match(table, query).to_pylist()}
    assert facts["raw"]["matches"] == len(on_stamps) == len(raw)
    assert facts["raw"]["invented"] == len(raw - set(chances))
    missed = sorted(chances[key] for key in set(chances) - raw)
    # A confidence may be half, but for rounding.
    fewest, greatest = (sum(p >= 0.5 + off for p in missed) for off in (1e-9, -1e-9))
    assert fewest <= facts["raw"]["missed"] <= greatest
    shown = zip(*(values(facts["columns"], name) for name in names), strict=True)
    keys = [tuple(tuple(one) if isinstance(one, list) else one for one in row) for row in shown]
    assert facts["compared"] == [key in raw for key in keys]


def check_matches(facts: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    names, origin = facts["match_columns"], int(facts["clock"]["origin"])
    answer = {key_of(row, names): row for row in rows}
    shown = [
        dict(zip((one["name"] for one in facts["columns"]), cells, strict=True))
        for cells in zip(*(one["values"] for one in facts["columns"]), strict=True)
    ]
    assert len(shown) == len(answer) == len(rows)
    for number, row in enumerate(shown):
        exact = answer[key_of(row, names)]
        assert row["confidence"] == pytest.approx(exact["confidence"], rel=1e-11)
        ends = [row[f"range_{side}"] + origin for side in ("lower", "upper")]
        assert ends == [exact["range_lower"], exact["range_upper"]]
        members = [place for _, place, *_ in facts["found_drawn"][number][0]]
        lower, upper = (
            [facts["events"][side][place] + origin for place in members] for side in ("lower", "upper")
        )
        assert min(lower) <= ends[0] <= ends[1] <= max(upper)
    confidence = values(facts["columns"], "confidence")
    for steps in facts["found_why"]:
        products = [*steps["product"], [confidence[match] for match in steps["match"]]]
        for before, after in pairwise(products):
            assert all(one <= other * (1 + 1e-6) for one, other in zip(after, before, strict=True))
    if shared := facts["shared"]:
        for group in range(len(shared["matches"])):
            chances = [confidence[i] for i, of in enumerate(shared["of_match"]) if of == group]
            assert shared["matches"][group] == len(chances)
            assert shared["expected"][group] == pytest.approx(sum(chances), abs=FOUR_DIGITS)
            assert shared["best"][group] == pytest.approx(max(chances))


@pytest.mark.parametrize("kind", KINDS)
@FEWER
@given(data=st.data())
def test_numbers_of_a_page_are_those_of_match(kind: str, data: st.DataObject) -> None:
    case = data.draw(KINDS[kind])
    table = case.trace.table()
    note(f"{case.text()}\n{table.to_pydict()}")
    rows = uc.match(table, case.text()).to_pylist()
    facts = data_of(uc.report(table, case.text()))
    check_sums(facts, rows)
    if not facts["events"]["spans"]:
        check_comparison(facts, table, case.text())
    if rows:
        check_matches(facts, rows)
    origin = int(facts["clock"]["origin"])
    # Events of different keys may have one id.
    there = {(row["id"], row["lower"], row["upper"]) for row in table.to_pylist()}
    events = facts["events"]
    for id, lower, upper in zip(events["id"], events["lower"], events["upper"], strict=True):
        assert (id, lower + origin, upper + origin) in there


KEYED = "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 9"
FORBIDDING = "PATTERN SEQ(A a, !N n, B b) WHERE [host] WITHIN 14 HAVING CONFIDENCE >= 0.2"


def stamped_trace(seed: int) -> pa.Table:
    """Return 90 events of three hosts, some with stamps, of which a few are outside their intervals."""
    draw = np.random.default_rng(seed)
    lower = draw.integers(0, 300, 90)
    upper = lower + draw.integers(0, 8, 90)
    stamp = draw.integers(lower - 2, upper + 3)
    return pa.table(
        {
            "type": draw.choice(["A", "B", "N"], 90, p=[0.4, 0.4, 0.2]),
            "id": np.arange(90),
            "lower": lower,
            "upper": upper,
            "stamp": pa.array(stamp, mask=draw.random(90) < 0.2),
            "host": pa.array(draw.choice(["h1", "h2", "h3"], 90), mask=draw.random(90) < 0.1),
        }
    )


@settings(max_examples=6)
@given(seed=st.integers(0, 10**6), query=st.sampled_from([KEYED, FORBIDDING]))
def test_counts_of_stamps_and_cells_of_keys_and_times_are_those_of_match(seed: int, query: str) -> None:
    table = stamped_trace(seed)
    rows = uc.match(table, query).to_pylist()
    facts = data_of(uc.report(table, query, stamp="stamp"))
    assert facts["raw"]["missed"] + facts["raw"]["invented"] > 0
    assert [group["name"] for group in facts["groups"] if group["cells"]] == ["host"]
    check_sums(facts, rows)
    check_comparison(facts, table, query)
