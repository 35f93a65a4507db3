"""Rules of Sigma as rules of this language: correlations, and detections that none of them names.

The documents of all files are read together, as a correlation names detections that may stand elsewhere. A
correlation asks how likely it holds, ``RETURN PROBABILITY``, by its groups and by buckets of its timespan:
the number of its matches is no matter of Sigma's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, Final

from uncertain_cep.errors import OptionError, QueryError, QuerySyntaxError, TraceError, warn
from uncertain_cep.files.query_files import UnreadableError, text_in
from uncertain_cep.files.toml_documents import no_such_key, toml_document
from uncertain_cep.plurals import counted
from uncertain_cep.query import query_of
from uncertain_cep.query.expression_text import quote_name
from uncertain_cep.rule_sets.named_rules import Rule
from uncertain_cep.rule_sets.sigma_detections import SigmaError, condition_of
from uncertain_cep.running.installation import needed

__all__ = ["FIELDS_FILE", "SIGMA_ENDINGS", "SigmaError", "sigma_rules"]

SIGMA_ENDINGS: Final = (".yml", ".yaml")
"""Of the names of files of Sigma."""

FIELDS_FILE: Final = "sigma.toml"
"""The file beside rules of Sigma that says what their fields and log sources are called in the traces."""

_SOURCE_KEYS: Final = ("category", "product", "service")
_CORRELATION_KEYS: Final = ("type", "rules", "group-by", "timespan", "condition", "aliases", "generate")
_TYPES: Final = ("temporal", "temporal_ordered", "event_count", "value_count")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_TIMESPAN: Final = re.compile(r"([0-9]+)([A-Za-z]+)")
_MOST_VALUES: Final = 10
"""Most different values of a value_count: each is an event of the pattern."""


@dataclass(frozen=True, slots=True)
class _Names:
    """Names of fields and log sources in the traces."""

    fields: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[Mapping[str, Any], ...] = ()

    def column(self, variable: str, name: str) -> str:
        """Return the text for a field of an event."""
        return f"{variable}.{quote_name(self.fields.get(name, name))}"

    def types(self, source: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the types of the events of a log source; none: those of all."""
        for one in self.sources:
            if all(source.get(key) == one[key] for key in _SOURCE_KEYS if key in one):
                return tuple(one["types"])
        if self.sources:
            shown = ", ".join(f"{key}: {source[key]}" for key in _SOURCE_KEYS if key in source)
            raise SigmaError(f"no [[logsource]] of {FIELDS_FILE} is that of logsource ({shown or 'empty'})")
        return ()


@dataclass(frozen=True, slots=True)
class _Document:
    """A document of a file of Sigma."""

    file: str
    content: Mapping[str, Any]
    names: _Names

    @property
    def title(self) -> str:
        """The name of the rule, on one line."""
        return " ".join(str(self.content.get("title") or self.content.get("name")).split())

    @property
    def keys(self) -> tuple[str, ...]:
        """The names that correlations have for it."""
        return tuple(str(self.content[key]) for key in ("name", "id") if key in self.content)


@dataclass(frozen=True, slots=True)
class _Event:
    """An event of a pattern: its variable, and the detections of which it meets one."""

    variable: str
    documents: tuple[_Document, ...]

    def component(self) -> str:
        """Return the component of the pattern."""
        types = [
            one.names.types(_mapping(one.content.get("logsource", {}), "logsource")) for one in self.documents
        ]
        if len(set(types)) > 1:
            raise SigmaError("its rules are of several log sources, whose events have different types")
        names = [quote_name(name, reserved=True) for name in types[0]]
        type_text = "ANY" if not names else names[0] if len(names) == 1 else f"({'|'.join(names)})"
        return f"{type_text} {self.variable}"

    def column(self, name: str) -> str:
        """Return the text for a field."""
        return self.documents[0].names.column(self.variable, name)

    def condition(self) -> str:
        """Return the condition that it is detected."""
        parts = [
            condition_of(one.content["detection"], partial(one.names.column, self.variable))
            for one in self.documents
        ]
        return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


