"""The price and the answer of a match are its own, whatever matches are weighed beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, note
from numpy.typing import NDArray

import uncertain_cep as uc
from tests.cases.language import PatternCase
from tests.cases.sampling import FEWER
from tests.weighers.forcing import forced
from tests.weighers.test_weighers import BUILDS, any_cases
from uncertain_cep.weighers.bounded_chains import BoundedChains
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns, MatchPattern
from uncertain_cep.weighers.sampled_times import Sampling
from uncertain_cep.weighers.weigher import Declined, Weigher

ALL: Final[dict[str, Any]] = BUILDS | {"sampling": lambda _: Sampling(0.2, 7)}


class MatchByMatch:
    """A weigher that compares what it says of several matches with what it says of each alone."""

    def __init__(self, weigher: Weigher) -> None:
        self._weigher = weigher
        self.name, self.why = weigher.name, weigher.why
        self.priced_above, self.takes_all = weigher.priced_above, weigher.takes_all
        self.most = 0

    def price(self, model: MatchModel) -> NDArray[np.float64]:
        prices = self._weigher.price(model)
        self.most = max(self.most, model.count)
        for n in range(model.count):
            assert self._weigher.price(alone(model, n)) == pytest.approx(prices[n : n + 1], rel=1e-12)
        return prices

    def weigh(self, model: MatchModel, out: Columns) -> Declined:
        declined = self._weigher.weigh(model, out)
        for n in range(model.count):
            answer = Columns.empty(1)
            again = self._weigher.weigh(alone(model, n), answer)
            assert list(again) == [0] * (n in declined)
            if n not in declined:
                for batch, one in zip(out, answer, strict=True):
                    assert batch[n] == pytest.approx(one[0], rel=1e-12, abs=0.0)
        return declined


def alone(model: MatchModel, n: int) -> MatchModel:
    """Return the model of one match, which is written out anew."""
    return replace(model.some(np.array([n])))


def looked_at(name: str, seen: list[MatchByMatch]) -> Any:
    """Return a builder of weighers that are compared, and kept in a list."""

    def build(pattern: MatchPattern) -> MatchByMatch | None:
        weigher = ALL[name](pattern)
        if weigher is None:
            return None
        seen.append(MatchByMatch(weigher))
        return seen[-1]

    return build


@pytest.mark.parametrize("name", ALL)
@FEWER
@given(case=any_cases())
def test_a_batch_is_weighed_as_each_match_alone(name: str, case: PatternCase) -> None:
    note(case.text())
    with forced(looked_at(name, [])):
        if name == "sampling":
            uc.match(case.trace.table(), case.text())
        else:
            case.check()


@pytest.mark.parametrize(
    "pattern",
    [
        # a is before b, b before a, or either: as the attribute says.
        "AND(A a, B b) WHERE TIME(b) - TIME(a) BETWEEN a.low AND a.high WITHIN 40",
        # In any order of times the window is beyond all; the bound of two alone binds in the last match.
        "SEQ(A a, B b, C c, D d) WHERE TIME(c) - TIME(a) <= 12 AND TIME(d) - TIME(a) >= a.low WITHIN 4000",
    ],
)
@pytest.mark.parametrize("name", ALL)
def test_neighbours_of_other_orders_change_nothing(name: str, pattern: str) -> None:
    events = pa.table(
        {
            "type": ["A", "B", "C", "D"] * 3,
            "id": range(12),
            "lower": [0, 1, 3, 5, 100, 101, 103, 90, 200, 206, 221, 240],
            "upper": [9, 9, 8, 12, 120, 118, 109, 130, 206, 215, 230, 260],
            "low": [2] * 4 + [-9] * 4 + [-5] * 4,
            "high": [9] * 4 + [-3] * 4 + [5] * 4,
        }
    )
    seen: list[MatchByMatch] = []
    with forced(looked_at(name, seen)):
        uc.match(events, f"PATTERN {pattern}")
    assert not seen or max(weigher.most for weigher in seen) > 1


def test_a_chain_takes_matches_of_any_order() -> None:
    """One match of another order in a batch cost all of them their closed forms."""
    times = {"lower": [0, 10, 90_010, 90_000], "upper": [6_000, 6_010, 96_010, 96_000]}
    events = pa.table(
        {"type": ["A", "B"] * 2, "id": range(4), **times, "low": [3, 3, -99_999, -99_999],
         "high": [99_999, 99_999, -3, -3]}
    )  # fmt: skip
    query = "PATTERN AND(A a, B b) WHERE TIME(b) - TIME(a) BETWEEN a.low AND a.high WITHIN 7000"
    with forced(BoundedChains.of) as taken:
        found = uc.match(events, query).to_pylist()
    assert taken.count == len(found) == 2
    assert found[0]["confidence"] == pytest.approx(found[1]["confidence"], rel=1e-12)
