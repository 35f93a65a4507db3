"""Every number on a page is the one that ``uc.match`` says, or a sum of these."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.nested import nested_cases
from tests.cases.options import option_cases
from tests.cases.sampling import FEWER
from tests.reporting.pages import data_of, values
from uncertain_cep.config.tolerances import CERTAIN
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
    if rows:
        check_matches(facts, rows)
    origin, ids = int(facts["clock"]["origin"]), table.column("id").to_pylist()
    for place, id in enumerate(facts["events"]["id"]):
        row = ids.index(id)
        assert facts["events"]["lower"][place] + origin == table.column("lower")[row].as_py()
        assert facts["events"]["upper"][place] + origin == table.column("upper")[row].as_py()
