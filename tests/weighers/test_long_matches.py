"""The price of one match of thousands of events, and the memory of its shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import uncertain_cep as uc
from confidence.budget import looking_at
from tests.cases.budgets import budget
from tests.cases.sampling import FEWER
from tests.weighers.forcing import forced
from uncertain_cep.weighers import shapes
from uncertain_cep.weighers.bounded_chains import _by_orders
from uncertain_cep.weighers.elimination import _cliques, _rules_together
from uncertain_cep.weighers.match_model import MatchModel
from uncertain_cep.weighers.pattern import Columns, MatchPattern
from uncertain_cep.weighers.shapes import Shape, Shapes
from uncertain_cep.weighers.templates import TimeTemplates
from uncertain_cep.weighers.weigher import CANNOT, Declined


def looks(work: Callable[[], object]) -> int:
    """Return how often the caller's limits are looked at."""
    count = 0

    def look(_: int) -> None:
        nonlocal count
        count += 1

    with looking_at(look):
        work()
    return count


def slow_cliques(scopes: set[frozenset[int]], sizes: NDArray[np.float64]) -> list[frozenset[int]]:
    """Eliminate the cheapest time of all, priced anew, until no scope is left."""
    left = {scope for scope in scopes if len(scope) > 1}
    cliques = [frozenset((time,)) for time in range(len(sizes))]
    while left:
        tied = {
            time: frozenset[int]().union(*(scope for scope in left if time in scope))
            for time in sorted(frozenset[int]().union(*left))
        }
        time = min(tied, key=lambda each: sum(np.log(sizes[other]) for other in sorted(tied[each])))
        cliques.append(tied[time])
        left = {scope for scope in left if time not in scope}
        if len(tied[time]) > 2:
            left.add(tied[time] - {time})
    return cliques


@given(
    st.sets(st.frozensets(st.integers(0, 8), min_size=1, max_size=4), max_size=12),
    st.lists(st.sampled_from([1.0, 2.0, 3.0, 7.0, 50.0]), min_size=9, max_size=9),
)
def test_the_cheapest_time_is_always_eliminated_next(scopes: set[frozenset[int]], sizes: list[float]) -> None:
    assert _cliques(scopes, np.array(sizes)) == slow_cliques(scopes, np.array(sizes))


@pytest.mark.parametrize("ties", ["neighbours", "the first"])
def test_thousands_of_times_are_eliminated_in_as_many_steps(ties: str) -> None:
    """All times were priced anew for each of them: a call with timeout=2 went on for minutes."""
    count = 3_000
    before = range(count - 1) if ties == "neighbours" else [0] * (count - 1)
    scopes = {frozenset(pair) for pair in zip(before, range(1, count), strict=True)} | {
        frozenset((0, count - 1))
    }
    found: list[frozenset[int]] = []
    assert looks(lambda: found.extend(_cliques(scopes, np.full(count, 6.0)))) < 5 * count
    assert len(found) == 2 * count - 1
    assert max(map(len, found)) == (3 if ties == "neighbours" else 2)


def test_a_hundred_rules_are_told_apart() -> None:
    """Rules beyond 62 were taken for others, so that an event seemed to tie hundreds of times."""

    class Forbidden:
        lower = np.zeros(4)
        rule = np.array([0, 62, 0, 62, 99, 37, 99])
        rule_start = np.array([0, 1, 2, 4, 7])
        sides = np.zeros((100, 2, 2))

    kinds, kind = _rules_together(Forbidden())  # type: ignore[arg-type]
    assert [sorted(kinds[n]) for n in kind] == [[0], [62], [0, 62], [37, 99, 99]]


class OrderOfAll:
    """Takes no match, and compares the orders of sequences with the longest paths of their literals."""

    name = "order of all"
    why = "only looks"
    priced_above = -np.inf
    takes_all = False
    seen = 0

    @classmethod
    def of(cls, _pattern: MatchPattern) -> OrderOfAll:
        return cls()

    def price(self, model: MatchModel) -> NDArray[np.float64]:
        for part in model.explicit:
            if not part.shape.is_chain:
                continue
            fields = {name: getattr(part.shape, name) for name in Shape.__slots__}
            slow = part._replace(shape=Shape(**{**fields, "is_chain": False}))
            for _, chains in _by_orders(slow):
                assert [one.order.tolist() for one in chains] == [list(range(part.shape.times))]
                OrderOfAll.seen += 1
        return np.full(model.count, CANNOT)

    def weigh(self, model: MatchModel, out: Columns) -> Declined:
        raise NotImplementedError


