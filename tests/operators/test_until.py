"""UNTIL: nothing of a kind between the first and the last event of a part, against possible worlds."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.clocks import by_clocks, in_order, in_sequence
from tests.cases.comparison import assert_answer, assert_same
from tests.cases.existence import doubtful
from tests.cases.language import STRATEGIES, Asked, conditions
from tests.cases.nested import NestedCase
from tests.cases.options import timed_option_cases
from tests.cases.sampling import FEWER, sampled_from
from tests.cases.ways import matches_by
from uncertain_cep.query.walks import components_of
from uncertain_cep.testing.model import And, Component, Query, Seq, no, where
from uncertain_cep.testing.patterns import components


class UntilCase(NestedCase):
    """A case whose pattern is a SEQ with a SEQ in it, behind which UNTIL stands."""

    __slots__ = ()

    @property
    def spoiler(self) -> Component:
        return no("A", "u")

    @property
    def part(self) -> Seq:
        """The part that UNTIL stands behind."""
        assert isinstance(self.pattern, Seq)
        (part,) = [item for item in self.pattern.items if isinstance(item, Seq)]
        return part

    def text(self, tail: str = "") -> str:
        """Return the query in the query language."""
        text = super().text(tail)
        begin = text.index("SEQ(", text.index("SEQ(") + 4)
        depth, end = 0, begin
        while not end or depth or text[end - 1] != ")":
            depth += (text[end] == "(") - (text[end] == ")")
            end += 1
        # A single list needs no SEQ around it.
        inner = text[begin + 4 : end - 1] if len(self.part.items) == 1 else text[begin:end]
        return f"{text[:begin]}{inner} UNTIL A u{text[end:]}"

    def query(self) -> Query:
        """Return the query as the oracle takes it."""
        first, *_, last = (self.part.items * 2)[: 2 * len(self.part.items)]
        assert isinstance(first, Component)
        assert isinstance(last, Component)
        begin = f"{first.variable}[1]" if first.kleene else first.variable
        end = f"{last.variable}[{last.variable}.LEN]" if last.kleene else last.variable
        bounds = (
            Asked("", where(f"u {begin}", lambda u, a: a[0].is_before(a[1], *u))),
            Asked("", where(f"u {end}", lambda u, a: u[0].is_before(u[1], *a))),
        )
        query = super().query()
        return replace(
            query,
            pattern=And((query.pattern, self.spoiler)),
            times=(*query.times, *(bound.predicate for bound in bounds)),
        )


@st.composite
def until_cases(draw: st.DrawFn) -> UntilCase:
    """Draw a case with options and repetition, with UNTIL behind some of its components in a row."""
    case: NestedCase = draw(timed_option_cases(most=4, fewest=2))
    assert isinstance(case.pattern, Seq)
    items = components(case.pattern)
    always = [n for n, item in enumerate(items) if item.least and not item.negated]
    cuts = [(a, b) for a in always for b in always if a < b or (a == b and items[a].kleene)]
    assume(cuts)
    first, last = draw(sampled_from(cuts))
    pattern = Seq((*items[:first], Seq(tuple(items[first : last + 1])), *items[last + 1 :]))
    spoken = (no("A", "u"), *(item for item in items if not item.negated))
    drawn_conditions = draw(st.lists(conditions(spoken), max_size=1))
    names = {item.variable for item in items}
    kept = [
        tuple(condition for condition in group if condition.predicate.variables() <= names)
        for group in (case.asked, case.times)
    ]
    drawn = replace(
        case,
        pattern=pattern,
        asked=(*kept[0], *drawn_conditions),
        times=kept[1],
        strategy=draw(st.sampled_from(STRATEGIES)),
    )
    return UntilCase(**{name: getattr(drawn, name) for name in drawn.__dataclass_fields__})


@FEWER
@given(until_cases())
def test_engine_is_the_oracle(case: UntilCase) -> None:
    note(case.text())
    case.check()


@FEWER
@given(by_clocks(until_cases()) | doubtful(until_cases()))
def test_with_clocks_and_events_that_may_not_have_happened(case: UntilCase) -> None:
    note(case.text())
    assert_answer(case.rows(uc.match(case.trace.table(), case.text())), case.answer())


@FEWER
@given(in_sequence(until_cases()) | in_order(until_cases()))
def test_sequences_break_ties_at_its_ends(case: UntilCase) -> None:
    note(case.text())
    assert_answer(case.rows(uc.match(case.trace.table(), case.text())), case.answer())


@given(until_cases(), st.sampled_from(["sliced", "threads"]))
def test_every_way_gives_the_same(case: UntilCase, way: str) -> None:
    note(case.text())
    whole = case.rows(uc.match(case.trace.table(), case.text()))
    assert_same(case.rows(matches_by(way, case)), whole)


@st.composite
def open_ends(draw: st.DrawFn) -> tuple[NestedCase, list[str], list[bool]]:
    """Draw a case, and the components of an item of three or two, some of which may be left out."""
    case: NestedCase = draw(timed_option_cases(most=3, fewest=1))
    types = draw(st.lists(st.sampled_from(["A", "B", "C"]), min_size=2, max_size=3))
    return case, types, draw(st.lists(st.booleans(), min_size=len(types), max_size=len(types)))


@FEWER
@given(open_ends(), st.sampled_from(["any", "next"]), st.booleans())
def test_ends_that_may_be_left_out(
    drawn: tuple[NestedCase, list[str], list[bool]], strategy: str, has_condition: bool
) -> None:
    """The answer is the union over the readings, each with UNTIL behind what is there."""
    case, types, may_lack = drawn
    table, names = case.trace.table(), "abc"[: len(types)]
    # Events of two partitions may have one id.
    table = table.set_column(
        table.column_names.index("id"), "id", pa.array(range(table.num_rows), pa.int64())
    )

    def rows(present: list[int], *, is_whole: bool) -> dict[tuple[Any, ...], tuple[float, int, int]]:
        items = [f"{types[k]}{'?' * (is_whole and may_lack[k])} {names[k]}" for k in present]
        until = " UNTIL C u" if is_whole or len(present) > 1 else ""
        conditions = [f"skip_till_next_match({', '.join(names[k] for k in present)})"] * (strategy == "next")
        conditions += ["u.id <> 1"] * (has_condition and bool(until))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        matches = uc.match(table, f"PATTERN SEQ(SEQ({', '.join(items)}){until}){where} WITHIN 7").to_pylist()
        return {
            tuple(row.get(name) for name in names): (
                row["confidence"],
                row["range_lower"],
                row["range_upper"],
            )
            for row in matches
        }

    expected: dict[tuple[Any, ...], tuple[float, int, int]] = {}
    for choice in product(*((True, False) if lacks else (True,) for lacks in may_lack)):
        present = [k for k, is_there in enumerate(choice) if is_there]
        if present:
            expected |= rows(present, is_whole=False)
    answer = rows(list(range(len(types))), is_whole=True)
    assert answer.keys() == expected.keys()
    for key, row in answer.items():
        assert row == pytest.approx(expected[key], rel=1e-9)


def events(*rows: tuple[str, str, int, int]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(("type", "id", "lower", "upper"), map(list, columns), strict=True)))


RUN = events(("A", "a", 0, 0), ("C", "c", 2, 2), ("C", "x", 6, 6), ("U", "u", 1, 8), ("D", "d", 9, 9))
TIE = events(("C", "c", 2, 2), ("C", "x", 4, 4), ("C", "y", 6, 6), ("U", "u", 4, 4))
WIDE = events(("A", "a", 0, 3), ("B", "b", 4, 4), ("D", "d", 9, 9), ("U", "u", 1, 10))


@pytest.mark.parametrize(
    ("table", "query", "expected"),
    [
        (
            RUN,
            "SEQ(A a, C+ c[] UNTIL U u, D d) WITHIN 20",
            {("a", ("c", "x"), "d"): 5 / 8, ("a", ("c",), "d"): 1, ("a", ("x",), "d"): 1},
        ),
        (TIE, "SEQ(C{3} c[]) UNTIL U u WITHIN 20", {}),
        (TIE, "SEQ(C c, !U u, C d, !U v, C e) WITHIN 20", {("c", "x", "y"): 1}),
        (TIE, "SEQ(C{3} c[] UNTIL U u) WHERE u.id = 'v' WITHIN 20", {(("c", "x", "y"),): 1}),
        (WIDE, "SEQ(A a, B b, D d) UNTIL U u WITHIN 20", {("a", "b", "d"): 7 / 20}),
        (WIDE, "SEQ(SEQ(A a, B b) UNTIL U u, N? n, D d) WITHIN 20", {("a", "b", None, "d"): 17 / 20}),
        (
            TIE,
            "SEQ(C* c[] UNTIL U u, C d) WHERE d.id = 'y' WITHIN 20",
            {
                ((), "y"): 1,
                (("c",), "y"): 1,
                (("x",), "y"): 1,
                (("c", "x"), "y"): 1,
            },
        ),
        (
            TIE,
            "SEQ(SEQ(C c, C d)? UNTIL U u, C e) WHERE c.id = 'c' AND e.id = 'y' WITHIN 20",
            {
                ("c", "x", "y"): 1,
                (None, None, "y"): 1,
            },
        ),
        (TIE, "SEQ(C c, C? d, C e) UNTIL U u WITHIN 3", {("c", None, "x"): 1, ("x", None, "y"): 1}),
    ],
)
@pytest.mark.filterwarnings("ignore::uncertain_cep.UncertainCepWarning")
def test_worked_facts(table: pa.Table, query: str, expected: dict[Any, float]) -> None:
    answer = {}
    for row in uc.match(table, f"PATTERN {query}").to_pylist():
        *ids, _, _, confidence = [
            tuple(value) if isinstance(value, list) else value for value in row.values()
        ]
        answer[tuple(ids)] = confidence
    assert answer == pytest.approx(expected)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SEQ(A a UNTIL U u, D d)", "a is one event"),
        ("SEQ(AND(A a, B b), C c) UNTIL U u", r"AND\(...\) has no order"),
        ("AND(A a, SEQ(B b, D d) UNTIL U u)", r"UNTIL stands behind a SEQ\(...\)"),
        (
            "SEQ(A a, B b, C c) UNTIL U u WHERE skip_till_next_match(a, b) AND strict_contiguity(b, c)",
            "one strategy of all gaps",
        ),
    ],
)
def test_what_is_refused(query: str, message: str) -> None:
    with pytest.raises((uc.QueryError, uc.QuerySyntaxError), match=message):
        uc.parse(f"PATTERN {query} WITHIN 5")


def test_until_is_no_reserved_word() -> None:
    query = uc.parse("PATTERN SEQ(until until, A a) WITHIN 5")
    assert [part.variable for part in components_of(query.pattern)] == ["until", "a"]
