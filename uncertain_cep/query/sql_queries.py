"""MATCH_RECOGNIZE of SQL, translated to a query of this language.

What ISO prefers among the matches that begin at a row is the one of skip till next match, and the only one of
its start, where conditions are *local*: variables next to each other from the first one on are *fixed*; one
behind a loose gap (``X*?``) may be compared with these and itself. Else ISO goes back and tries another row,
which no query here does, and the error names the condition.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Final, NoReturn

from uncertain_cep.boundary import public
from uncertain_cep.query.expression_text import RESERVED, quote_name
from uncertain_cep.query.match_recognize import (
    ONCE,
    Quantifier,
    Recognition,
    Row,
    Tokens,
    Word,
    read_sql,
    refuse_sql,
)
from uncertain_cep.query.parser import parse
from uncertain_cep.query.sql_expressions import Scope, length_in, written
from uncertain_cep.query.sql_steps import Step, Steps
from uncertain_cep.query.syntax import Query

__all__ = ["sql", "translated"]

_FOREVER: Final = 2**62
"""The longest window, ticks: MATCH_RECOGNIZE has none unless WITHIN says one."""

_NEXT_ROW: Final = "AFTER MATCH SKIP TO NEXT ROW"


@public
def sql(text: str) -> Query:
    """Translate a MATCH_RECOGNIZE of SQL to a query.

    Parameters
    ----------
    text : str
        ``SELECT * FROM events MATCH_RECOGNIZE (...)``, see docs/comparison.md for what is answered. The name
        of the table means nothing; ORDER BY names the time, whatever the events call it.

    Returns
    -------
    Query
        Its ``text`` is the same in the language of this package, as :func:`uncertain_cep.explain` shows it.

    Raises
    ------
    QuerySyntaxError
        If it is no MATCH_RECOGNIZE.
    QueryError
        If it has a construct that is not answered: the message names it, and the nearest that works.

    Examples
    --------
    >>> import uncertain_cep as uc
    >>> query = uc.sql('''SELECT * FROM events MATCH_RECOGNIZE (
    ...     PARTITION BY host ORDER BY ts
    ...     MEASURES A.load AS load
    ...     AFTER MATCH SKIP TO NEXT ROW
    ...     PATTERN (A X*? B) WITHIN INTERVAL '5' SECOND
    ...     DEFINE A AS type = 'Load' AND load > 0.9, B AS type = 'Fail')''')
    >>> print(query.text)
    PATTERN SEQ(Load a, Fail b)
    WHERE skip_till_next_match(a, b)
      AND [host]
      AND a.load > 0.9
    WITHIN 5 second
    RETURN a.load AS load
    """
    return parse(translated(text))


def translated(text: str) -> str:
    """Return a MATCH_RECOGNIZE as text of a query of this language."""
    read = read_sql(text)
    if _skips_to_next_row(read):
        return _Translation(read).text()
    return _longest_runs(read)


def _skips_to_next_row(read: Recognition) -> bool:
    """Return whether each row may begin a match; the longest runs of neighbours are asked otherwise."""
    skip = [word.upper for word in read.skip]
    if skip == ["SKIP", "TO", "NEXT", "ROW"]:
        return True
    if skip and skip != ["SKIP", "PAST", "LAST", "ROW"]:
        refuse_sql(
            read.text,
            read.skip[0].place,
            f"AFTER MATCH {' '.join(skip)} depends on all matches before: write {_NEXT_ROW}, or ask each "
            "world of uc.draw_worlds",
        )
    return False


class _Translation:
    """The query of steps and gaps."""

    def __init__(self, read: Recognition) -> None:
        self._read, self._all = read, Steps(read)
        self._steps, self._gaps = self._all.steps, self._all.gaps
        self._mine = {name: _named(name) for step in self._steps for name in step.names}
        lists = frozenset(name for step in self._steps if step.kind == "list" for name in step.names)
        self._lists = lists
        self._scope = Scope(read.text, read.order, self._mine, lists)
        self._conditions: list[str] = []

    def _refuse_word(self, word: Word, message: str) -> NoReturn:
        refuse_sql(self._read.text, word.place, message)

    def _checked(self, name: str, condition: Tokens) -> None:
        """Refuse a condition that is not local."""
        order = [each for step in self._steps for each in step.names]
        place = next((n for n, step in enumerate(self._steps) if name in step.names), None)
        if place is None:
            place = next(
                n + 1 for n, gap in enumerate(self._gaps) if gap.between and gap.between.name == name
            )
        first_gap = next(
            (n + 1 for n, gap in enumerate(self._gaps) if gap.kind != "neighbours"), len(self._steps)
        )
        for word, following in pairwise(condition):
            other = word.name.upper()
            if (
                following.text != "."
                or other == name
                or (other not in order and other not in self._all.loose)
            ):
                continue
            at = next((n for n, step in enumerate(self._steps) if other in step.names), len(self._steps))
            if at >= place and other in order:
                self._refuse_word(
                    word, f"{other} comes behind {name}: put the condition into the DEFINE of {other}"
                )
            if at >= first_gap:
                self._refuse_word(
                    word,
                    f"{name} is compared with {other}, which stands behind a gap: SQL goes back and "
                    f"tries another {other} then. Compare with {', '.join(order[:first_gap])}, use PARTITION "
                    "BY, or uc.draw_worlds and ask each world",
                )
            if self._steps[at].kind in ("option", "group", "or"):
                self._refuse_word(
                    word, f"{other} may be left out, and {name} cannot be compared with it: split the query"
                )

    def _written(self, name: str | None, words: Tokens, mention: str, before: str | None) -> str:
        return written(self._scope, name, words, mention, before)

    def _of_variable(self, name: str, place: int) -> None:
        """Add the conditions of the DEFINE of a variable in a step."""
        step, called = self._steps[place], self._mine[name]
        for condition in self._all.type_of(name)[1]:
            self._checked(name, condition)
            in_parentheses = len(condition) > 3 and any(word.upper in ("OR", "AND") for word in condition)
            shape = "({})" if in_parentheses else "{}"
            looks_back = _looks_back(condition, name)
            before = self._before(place, name) if looks_back and name not in self._lists else None
            if name not in self._lists:
                self._conditions.append(shape.format(self._written(name, condition, called, before)))
                continue
            previous = f"{called}[i-1]" if looks_back else None
            self._conditions.append(shape.format(self._written(name, condition, f"{called}[i]", previous)))
            if looks_back:
                first = self._before(place, name)
                if step.times.fewest == 0:
                    self._refuse_word(
                        condition[0], f"the row before in a run that may be empty: write {name}+"
                    )
                self._conditions.append(shape.format(self._written(name, condition, f"{called}[1]", first)))

    def _before(self, place: int, name: str) -> str | None:
        """Return the mention of the row before the first one of a step; None if no variable has it."""
        if not place or self._gaps[place - 1].kind != "neighbours":
            return None
        step = self._steps[place]
        if step.kind == "group" and name != step.names[0]:
            return self._mine[step.names[step.names.index(name) - 1]]
        earlier = self._steps[place - 1]
        if earlier.kind == "single" or (earlier.kind == "list" and earlier.times.fewest):
            return self._scope.mention(earlier.names[0])
        return None

    # The query

    def text(self) -> str:
        """Return the query."""
        items = []
        forbidden: list[str] = []
        for place, step in enumerate(self._steps):
            if (
                place
                and (row := self._gaps[place - 1].between) is not None
                and self._all.conditions_of(row.name) != [()]
            ):
                items.append(f"!ANY {_named(row.name)}")
                forbidden.append(self._passed_over(row))
            items.append(self._item(step))
        strategies = self._strategies()
        for place, step in enumerate(self._steps):
            for name in step.names:
                self._of_variable(name, place)
            if step.kind == "or":
                self._alternatives(step)
        if self._gaps and self._gaps[-1].kind == "last":
            items.append(self._none_behind())
        partition = [f"[{quote_name(name)}]" for name in self._read.partition]
        where = [*strategies, *partition, *self._conditions, *forbidden]
        clauses = [f"PATTERN SEQ({', '.join(items)})"]
        if where:
            clauses.append("WHERE " + "\n  AND ".join(where))
        clauses.append(f"WITHIN {self._window()}")
        if self._read.measures:
            clauses.append("RETURN " + ", ".join(self._measure(*measure) for measure in self._read.measures))
        return "\n".join(clauses)

    def _item(self, step: Step) -> str:
        parts = [f"{self._all.type_of(name)[0]} {self._mine[name]}" for name in step.names]
        if step.kind == "single":
            return parts[0]
        if step.kind == "or":
            return f"OR({', '.join(parts)})"
        if step.kind == "group":
            return f"SEQ({', '.join(parts)})?"
        (name,), times = step.names, replace(step.times, reluctant=False).text
        times = "{" + times[1:-1] + "}" if times.startswith("{") else times
        brackets = "[]" if step.kind == "list" else ""
        return f"{self._all.type_of(name)[0]}{times} {self._mine[name]}{brackets}"

    def _alternatives(self, step: Step) -> None:
        """Let a row be of a branch only if it is of none before."""
        for place, name in enumerate(step.names):
            for earlier in step.names[:place]:
                if not self._all.conditions_of(earlier) or self._all.conditions_of(earlier) == [()]:
                    self._refuse_word(
                        step.word, f"{earlier} takes any row, so that {name} is never tried: leave it out"
                    )
                if not self._all.exclude(earlier, name):
                    whole = self._written(earlier, self._read.define[earlier], self._mine[name], None)
                    self._conditions.append(f"COALESCE(NOT ({whole}), TRUE)")

    def _passed_over(self, row: Row) -> str:
        """Return the condition of rows that may not be passed over."""
        condition = self._read.define[row.name]
        self._checked(row.name, condition)
        whole = self._written(row.name, condition, _named(row.name), None)
        return f"COALESCE(NOT ({whole}), TRUE)"

    def _none_behind(self) -> str:
        """Return the negation that makes the last row the last one that fits."""
        name = self._steps[-1].names[0]
        type_, conditions = self._all.type_of(name)
        other = f"later_{self._mine[name]}"
        for condition in conditions:
            if any(word.upper == "PREV" for word in condition):
                self._refuse_word(condition[0], "PREV behind a gap speaks of a row that no variable has")
            self._conditions.append(f"({self._written(name, condition, other, None)})")
        return f"!{type_} {other}"

    def _strategies(self) -> list[str]:
        near = "partition_contiguity" if self._read.partition else "strict_contiguity"
        names = {"neighbours": near, "loose": "skip_till_next_match"}
        kinds = {gap.kind for gap in self._gaps}
        runs = any(step.kind == "list" for step in self._steps)
        if kinds <= {"neighbours"}:
            several = len(self._gaps) > 0 or runs
            return [f"{near}({self._listed()})"] if several else []
        if kinds == {"loose"}:
            return [f"skip_till_next_match({self._listed()})"]
        called = [self._mine[step.names[0]] for step in self._steps]
        return [
            f"{names[gap.kind]}({one}, {other})"
            for gap, (one, other) in zip(self._gaps, pairwise(called), strict=True)
            if gap.kind in names
        ]

    def _listed(self) -> str:
        return ", ".join(
            f"{self._mine[name]}[]" if name in self._lists else self._mine[name]
            for step in self._steps
            for name in step.names
        )

    def _window(self) -> str:
        words = self._read.within
        if not words:
            return str(_FOREVER)
        if len(words) == 1 and words[0].text.isdecimal():
            return words[0].text
        length = length_in(words)
        if length is None:
            self._refuse_word(words[0], "WITHIN takes one length: WITHIN INTERVAL '5' SECOND")
        return str(length)

    def _measure(self, words: Tokens, name: str) -> str:
        kept = tuple(word for word in words if word.upper not in ("FINAL", "RUNNING"))
        return f"{self._written(None, kept, '', None)} AS {quote_name(name)}"


def _looks_back(condition: Tokens, name: str) -> bool:
    """Return whether a condition of a variable speaks of the row before: by PREV, or LAST of itself."""
    of_itself = any(
        word.upper == "LAST" and behind.name.upper() == name
        for word, behind in zip(condition, condition[2:], strict=False)
    )
    return of_itself or any(word.upper == "PREV" for word in condition)


def _named(name: str) -> str:
    """Return the name of a variable in our query."""
    lower = name.lower()
    taken = lower in RESERVED or lower in ("range_lower", "range_upper", "confidence", "exact", "std_error")
    return f"{lower}_" if taken else lower


def _longest_runs(read: Recognition) -> str:
    """Return the query for ``(S U*)`` that skips past the last row, where neighbours alone decide.

    In each world without ties the matches are the runs that cannot be made longer at either end.
    """
    start, run = (*read.pattern, None, None)[:2]
    fits = (
        len(read.pattern) == 2
        and isinstance(start, Row)
        and isinstance(run, Row)
        and start.times == ONCE
        and run.times == Quantifier(0, None, reluctant=False)
        and set(read.define) == {run.name}
        and not read.within
    )
    bound = _distance(read.define.get(run.name, ()), read.order) if fits and isinstance(run, Row) else None
    if bound is None:
        place = read.skip[0].place if read.skip else 0
        refuse_sql(
            read.text,
            place,
            f"AFTER MATCH SKIP PAST LAST ROW, which holds without the clause, depends on all matches before: "
            f"write {_NEXT_ROW}. Answered are runs of rows close to each other: PATTERN (S U*) DEFINE U AS "
            "ts - PREV(ts) <= INTERVAL '5' SECOND",
        )
    if read.measures:
        refuse_sql(
            read.text,
            read.measures[0][0][0].place,
            "MEASURES of runs: a match has the list of its rows, in c",
        )
    sign, length = bound
    key = "".join(f"[{quote_name(name)}] AND " for name in read.partition)
    return (
        f"PATTERN SEQ(!ANY before, ANY+ c[], !ANY behind)\nWHERE skip_till_next_match(c[]) AND {key}"
        f"TIME(c[i]) - TIME(c[i-1]) {sign} {length}\n  AND TIME(c[1]) - TIME(before) {sign} {length}"
        f" AND TIME(behind) - TIME(c[c.LEN]) {sign} {length}\nWITHIN {_FOREVER}"
    )


def _distance(words: Tokens, order: str) -> tuple[str, str] | None:
    """Return sign and length of ``ts - PREV(ts) <= length``; None of anything else."""
    plain = [
        word
        for place, word in enumerate(words)
        if not (word.text == "." or (words[place + 1 : place + 2] and words[place + 1].text == "."))
    ]
    shape = [word.text for word in plain[:6]]
    if [text.upper() for text in shape] != [order.upper(), "-", "PREV", "(", order.upper(), ")"]:
        return None
    if len(plain) < 8 or plain[6].text not in ("<", "<="):
        return None
    bound = tuple(plain[7:])
    length = bound[0].text if len(bound) == 1 and bound[0].text.isdecimal() else length_in(bound)
    return None if length is None else (plain[6].text, length)