def sigma_rules(files: Sequence[str]) -> Iterator[tuple[str, Callable[[], Rule]]]:
    """Yield for each rule of files of Sigma where it stands, and a function that reads it.

    The function raises a SigmaError if the rule cannot be read, or is not answered.
    """
    if not files:
        return
    needed("sigma")
    documents: list[_Document] = []
    for file in files:
        try:
            documents += _documents(file)
        except SigmaError as error:
            yield file, partial(_refused, str(error))
    # A detection comes before a correlation of the same name.
    in_order = sorted(documents, key=lambda one: "correlation" in one.content)
    by_key: dict[str, list[_Document]] = {}
    for one in in_order:
        for key in one.keys:
            by_key.setdefault(key, []).append(one)
    named = {
        key
        for one in documents
        for key in _names_of(one)
        if not _mapping_or_none(one.content.get("correlation"), "generate")
    }
    everywhere = 0
    for one in documents:
        if "correlation" in one.content:
            yield one.file, partial(_correlation, one, by_key)
        elif not named.intersection(one.keys):
            yield one.file, partial(_detection, one)
        everywhere += bool(one.content.get("logsource")) and not one.names.sources
    if everywhere:
        warn(
            f"the logsource of {counted(everywhere, 'detection')} of Sigma is not heeded, and events of all "
            f"types are looked at: name its types in a table [[logsource]] of {FIELDS_FILE} beside the file"
        )


def _refused(message: str) -> Rule:
    raise SigmaError(message)


def _names_of(document: _Document) -> list[str]:
    """Return the rules that a correlation names; none if it is none."""
    correlation = document.content.get("correlation")
    rules = correlation.get("rules", []) if isinstance(correlation, Mapping) else []
    return [rules] if isinstance(rules, str) else [str(rule) for rule in rules if isinstance(rules, list)]


