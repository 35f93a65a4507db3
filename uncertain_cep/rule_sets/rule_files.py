"""Rules out of files: queries, each in a file of its own, and TOML files with names and notes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from glob import glob, has_magic
from pathlib import Path
from typing import Any, Final

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError, QueryError, QuerySyntaxError, TraceError
from uncertain_cep.files.query_files import QUERY_ENDINGS, SQL_ENDING, UnreadableError, text_in
from uncertain_cep.files.toml_documents import no_such_key, toml_document
from uncertain_cep.query import Query, query_of, values_of
from uncertain_cep.query.sql_queries import translated
from uncertain_cep.rule_sets.named_rules import Rule, Rules, RuleTest, suppression_of
from uncertain_cep.rule_sets.sigma_rules import FIELDS_FILE, SIGMA_ENDINGS, SigmaError, sigma_rules

__all__ = ["RULE_ENDINGS", "rules"]

RULE_ENDINGS: Final = (*QUERY_ENDINGS, ".toml", *SIGMA_ENDINGS)
"""Of the names of files that are looked for in a folder."""

_KEYS: Final = (
    "name", "query", "query_file", "parameters", "severity", "description", "suppress", "tests",
)  # fmt: skip
_TEST_KEYS: Final = ("name", "events", "expected")


class _Refused(Exception):  # noqa: N818
    """A rule cannot be read; the text says why."""


@public
def rules(
    sources: str | os.PathLike[str] | Mapping[str, Query | str] | Sequence[str | os.PathLike[str]],
) -> Rules:
    """Read rules: queries with names, which `match` asks of the same events together.

    Parameters
    ----------
    sources : str, path, mapping or sequence
        A file, a folder, a pattern such as ``"rules/*.sase"``, a sequence of these, or a mapping of names to
        queries. A folder stands for its files that end in ``.sase``, ``.query``, ``.sql``, ``.toml``,
        ``.yml`` and ``.yaml``, by name, but for hidden ones. A ``.sase``, ``.query`` or ``.sql``
        (MATCH_RECOGNIZE) file is one rule, whose name is that of the file without its ending. A ``.yml`` or
        ``.yaml`` file has rules of Sigma, which come last.

    Returns
    -------
    Rules
        A sequence of rules, each with ``name``, ``query``, ``severity``, ``description``, ``suppress`` and
        ``tests``; ``rules["name"]`` is one of them.

    Raises
    ------
    OptionError
        If there is no such file, or a rule cannot be read: all faults of all files at once. If two rules
        have one name.

    Notes
    -----
    A TOML file has a table ``[[rule]]`` for each rule, with the keys ``name``, ``query`` (its text) or
    ``query_file``, and optionally ``parameters`` (a table of the values of ``$name``), ``severity`` and
    ``description`` (text), ``suppress`` and ``tests``. ``suppress = "10 min BY host"`` counts alerts instead
    of telling them if they come within 10 minutes of one of the same host and rule that was told: by
    ``range_upper``, ties by the events. A test is a table
    ``[[rule.tests]]`` with ``events``, rows or the name of a trace file, and ``expected``, the number of
    alerts or some columns of each.

    All files of Sigma are read together. A correlation becomes a rule, and so does a detection that none
    names. ``sigma.toml`` beside them has a table ``[fields]`` of the columns that their fields are, and a
    table ``[[logsource]]`` for each of the log sources: ``category``, ``product``, ``service``, and the
    ``types`` of their events.

    Examples
    --------
    >>> import uncertain_cep as uc
    >>> uc.rules({"soon": "PATTERN SEQ(A a, B b) WITHIN 4", "never": "PATTERN SEQ(A a, !B b) WITHIN 9"})
    <2 rules: soon, never>
    """
    one: Any = sources
    parts = [one] if isinstance(one, str | os.PathLike | Mapping) else one
    if not isinstance(parts, Sequence) or not parts:
        raise OptionError(
            'rules are read from files, such as uc.rules("rules/*.sase"), or given by name, not as a '
            f"{type(one).__name__}"
        )
    faults: list[str] = []
    collected: list[Rule] = []
    for place, read in _readers(parts):
        try:
            collected.append(read())
        except (_Refused, SigmaError) as error:
            faults.append(f"{place}: {error}" if place else str(error))
    if not collected and not faults:
        raise OptionError(f"no rule: a folder of rules has files that end in {', '.join(RULE_ENDINGS)}")
    try:
        named = Rules(collected)
    except OptionError as error:
        faults.append(str(error))
    if faults:
        raise OptionError("\n".join(faults))
    return named


def _readers(sources: Iterable[Any]) -> Iterator[tuple[str, Callable[[], Rule]]]:
    """Yield for each rule where it stands, and a function that reads it."""
    sigma: list[str] = []
    for source in sources:
        if isinstance(source, Mapping):
            for name, query in source.items():
                yield "", partial(_named, name, query, {})
        elif isinstance(source, str | os.PathLike):
            for file in _files_of(os.fspath(source)):
                if file.lower().endswith(SIGMA_ENDINGS):
                    sigma.append(file)
                elif file.lower().endswith(".toml"):
                    yield from _of_document(file)
                else:
                    yield file, partial(_of_query_file, file)
        else:
            raise OptionError(f"rules are read from files, and {source!r} is no name of one")
    yield from sigma_rules(sigma)


def _of_query_file(file: str) -> Rule:
    return replace(_named(Path(file).stem, _text_of(file, "the query file"), {}), place=file)


def _files_of(source: Any) -> list[str]:
    """Return the files that a name stands for, in order."""
    if not isinstance(source, str):
        raise OptionError(f"{source!r} is no name of a file: a path is text")
    if os.path.isdir(source):
        inside = sorted(os.path.join(source, name) for name in os.listdir(source))
        return [file for file in inside if file.lower().endswith(RULE_ENDINGS) and _is_rule_file(file)]
    if os.path.exists(source) or not has_magic(source):
        return [source]
    if not (files := [file for file in sorted(glob(source)) if _is_rule_file(file)]):
        raise OptionError(f"{source}: no file is called so")
    return files


def _is_rule_file(file: str) -> bool:
    """Return whether a file can hold rules, by its name: not one that an editor hides, and no folder."""
    name = os.path.basename(file)
    return not name.startswith(".") and name != FIELDS_FILE and not os.path.isdir(file)


def _text_of(file: str, name: str) -> str:
    """Return the text of a query file, which errors call by a name."""
    try:
        text = text_in(file)
        return translated(text) if file.lower().endswith(SQL_ENDING) else text
    except (UnreadableError, QuerySyntaxError, QueryError) as error:
        raise _Refused(f"{name} {error}") from None


def _named(name: Any, query: Any, parameters: Mapping[str, Any]) -> Rule:
    """Return a rule of a query that is given as such or as text."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise _Refused(f"name = {name!r}: a rule has a name, which is text on one line")
    try:
        return Rule(name, query_of(query, values_of(parameters)))
    except (QuerySyntaxError, QueryError, OptionError) as error:
        raise _Refused(f"rule {name!r}: {error}") from None


