"""The possible-worlds oracle: what a right answer is, by enumeration with exact fractions.

It shares no code with the engine or the query language. ``model`` holds the values, ``patterns`` what does
not depend on time, ``worlds`` the enumeration, ``formula`` an independent second form, ``outputs`` the
output controls.

How it reads what the definition leaves to the reader
-----------------------------------------------------
- Under skip till next, the predicates that decide whether an event could have been taken by a component
  are those that mention it and otherwise only earlier components. A condition on ``c[c.LEN]`` or over
  ``c[]`` is decided when ``c`` is complete, so it keeps no event from being taken.
- A predicate that mentions several Kleene variables with ``[i]`` holds for every combination of elements.
- A predicate is asked of the OR branches that have all its variables.
- OR branches that differ in nothing but negations are readings of one signature: it is a match in the worlds
  in which any of them is.
- A negation next to a set or a Kleene component: the gap ends at its first and starts at its last event.
- A Kleene component directly in AND takes a set; in a SEQ within AND it takes a sequence.
- ``[attr]`` on a single event holds iff the attribute is not null.
- Ties of confidence are broken by the ids in pattern order, a null first, a list element by element.
- The inner end of a leading or trailing gap is where the match begins or ends, ties that sequences break
  included.
- Ordered clocks tie all events of a trace, so ``answer_literally`` alone takes them.
- Buckets of expected counts start at the multiples of their length.
"""

from tests.oracle.formula import formula_answer
from uncertain_cep.testing.model import (
    Clock,
    Event,
    Match,
    Predicate,
    Query,
    conj,
    disj,
    no,
    one,
    plus,
    seq,
    where,
)
from uncertain_cep.testing.worlds import answer, answer_literally

__all__ = [
    "Clock",
    "Event",
    "Match",
    "Predicate",
    "Query",
    "answer",
    "answer_literally",
    "conj",
    "disj",
    "formula_answer",
    "no",
    "one",
    "plus",
    "seq",
    "where",
]