def _mapping_or_none(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SigmaError(f"{name} is a mapping, and this is {value!r}")
    return value


def _documents(file: str) -> list[_Document]:
    """Return the documents of a file."""
    import yaml  # type: ignore[import-untyped]

    try:
        contents = _contents(text_in(file))
    except UnreadableError as error:
        raise SigmaError(f"the file {error}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        said = (
            " ".join(str(error).split()) if isinstance(error, yaml.YAMLError) else "it is nested too deeply"
        )
        raise SigmaError(f"it is no YAML: {said}") from None
    if not contents:
        raise SigmaError("the file is empty")
    names = _names_beside(file)
    for one in contents:
        if not isinstance(one, Mapping) or not ("detection" in one or "correlation" in one):
            raise SigmaError("it is no rule of Sigma: it has neither detection nor correlation")
        if "detection" in one and "correlation" in one:
            raise SigmaError("a rule has a detection or a correlation, and not both")
        for key in ("action", "filter"):
            if key in one:
                raise SigmaError(f"{key}: documents that change other rules are not answered: write them out")
        title = one.get("title") or one.get("name")
        if not isinstance(title, str) or not title.strip():
            raise SigmaError("a rule has a title, which is text")
    return [_Document(file, one, names) for one in contents]


def _contents(text: str) -> list[Any]:
    """Return the documents of YAML, but for empty ones; a SigmaError says which key one has twice."""
    import yaml

    loader = yaml.SafeLoader(text)
    contents = []
    while loader.check_node():
        root = loader.get_node()
        nodes = [root]
        # What an anchor names stands there once.
        seen = {id(root)}
        for node in nodes:
            keys = [pair[0] for pair in node.value if isinstance(pair, tuple)]
            names = [key.value for key in keys]
            if again := [key for place, key in enumerate(keys) if key.value in names[:place]]:
                raise SigmaError(f"line {again[0].start_mark.line + 1}: {again[0].value} stands there twice")
            parts = [] if isinstance(node.value, str) else node.value
            values = [part[1] if isinstance(part, tuple) else part for part in parts]
            nodes += [value for value in values if id(value) not in seen]
            seen.update(map(id, values))
        contents.append(loader.construct_document(root))
    return [one for one in contents if one is not None]


def _names_beside(file: str) -> _Names:
    """Return the names of ``sigma.toml`` beside a file; none if there is no such file."""
    place = os.path.join(os.path.dirname(file), FIELDS_FILE)
    if not os.path.exists(place):
        return _Names()
    try:
        document = toml_document(place, "field")
    except TraceError as error:
        raise SigmaError(f"{place}: {error.faults[0].message}") from None
    fields, sources = document.pop("fields", {}), document.pop("logsource", [])
    for key in document:
        raise SigmaError(f"{place}: {key}: {no_such_key(key, ('fields', 'logsource'))}")
    if not isinstance(fields, dict) or not all(isinstance(name, str) and name for name in fields.values()):
        raise SigmaError(f'{place}: [fields] has names of columns, such as CommandLine = "cmd"')
    tables = sources if isinstance(sources, list) else [sources]
    for table in tables:
        for key in table if isinstance(table, dict) else ():
            if key not in (*_SOURCE_KEYS, "types"):
                raise SigmaError(f"{place}: {key}: {no_such_key(key, (*_SOURCE_KEYS, 'types'))}")
        types = table.get("types") if isinstance(table, dict) else None
        if not isinstance(types, list) or not types or not all(isinstance(name, str) for name in types):
            raise SigmaError(f'{place}: a table [[logsource]] has types, such as types = ["Process"]')
    return _Names(fields, tuple(tables))


def _rule(document: _Document, write: Callable[[], str]) -> Rule:
    """Return a rule of a document whose query a function writes."""
    try:
        query = query_of(write())
    except (SigmaError, QuerySyntaxError, QueryError, OptionError) as error:
        raise SigmaError(f"rule {document.title!r}: {error}") from None
    level, description = (str(document.content.get(key) or "") for key in ("level", "description"))
    rule = Rule(document.title, query, severity=level, description=description.strip())
    return replace(rule, place=document.file)


def _detection(document: _Document) -> Rule:
    """Return the rule of a detection that no correlation names: each event that it detects."""

    def write() -> str:
        event = _Event("event", (document,))
        return f"PATTERN SEQ({event.component()}) WHERE {event.condition()} WITHIN 1"

    return _rule(document, write)


def _correlation(document: _Document, by_key: Mapping[str, Sequence[_Document]]) -> Rule:
    return _rule(document, lambda: _Correlation(document, by_key).text())


class _Correlation:
    """A correlation, and the query that asks it."""

    def __init__(self, document: _Document, by_key: Mapping[str, Sequence[_Document]]) -> None:
        self._content = _mapping(document.content["correlation"], "correlation")
        for key in self._content:
            if key not in _CORRELATION_KEYS:
                raise SigmaError(f"correlation: {key}: {no_such_key(str(key), _CORRELATION_KEYS)}")
        self._type = self._content.get("type")
        if self._type not in _TYPES:
            raise SigmaError(
                f"a correlation of the type {self._type} is not answered: {', '.join(_TYPES)} are. A query "
                "compares sums and averages of a run, such as WHERE avg(c[].x) > 5"
            )
        self._names = _names_of(document)
        if not self._names:
            raise SigmaError("correlation: rules names detections")
        for name in self._names:
            if name not in by_key:
                raise SigmaError(f"correlation: no detection has the name or id {name}")
            first, *further = by_key[name]
            if "detection" not in first.content:
                raise SigmaError(
                    f"correlation: {name} is a correlation itself, which is not answered: name its detections"
                )
            if any("detection" in other.content for other in further):
                raise SigmaError(f"correlation: several detections have the name or id {name}")
        self._rules = tuple(by_key[name][0] for name in self._names)
        self._span = _timespan(self._content.get("timespan"))
        if not isinstance(self._content.get("generate", False), bool):
            raise SigmaError("generate is true or false")
        self._check_aliases()

    def _check_aliases(self) -> None:
        """Refuse an alias that no group uses, and one of a rule that is not correlated."""
        for alias, fields in _mapping(self._content.get("aliases", {}), "aliases").items():
            if alias not in self._groups():
                raise SigmaError(f"aliases: {alias} stands in no group-by, and elsewhere is not answered")
            for rule in _mapping(fields, f"aliases: {alias}"):
                if str(rule) not in self._names:
                    raise SigmaError(f"aliases: {alias}: {rule} is none of the rules of the correlation")

    def text(self) -> str:
        """Return the query."""
        if self._type in ("temporal", "temporal_ordered"):
            if "condition" in self._content:
                raise SigmaError(f"a condition of {self._type} is not answered: all its rules have to be met")
            operator = "AND" if self._type == "temporal" and len(self._rules) > 1 else "SEQ"
            events = [_Event(self._variable(place), (rule,)) for place, rule in enumerate(self._rules)]
            return self._query(operator, [], events)
        if self._type == "event_count":
            event = _Event(self._variable(0), self._rules)
            return self._query("SEQ", [], [event], self._least())
        return self._distinct()

    def _variable(self, place: int) -> str:
        """Return a variable, which BY takes for no column."""
        prefix = "r"
        columns = {rule.names.fields.get(name, name) for rule in self._rules for name in self._groups()}
        while any(column.startswith(prefix) for column in columns):
            prefix += "_"
        return f"{prefix}{place + 1}"

    def _distinct(self) -> str:
        """Return the query of a value_count: so many events, each of another value, in any order."""
        condition = _mapping(self._content.get("condition"), "condition")
        name, count = condition.get("field"), self._least()
        if not isinstance(name, str):
            raise SigmaError("the condition of a value_count has a field")
        if count > _MOST_VALUES:
            raise SigmaError(
                f"a value_count of {count} values is not answered: up to {_MOST_VALUES} are, and event_count "
                "counts up to 1,000 events"
            )
        events = [_Event(self._variable(place), self._rules) for place in range(count)]
        columns = [event.column(name) for event in events]
        apart = [f"{one} < {other}" for one, other in pairwise(columns)]
        return self._query(*(("AND", apart) if count > 1 else ("SEQ", [f"{columns[0]} IS NOT NULL"])), events)

    def _least(self) -> int:
        """Return the number that a count has to reach."""
        condition = _mapping(self._content.get("condition"), "condition")
        numbers = {key: value for key, value in condition.items() if key != "field"}
        if self._type == "event_count" and "field" in condition:
            raise SigmaError("condition: field is of value_count, and event_count counts events")
        if len(numbers) != 1 or next(iter(numbers)) not in ("gt", "gte"):
            raise SigmaError(
                f"condition: {', '.join(map(str, numbers)) or 'nothing'} is not answered: a count has one "
                "gte or gt. How likely it is at most n is 1 less that of gt"
            )
        ((sign, number),) = numbers.items()
        if not isinstance(number, int) or isinstance(number, bool) or number + (sign == "gt") < 1:
            raise SigmaError(f"condition: {sign} is a whole number of at least {0 if sign == 'gt' else 1}")
        return number + (sign == "gt")

    def _groups(self) -> list[str]:
        groups = self._content.get("group-by", [])
        names = [groups] if isinstance(groups, str) else groups
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise SigmaError("group-by has names of fields")
        return names

    def _grouping(self, events: list[_Event]) -> list[list[str]]:
        """Return for each name of group-by the column of each event."""
        aliases = _mapping(self._content.get("aliases", {}), "aliases")
        grouping = []
        for name in self._groups():
            alias = aliases.get(name)
            columns = []
            for place, event in enumerate(events):
                rule = self._names[place if len(events) == len(self._names) else 0]
                called = name if alias is None else alias.get(rule)
                if called is None:
                    raise SigmaError(f"aliases: {name} has no field of {rule}")
                columns.append(event.column(str(called)))
            grouping.append(columns)
        return grouping

    def _query(self, operator: str, further: list[str], events: list[_Event], fewest: int = 1) -> str:
        """Return the query of a pattern of events that are detected, of one group each."""
        if self._content.get("aliases") and self._type in _TYPES[2:] and len(self._names) > 1:
            raise SigmaError("aliases of a count of several rules are not answered: give the fields one name")
        conditions = [*(event.condition() for event in events), *further]
        keys = []
        for columns in self._grouping(events):
            if len(columns) == 1:
                conditions.append(f"{columns[0]} IS NOT NULL")
            names = {column.partition(".")[2] for column in columns}
            conditions += [f"{one} = {other}" for one, other in pairwise(columns)]
            keys.append(names.pop() if len(names) == 1 else columns[0])
        count = f" OF AT LEAST {fewest} MATCHES" if fewest > 1 else ""
        by = f" BY {', '.join(keys)}" if keys else ""
        pattern = f"{operator}({', '.join(event.component() for event in events)})"
        return (
            f"PATTERN {pattern}\nWHERE {' AND '.join(conditions)}\nWITHIN {self._span}\n"
            f"RETURN PROBABILITY{count}{by} EVERY {self._span}"
        )


def _timespan(value: Any) -> str:
    """Return a timespan such as 5m as it is written here."""
    parts = _TIMESPAN.fullmatch(value) if isinstance(value, str) else None
    if parts is None or parts[2] not in _UNITS or int(parts[1]) == 0:
        raise SigmaError(f"timespan is a number and one of {', '.join(_UNITS)}, such as 5m, not {value}")
    return f"{parts[1]} {_UNITS[parts[2]]}"