def _of_document(file: str) -> Iterator[tuple[str, Callable[[], Rule]]]:
    """Yield the rules of a TOML file, each as a function that reads it."""
    try:
        document = toml_document(file, "rule")
    except TraceError as error:
        yield file, partial(_refused, error.faults[0].message)
        return
    tables = document.pop("rule", None)
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        yield file, partial(_refused, "a file of rules has a table [[rule]] for each of them")
        return
    for key in document:
        yield file, partial(_refused, f"{key}: a file of rules has tables [[rule]] only")
    for number, table in enumerate(tables, 1):
        yield file, partial(_of_table, table, number, file)


def _refused(message: str) -> Rule:
    raise _Refused(message)


def _of_table(table: Mapping[str, Any], number: int, file: str) -> Rule:
    """Return the rule that a table of a TOML file describes, which has a number there."""
    name = table.get("name")
    if not isinstance(name, str) or not name.strip():
        raise _Refused(f'[[rule]] number {number}: each rule has a name, such as name = "brute force"')
    try:
        _check_keys(table, _KEYS)
        if ("query" in table) == ("query_file" in table):
            raise _Refused("a rule has a query, or a query_file, and not both")
        text = table.get("query")
        if text is None:
            beside = _text(table, "query_file")
            text = _text_of(os.path.join(os.path.dirname(file), beside), f"query_file = {beside!r}")
        parameters = table.get("parameters", {})
        if not isinstance(parameters, dict):
            raise _Refused("parameters is a table, such as parameters = { limit = 5 }")
        suppress = None if "suppress" not in table else suppression_of(table["suppress"])
        return replace(
            _named(name, text, parameters),
            severity=_text(table, "severity"),
            description=_text(table, "description"),
            suppress=suppress,
            tests=_tests(table.get("tests", []), file),
            place=file,
        )
    except (_Refused, OptionError) as error:
        said = str(error)
        raise _Refused(said if said.startswith("rule ") else f"rule {name!r}: {said}") from None


def _text(table: Mapping[str, Any], key: str) -> str:
    text = table.get(key, "")
    if not isinstance(text, str):
        raise _Refused(f"{key} is text, and this is {text!r}")
    return text


def _check_keys(table: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    """Refuse a table with a key that means nothing."""
    for key in table:
        if key not in allowed:
            raise _Refused(f"{key}: {no_such_key(key, allowed)}")


def _tests(tables: Any, file: str) -> tuple[RuleTest, ...]:
    """Return the tests of a rule."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise _Refused("tests are tables [[rule.tests]]")
    tests = []
    for number, table in enumerate(tables, 1):
        _check_keys(table, _TEST_KEYS)
        events, expected = table.get("events"), table.get("expected")
        if isinstance(events, str):
            events = os.path.join(os.path.dirname(file), events)
        elif _is_rows(events):
            events = tuple(events)
        else:
            raise _Refused(f"test {number}: events are rows, or the name of a trace file")
        if _is_rows(expected):
            expected = tuple(expected)
        elif isinstance(expected, bool) or not isinstance(expected, int) or expected < 0:
            raise _Refused(f"test {number}: expected is a number of alerts, or columns of each")
        tests.append(RuleTest(str(table.get("name", f"test {number}")), events, expected))
    return tuple(tests)


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)