@FEWER
@given(
    st.integers(-3, 3),
    st.sampled_from(["SEQ(A a, A b, A c)", "SEQ(A a, A+ c[])", "SEQ(A+ a[], A c)"]),
    st.sampled_from([">=", "<=", "="]),
)
def test_the_literals_of_a_sequence_are_in_its_order(bound: int, pattern: str, sign: str) -> None:
    last = "c[1]" if "c[]" in pattern else "c"
    first = "a[1]" if "a[]" in pattern else "a"
    events = pa.table({"type": ["A"] * 4, "id": range(4), "lower": [0, 2, 3, 5], "upper": [4, 6, 7, 9]})
    query = f"PATTERN {pattern} WHERE TIME({last}) - TIME({first}) {sign} {bound} WITHIN 9"
    before = OrderOfAll.seen
    with forced(OrderOfAll.of):
        found = uc.match(events, query)
    assert OrderOfAll.seen > before or not found.num_rows


class LooksWithin:
    """Takes no match, and counts how often limits are looked at while a batch is written out."""

    name = "looks within"
    why = "only looks"
    priced_above = -np.inf
    takes_all = False

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def price(self, model: MatchModel) -> NDArray[np.float64]:
        self.seen.append((model.count, looks(lambda: model.explicit)))
        return np.full(model.count, CANNOT)

    def weigh(self, model: MatchModel, out: Columns) -> Declined:
        raise NotImplementedError


def test_limits_are_looked_at_while_one_match_is_written_out() -> None:
    """Between matches alone, a command beside 10,000 events of 2,000 ticks ended 4.5 s after its limit."""
    count, beside, steps = 12, 60, 10
    lower = np.r_[10 * np.arange(count), np.full(beside, -300)]
    events = pa.table(
        {
            "type": ["A"] * count + ["B"] * beside,
            "id": range(count + beside),
            "lower": lower,
            "upper": np.where(lower < 0, 400, lower),
        }
    )
    names = [f"v{number}" for number in range(count)]
    pattern = f"SEQ({', '.join(f'A {name}' for name in names)})"
    weigher = LooksWithin()
    with budget(steps), forced(lambda _pattern: weigher):
        uc.match(events, f"PATTERN {pattern} WHERE strict_contiguity({', '.join(names)}) WITHIN 500")
    ((matches, times),) = weigher.seen
    assert matches == 1
    # The rules of one event are written down, and that takes more steps than a call has.
    assert times > beside


@pytest.mark.parametrize("bound", ["4", "b[i].x", "b[i-1].x + b[i].x"])
def test_a_condition_on_neighbours_is_evaluated_for_all_of_them_at_once(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    evaluate = TimeTemplates._evaluated

    def counted(self: Any, condition: Any, row_of: Any) -> Any:
        calls.append(len(row_of))
        return evaluate(self, condition, row_of)

    monkeypatch.setattr(TimeTemplates, "_evaluated", counted)
    count = 30
    events = pa.table(
        {
            "type": ["A"] * count,
            "id": range(count),
            "lower": range(count),
            "upper": range(3, count + 3),
            "x": [4] * count,
        }
    )
    query = (
        "PATTERN SEQ(A a, A+ b[], A c) WHERE skip_till_next_match(a, b[], c) AND "
        f"TIME(b[i]) - TIME(b[i-1]) <= {bound} AND b[b.LEN].id > 20 WITHIN 99 LIMIT 3"
    )
    assert uc.match(events, query, timeout=60).num_rows == 3
    # Once for the literals and once for the rules of matches of one length, whatever that is.
    assert 0 < len(calls) < count


def test_shapes_are_kept_up_to_a_number_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Kleene component has as many shapes as lengths, and each is as long as its matches."""
    most: list[int] = []
    of = Shapes.of

    def counted(self: Any, counts: tuple[int, ...]) -> Shape:
        found = of(self, counts)
        most.append(sum(map(sum, self._known)))
        return found

    monkeypatch.setattr(shapes, "_MOST_KNOWN", 20)
    monkeypatch.setattr(Shapes, "of", counted)
    count = 9
    events = pa.table(
        {"type": ["A"] * count, "id": range(count), "lower": range(count), "upper": range(3, count + 3)}
    )
    query = "PATTERN SEQ(A+ a[]) WHERE TIME(a[i]) - TIME(a[i-1]) <= 2 WITHIN 99"
    found = uc.match(events, query)
    assert found.num_rows > 100
    assert 9 <= max(most) <= 20
