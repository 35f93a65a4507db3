"""A rule, and a set of rules, whose names differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from uncertain_cep.errors import Fault, OptionError, QueryError
from uncertain_cep.query import Query
from uncertain_cep.timeline.durations import parse_duration

__all__ = ["Rule", "RuleTest", "Rules", "Suppression", "of_each_rule", "suppression_of"]

MadeT = TypeVar("MadeT")

_BY: Final = re.compile(r"\s+by\s+", re.IGNORECASE)
_COLUMN: Final = re.compile(r"\s*(?:`([^`]+)`|([^`,]+))\s*(?:,|$)")
_TICKS: Final = re.compile(r"(\d+)(?:\s+ticks?)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Suppression:
    """How long after an alert others of its group are counted and not told.

    Attributes
    ----------
    length : str or int
        How long, as a length of time, or in ticks.
    by : tuple of str
        The columns of the result whose values make a group; none: all alerts of the rule are one.
    """

    length: str | int
    by: tuple[str, ...] = ()


def suppression_of(text: Any) -> Suppression:
    """Read a text such as ``10 min BY host, user``.

    An OptionError says what is wrong.
    """
    if not isinstance(text, str) or not text.strip():
        raise OptionError(f'suppress is a length of time, such as "10 min BY host", and this is {text!r}')
    length, *columns = _BY.split(text.strip(), maxsplit=1)
    names = tuple(name for column in columns for name in _columns_in(text, column))
    if (ticks := _TICKS.fullmatch(length)) is not None:
        return Suppression(int(ticks[1]), names)
    parse_duration(length, what="suppress")
    return Suppression(length, names)


def _columns_in(text: str, columns: str) -> Iterator[str]:
    """Yield the columns that stand behind BY."""
    place = 0
    while place < len(columns) or columns.endswith(","):
        column = _COLUMN.match(columns, place)
        if column is None or (column[2] is not None and (_BY.search(column[2]) or not column[2].strip())):
            raise OptionError(f'suppress = "{text}": behind BY stand names of columns, such as BY host, user')
        yield column[1] or column[2].strip()
        place = column.end()


@dataclass(frozen=True, slots=True)
class RuleTest:
    """A small trace with the alerts that a rule has to tell of it.

    Attributes
    ----------
    name : str
    events : str or tuple of mapping
        A trace file, or rows.
    expected : int or tuple of mapping
        How many alerts, or the values of some columns of each, in any order.
    """

    name: str
    events: str | tuple[Mapping[str, Any], ...]
    expected: int | tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A query with a name and notes.

    Attributes
    ----------
    name : str
    query : Query
    severity, description : str
    suppress : Suppression or None
    tests : tuple of RuleTest
    place : str
        The file that it was read from; empty if there is none.
    """

    name: str
    query: Query
    severity: str = ""
    description: str = ""
    suppress: Suppression | None = None
    tests: tuple[RuleTest, ...] = field(default=(), repr=False)
    place: str = ""


class Rules(Sequence[Rule]):
    """Rules in their order, also by name: ``rules["brute force"]``.

    Raises
    ------
    OptionError
        If two have one name.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rules)
        self._by_name = {rule.name: rule for rule in rules}
        if len(self._by_name) < len(self._rules):
            again = [name for name, count in Counter(rule.name for rule in rules).items() if count > 1]
            raise OptionError("\n".join(self._named_twice(name) for name in again))

    def _named_twice(self, name: str) -> str:
        places = dict.fromkeys(rule.place for rule in self._rules if rule.name == name and rule.place)
        where = f" ({', '.join(places)})" if places else ""
        return f"two rules are called {name}{where}: a rule is known by its name"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules, in order."""
        return tuple(self._by_name)

    def __len__(self) -> int:
        """Return how many rules there are."""
        return len(self._rules)

    def __iter__(self) -> Iterator[Rule]:
        """Iterate over the rules in their order."""
        return iter(self._rules)

    def __getitem__(self, key: Any) -> Any:
        """Return a rule by its name or place."""
        if isinstance(key, str):
            if key not in self._by_name:
                raise KeyError(f"no rule is called {key!r}; the rules are {', '.join(self.names)}")
            return self._by_name[key]
        chosen = self._rules[key]
        return Rules(chosen) if isinstance(key, slice) else chosen

    def __repr__(self) -> str:
        """Return the names of the first rules, and how many there are."""
        shown = ", ".join(self.names[:5]) + (", ..." if len(self) > 5 else "")
        return f"<{len(self)} rules: {shown}>"


def of_each_rule(rules: Iterable[Rule], make: Callable[[Rule], MadeT]) -> list[MadeT]:
    """Return the results of a function for each rule.

    Raises
    ------
    QueryError
        With the faults of all rules, each behind the name of its rule.
    OptionError
        If some have another fault: with these, and those of all queries.
    """
    made: list[MadeT] = []
    faults: list[Fault] = []
    refusals: list[str] = []
    for rule in rules:
        try:
            made.append(make(rule))
        except QueryError as error:
            faults += [
                Fault(f"rule {rule.name!r}: {fault.message}", fault.line, fault.column)
                for fault in error.faults
            ]
        except OptionError as error:
            refusals.append(f"rule {rule.name!r}: {error}")
    if refusals:
        raise OptionError("\n".join([*refusals, *([str(QueryError(faults))] if faults else [])]))
    if faults:
        raise QueryError(faults)
    return made
