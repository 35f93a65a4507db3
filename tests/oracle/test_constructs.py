"""Facts worked out by hand, a few for each construct of SEMANTICS 3."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from tests.oracle import Event, Predicate, Query, answer, conj, disj, no, one, plus, seq, where
from tests.oracle.examples import event, ids, rows
from uncertain_cep.testing.model import Strategy

HALF = Fraction(1, 2)
THIRD = Fraction(1, 3)


def test_a_tie_is_not_before() -> None:
    query = Query(seq(one("A", "a"), one("B", "b")), window=10)
    assert answer(query, [event("A", 1, 5), event("B", 2, 5)]) == []
    assert rows(answer(query, [event("A", 1, 5), event("B", 2, 5, 6)])) == {(1, 2): (5, 6, HALF)}


def test_the_window_covers_w_ticks() -> None:
    events = [event("A", 1, 1), event("B", 2, 4)]
    query = Query(seq(one("A", "a"), one("B", "b")), window=4)
    assert ids(answer(query, events)) == {(1, 2)}
    assert answer(replace(query, window=3), events) == []


def test_an_event_is_used_once_and_can_fill_any_component() -> None:
    query = Query(seq(one("", "a"), one("A|B", "b")), window=10)
    events = [event("A", 1, 1), event("B", 2, 2), event("C", 3, 3)]
    assert ids(answer(query, events)) == {(1, 2)}


def test_zeros_of_a_pmf_narrow_the_range() -> None:
    query = Query(seq(one("A", "a"), one("B", "b")), window=10)
    pmf = (Fraction(0), HALF, Fraction(0), HALF, Fraction(0))
    events = [event("A", 1, 1, 5, pmf), event("B", 2, 3, 5, (Fraction(0), Fraction(1), Fraction(0)))]
    assert rows(answer(query, events)) == {(1, 2): (2, 4, HALF)}


def test_a_signature_of_confidence_zero_is_no_match() -> None:
    query = Query(seq(one("A", "a"), one("B", "b")), window=10)
    events = [event("A", 1, 1, 2, (Fraction(0), Fraction(1))), event("B", 2, 2)]
    assert answer(query, events) == []


def test_predicates_across_components_and_unknown() -> None:
    events = [event("A", 1, 1, x=5), event("B", 2, 2, x=3), event("B", 3, 3, x=None)]
    above = where("a b", lambda a, b: None if b["x"] is None else a["x"] > b["x"])
    query = Query(seq(one("A", "a"), one("B", "b")), window=10, where=(above,))
    assert ids(answer(query, events)) == {(1, 2)}


def test_equivalence_never_holds_of_null() -> None:
    events = [
        event("A", 1, 1, k=None),
        event("B", 2, 2, k=None),
        event("A", 3, 3, k=1),
        event("B", 4, 4, k=1),
    ]
    query = Query(seq(one("A", "a"), one("B", "b")), window=10, agree=("k",))
    matches = answer(query, events)
    assert ids(matches) == {(3, 4)}
    assert matches[0].partition == (1,)


def test_ids_need_to_be_unique_only_within_a_partition() -> None:
    events = [event(type, id, id, k=key) for key in (1, 2) for id, type in ((1, "A"), (2, "B"))]
    query = Query(seq(one("A", "a"), one("B", "b")), window=10, agree=("k",))
    assert [(match.partition, match.ids) for match in answer(query, events)] == [
        ((1,), (1, 2)),
        ((2,), (1, 2)),
    ]
    with pytest.raises(ValueError, match="used twice"):
        answer(replace(query, agree=()), events)


class TestSkipTillNext:
    """Forbidden is what could have been taken in the gap."""

    query = Query(seq(one("A", "a"), one("B", "b")), window=10, strategy="skip_till_next_match")

    def test_a_tie_with_either_end_does_not_forbid(self) -> None:
        events = [event("A", 1, 1), event("B", 2, 1), event("B", 3, 3), event("B", 4, 3)]
        assert ids(answer(self.query, events)) == {(1, 3), (1, 4)}

    def test_predicates_decide_what_could_be_taken(self) -> None:
        events = [event("A", 1, 1, x=1), event("B", 2, 2, x=2), event("B", 3, 3, x=1)]
        same = where("a b", lambda a, b: a["x"] == b["x"])
        assert ids(answer(self.query, events)) == {(1, 2)}
        assert ids(answer(replace(self.query, where=(same,)), events)) == {(1, 3)}

    def test_a_predicate_on_a_later_component_does_not_save_an_event(self) -> None:
        """b2 could be taken at its turn although no c fits it: the run has moved on."""
        events = [
            event("A", 1, 1),
            event("B", 2, 2, x=2),
            event("B", 3, 3, x=1),
            event("C", 4, 4, x=1),
        ]
        same = where("b c", lambda b, c: b["x"] == c["x"])
        pattern = seq(one("A", "a"), one("B", "b"), one("C", "c"))
        assert answer(replace(self.query, pattern=pattern, where=(same,)), events) == []

    def test_one_event_forbidden_in_two_gaps(self) -> None:
        """x2 [2,4] fits b and c; at 2 it is in the first gap, at 3 a tie, at 4 in the second."""
        events = [event("A", 1, 1), event("X", 2, 2, 4), event("B", 3, 3), event("C", 4, 5)]
        pattern = seq(one("A", "a"), one("B|X", "b"), one("C|X", "c"))
        answer_rows = rows(answer(replace(self.query, pattern=pattern), events))
        assert answer_rows[1, 3, 4] == (1, 5, THIRD)
        assert answer_rows[1, 2, 4] == (1, 5, 2 * THIRD)
        assert answer_rows[1, 3, 2] == (1, 4, THIRD)


def test_contiguity_of_the_partition_and_of_the_stream() -> None:
    events = [
        event("A", 1, 1, k=1),
        event("X", 2, 2, 3, k=2),
        event("X", 3, 2, 4, k=1),
        event("B", 4, 3, k=1),
    ]
    query = Query(seq(one("A", "a"), one("B", "b")), window=10, agree=("k",))
    assert rows(answer(replace(query, strategy="partition_contiguity"), events)) == {
        (1, 4): (1, 3, 2 * THIRD)
    }
    assert rows(answer(replace(query, strategy="strict_contiguity"), events)) == {
        (1, 4): (1, 3, HALF * 2 * THIRD)
    }
    # Without an equated attribute the stream is one partition.
    no_key = replace(query, agree=())
    assert answer(replace(no_key, strategy="partition_contiguity"), events) == answer(
        replace(no_key, strategy="strict_contiguity"), events
    )


class TestNegation:
    """``!N`` forbids N strictly inside its gap."""

    a_b = (event("A", 1, 5), event("B", 2, 8))

    def confidence(self, query: Query, *further: Event) -> Fraction:
        answer_rows = rows(answer(query, [*self.a_b, *further]))
        return answer_rows[1, 2][2] if answer_rows else Fraction(0)

    def test_middle(self) -> None:
        query = Query(seq(one("A", "a"), no("N", "n"), one("B", "b")), window=10)
        assert self.confidence(query, event("N", 3, 5, 8)) == HALF
        assert self.confidence(query, event("N", 3, 6, 7)) == 0
        assert self.confidence(query, event("N", 3, 8)) == 1

    def test_leading_reaches_back_a_window_from_the_last_event(self) -> None:
        query = Query(seq(no("N", "n"), one("A", "a"), one("B", "b")), window=6)
        # [8 - 6 + 1, 5) = {3, 4}
        assert self.confidence(query, event("N", 3, 2, 5)) == HALF
        assert self.confidence(query, event("N", 3, 2)) == 1
        assert self.confidence(query, event("N", 3, 3)) == 0

    def test_trailing_reaches_forward_a_window_from_the_first_event(self) -> None:
        query = Query(seq(one("A", "a"), one("B", "b"), no("N", "n")), window=6)
        # (8, 5 + 6 - 1] = {9, 10}
        assert self.confidence(query, event("N", 3, 8, 11)) == HALF
        assert self.confidence(query, event("N", 3, 11)) == 1
        assert self.confidence(query, event("N", 3, 10)) == 0

    def test_predicates_over_a_later_positive_variable(self) -> None:
        query = Query(
            seq(one("A", "a"), no("N", "n"), one("B", "b")),
            window=10,
            where=(where("n b", lambda n, b: n["x"] < b["id"]),),
        )
        assert self.confidence(query, event("N", 3, 6, x=1)) == 0
        assert self.confidence(query, event("N", 3, 6, x=2)) == 1

    def test_equivalence_includes_negated_components(self) -> None:
        events = [
            event("A", 1, 1, k=1),
            event("N", 2, 2, k=2),
            event("N", 3, 2, k=None),
            event("B", 4, 3, k=1),
        ]
        query = Query(seq(one("A", "a"), no("N", "n"), one("B", "b")), window=10, agree=("k",))
        assert ids(answer(query, events)) == {(1, 4)}
        assert answer(replace(query, agree=()), events) == []

    def test_two_negations_in_one_gap(self) -> None:
        query = Query(seq(one("A", "a"), no("N", "n"), no("M", "m"), one("B", "b")), window=10)
        assert self.confidence(query, event("N", 3, 7, 8), event("M", 4, 6, 8)) == HALF * THIRD

    def test_the_own_events_never_forbid(self) -> None:
        query = Query(seq(one("", "a"), no("", "n"), one("", "b")), window=10)
        assert self.confidence(query) == 1

    def test_one_event_forbidden_in_the_leading_and_the_middle_gap(self) -> None:
        query = Query(seq(no("N", "m"), one("A", "a"), no("N", "n"), one("B", "b")), window=10)
        # {-1..4} and {6, 7}: of 4..8 the ticks 5 and 8 are left.
        assert self.confidence(query, event("N", 3, 4, 8)) == Fraction(2, 5)


class TestKleene:
    """``C+ c[]`` takes one or more events in increasing time."""

    events = (
        event("A", 1, 1, x=10),
        event("C", 2, 2, x=3),
        event("C", 3, 3, x=5),
        event("C", 4, 4, x=4),
        event("B", 5, 5, x=0),
    )
    query = Query(seq(one("A", "a"), plus("C", "c"), one("B", "b")), window=10)

    def test_skip_till_any_takes_every_non_empty_subsequence(self) -> None:
        chosen = {entry[1] for entry in ids(answer(self.query, self.events))}
        assert chosen == {(2,), (3,), (4,), (2, 3), (2, 4), (3, 4), (2, 3, 4)}

    def test_skip_till_next_takes_prefixes(self) -> None:
        """Take-proceed: the gap to b forbids only events that b could take."""
        query = replace(self.query, strategy="skip_till_next_match")
        assert {entry[1] for entry in ids(answer(query, self.events))} == {(2,), (2, 3), (2, 3, 4)}

    def test_contiguity_takes_all(self) -> None:
        query = replace(self.query, strategy="strict_contiguity")
        assert {entry[1] for entry in ids(answer(query, self.events))} == {(2, 3, 4)}

    def test_uncertain_order_of_elements(self) -> None:
        events = [event("C", 1, 1, 2), event("C", 2, 1, 2)]
        query = Query(seq(plus("C", "c")), window=10)
        assert rows(answer(query, events)) == {
            ((1,),): (1, 2, Fraction(1)),
            ((2,),): (1, 2, Fraction(1)),
            ((1, 2),): (1, 2, Fraction(1, 4)),
            ((2, 1),): (1, 2, Fraction(1, 4)),
        }

    @pytest.mark.parametrize(
        ("predicate", "expected"),
        [
            (where("c[1]", lambda c: c["x"] == 5), {(3,), (3, 4)}),
            (where("c[c.LEN]", lambda c: c["x"] == 5), {(3,), (2, 3)}),
            (where("c[i]", lambda c: c["x"] >= 4), {(3,), (4,), (3, 4)}),
            (where("c", lambda c: c["x"] >= 4), {(3,), (4,), (3, 4)}),
            (
                where("c[i] c[i-1]", lambda c, p: c["x"] > p["x"]),
                {(2,), (3,), (4,), (2, 3), (2, 4)},
            ),
            (where("c[i-1]", lambda p: p["x"] == 3), {(2,), (3,), (4,), (2, 3), (2, 4)}),
            (
                where("c[i] c[..i-1]", lambda c, p: c["x"] > sum(e["x"] for e in p) / len(p)),
                {(2,), (3,), (4,), (2, 3), (2, 4)},
            ),
            (where("c[..i-1]", lambda p: len(p) >= 2), {(2,), (3,), (4,)}),
            (where("c[]", lambda c: sum(e["x"] for e in c) == 8), {(2, 3)}),
            (where("c[]", lambda c: len(c) >= 3), {(2, 3, 4)}),
            (where("c[]", lambda c: max(e["x"] for e in c) == 4), {(4,), (2, 4)}),
            (where("a c[]", lambda a, c: sum(e["x"] for e in c) > a["x"]), {(2, 3, 4)}),
            (
                where("c[i] c[1]", lambda c, f: c["x"] >= f["x"]),
                {(2,), (3,), (4,), (2, 3), (2, 4), (2, 3, 4)},
            ),
        ],
    )
    def test_index_forms_and_aggregates(self, predicate: Predicate, expected: set[tuple[int, ...]]) -> None:
        query = replace(self.query, where=(predicate,))
        assert {entry[1] for entry in ids(answer(query, self.events))} == expected

    def test_skip_till_next_forbids_what_could_be_the_next_element(self) -> None:
        """After c2 (x=3) the next rising element is c3; c4 (x=4) can only be reached past it."""
        rising = where("c[i] c[i-1]", lambda c, p: c["x"] > p["x"])
        query = replace(self.query, strategy="skip_till_next_match", where=(rising,))
        assert {entry[1] for entry in ids(answer(query, self.events))} == {(2,), (2, 3)}

    def test_skip_till_next_and_the_first_element(self) -> None:
        first = where("c[1]", lambda c: c["x"] >= 4)
        query = replace(self.query, strategy="skip_till_next_match", where=(first,))
        assert {entry[1] for entry in ids(answer(query, self.events))} == {(3,), (3, 4)}

    def test_skip_till_next_and_a_predicate_on_the_whole(self) -> None:
        """A condition on c[] is decided when c is complete: c2 could be taken, so c may not start at c3."""
        total = where("c[]", lambda c: sum(e["x"] for e in c) >= 5)
        query = replace(self.query, strategy="skip_till_next_match", where=(total,))
        assert {entry[1] for entry in ids(answer(query, self.events))} == {(2, 3), (2, 3, 4)}

    def test_the_next_component_sees_the_complete_elements(self) -> None:
        """Only b that is below the last c can be taken, so b5 does not forbid b6."""
        events = (
            event("C", 1, 1, x=3),
            event("B", 5, 5, x=4),
            event("B", 6, 6, x=2),
        )
        below = where("b c[c.LEN]", lambda b, c: b["x"] < c["x"])
        query = Query(
            seq(plus("C", "c"), one("B", "b")),
            window=10,
            where=(below,),
            strategy="skip_till_next_match",
        )
        assert ids(answer(query, events)) == {((1,), 6)}

    def test_two_kleene_components(self) -> None:
        events = [event("C", 1, 1), event("C", 2, 2), event("D", 3, 3), event("D", 4, 4)]
        query = Query(seq(plus("C", "c"), plus("D", "d")), window=10)
        assert len(answer(query, events)) == 9
        below = where("c[i] d[i]", lambda c, d: c["id"] + d["id"] != 5)
        assert ids(answer(replace(query, where=(below,)), events)) == {((1,), (3,)), ((2,), (4,))}

    def test_negation_between_kleene_components_starts_at_the_last_element(self) -> None:
        events = [event("C", 1, 1), event("N", 2, 2), event("C", 3, 3), event("B", 4, 4)]
        query = Query(seq(plus("C", "c"), no("N", "n"), one("B", "b")), window=10)
        assert ids(answer(query, events)) == {((3,), 4), ((1, 3), 4)}


class TestSets:
    """``AND`` takes distinct events in any order."""

    def test_any_order_and_ties(self) -> None:
        query = Query(conj(one("A", "a"), one("B", "b")), window=3)
        assert rows(answer(query, [event("A", 1, 5), event("B", 2, 3, 8)])) == {
            (1, 2): (3, 7, Fraction(5, 6))
        }

    def test_sequence_of_sets(self) -> None:
        query = Query(seq(conj(one("A", "a"), one("B", "b")), one("C", "c")), window=10)
        events = [event("A", 1, 2), event("B", 2, 1, 3), event("C", 3, 3)]
        assert rows(answer(query, events)) == {(1, 2, 3): (1, 3, 2 * THIRD)}

    def test_sequence_within_a_set(self) -> None:
        query = Query(conj(seq(one("A", "a"), one("B", "b")), one("C", "c")), window=10)
        events = [event("A", 1, 2, 3), event("B", 2, 3), event("C", 3, 1)]
        assert rows(answer(query, events)) == {(1, 2, 3): (1, 3, HALF)}

    def test_kleene_in_a_set_is_a_set(self) -> None:
        query = Query(conj(plus("C", "c"), one("A", "a")), window=10)
        events = [event("C", 9, 1), event("C", 2, 1), event("A", 5, 1)]
        assert rows(answer(query, events)) == {
            ((9,), 5): (1, 1, Fraction(1)),
            ((2,), 5): (1, 1, Fraction(1)),
            ((2, 9), 5): (1, 1, Fraction(1)),
        }
        total = where("c[]", lambda c: sum(e["id"] for e in c) == 11)
        assert ids(answer(replace(query, where=(total,)), events)) == {((2, 9), 5)}

    def test_negation_between_sets(self) -> None:
        query = Query(
            seq(conj(one("A", "a"), one("B", "b")), no("N", "n"), conj(one("C", "c"), one("D", "d"))),
            window=10,
        )
        events = [
            event("A", 1, 1),
            event("B", 2, 3),
            event("C", 3, 6),
            event("D", 4, 8),
            event("N", 5, 2, 7),
        ]
        # Only 4 and 5 lie after all of the first set and before all of the second.
        assert rows(answer(query, events)) == {(1, 2, 3, 4): (1, 8, Fraction(4, 6))}

    @pytest.mark.parametrize(
        "strategy", ["skip_till_next_match", "partition_contiguity", "strict_contiguity"]
    )
    def test_other_strategies_are_refused(self, strategy: Strategy) -> None:
        query = Query(conj(one("A", "a"), one("B", "b")), window=3, strategy=strategy)
        with pytest.raises(ValueError, match="skip_till_any_match only"):
            answer(query, [])

    def test_undefined_uses_are_refused(self) -> None:
        with pytest.raises(ValueError, match="no order"):
            answer(Query(conj(plus("C", "c")), 3, where=(where("c[1]", lambda c: True),)), [])
        with pytest.raises(ValueError, match="tied to it by a condition on times"):
            answer(Query(conj(one("A", "a"), no("N", "n")), 3), [])
        with pytest.raises(ValueError, match="end of a SEQ in AND"):
            answer(Query(conj(one("A", "a"), seq(no("N", "n"), one("B", "b"))), 3), [])
        with pytest.raises(ValueError, match="no positive"):
            answer(Query(seq(no("N", "n")), 3), [])


class TestDisjunction:
    """``OR`` is the union of its branches."""

    events = (event("A", 1, 1, x=1), event("B", 2, 2, x=2), event("C", 3, 3, x=3))

    def test_variables_of_other_branches_are_null(self) -> None:
        query = Query(disj(seq(one("A", "a"), one("C", "c")), one("B", "b")), window=10)
        assert ids(answer(query, self.events)) == {(1, 3, None), (None, None, 2)}

    def test_nested_in_a_sequence(self) -> None:
        query = Query(seq(disj(one("A", "a"), one("B", "b")), one("C", "c")), window=10)
        assert ids(answer(query, self.events)) == {(1, None, 3), (None, 2, 3)}

    def test_a_predicate_speaks_of_the_branches_that_have_its_variables(self) -> None:
        query = Query(
            seq(disj(one("A", "a"), one("B", "b")), one("C", "c")),
            window=10,
            where=(where("b", lambda b: b["x"] > 5), where("c", lambda c: c["x"] == 3)),
        )
        assert ids(answer(query, self.events)) == {(1, None, 3)}

    def test_a_branch_is_a_pattern_of_its_own_under_skip_till_next(self) -> None:
        query = Query(
            seq(one("A", "a"), disj(one("B", "b"), one("C", "c"))),
            window=10,
            strategy="skip_till_next_match",
        )
        assert ids(answer(query, self.events)) == {(1, 2, None), (1, None, 3)}

    def test_sequence_in_sequence_is_flat(self) -> None:
        nested = Query(seq(one("A", "a"), seq(one("B", "b"), one("C", "c"))), window=10)
        flat = Query(seq(one("A", "a"), one("B", "b"), one("C", "c")), window=10)
        assert answer(nested, self.events) == answer(flat, self.events)
