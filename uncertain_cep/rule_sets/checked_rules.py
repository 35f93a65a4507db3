"""The tests of rules: the alerts of a small trace, beside those that are expected."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.errors import OptionError, UncertainCepError
from uncertain_cep.plan import MatchOptions
from uncertain_cep.plurals import counted
from uncertain_cep.rule_sets.named_rules import Rules, RuleTest
from uncertain_cep.rule_sets.rule_matching import answers_of
from uncertain_cep.traces import read_traces
from uncertain_cep.traces.schema import TraceSchema

__all__ = ["CheckedTest", "checked_tests"]

_TOLERANCE: Final = 1e-9
"""Of numbers with a fraction."""


@dataclass(frozen=True, slots=True)
class CheckedTest:
    """A test of a rule, and its fault; none if it holds."""

    rule: str
    test: str
    fault: str = ""


def checked_tests(
    rules: Rules, schema: TraceSchema | None = None, tick: str | None = None
) -> Iterator[CheckedTest]:
    """Yield the tests of rules, in their order, each with what is wrong.

    ``schema`` says how trace files of tests are read.
    """
    for rule in rules:
        for test in rule.tests:
            try:
                events = _events_of(test, schema, tick)
                answer = answers_of(events, Rules([rule]), MatchOptions(tick=tick))[rule.name]
                fault = _fault(test, answer)
            except UncertainCepError as error:
                fault = str(error)
            yield CheckedTest(rule.name, test.name, fault)


def _events_of(test: RuleTest, schema: TraceSchema | None, tick: str | None) -> pa.Table:
    """Return the events of a test.

    A row has a type and its times: lower and upper, or lower alone if that is certain. Rows without ids are
    numbered from 1.
    """
    if isinstance(test.events, str):
        return read_traces(test.events, schema, tick=tick)
    if not test.events:
        raise OptionError("events: there is none")
    rows = [{"id": number, **row} for number, row in enumerate(test.events, 1)]
    rows = [{**row, "upper": row["lower"]} if "lower" in row and "upper" not in row else row for row in rows]
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {}
    for name in names:
        columns[name] = _column_of(name, [row.get(name) for row in rows])
    return pa.table(columns)


def _column_of(name: str, values: Sequence[Any]) -> pa.Array:
    """Return the values of rows as a column; times are of UTC if one has a zone."""
    zoned = {value.tzinfo is not None for value in values if isinstance(value, datetime)}
    dtype = pa.timestamp("us", "UTC" if True in zoned else None) if zoned else None
    if zoned and not all(isinstance(value, datetime) for value in values if value is not None):
        raise OptionError(f"events: some values of {name} are times, and others are none")
    try:
        return pa.array(values, dtype)
    except MemoryError:
        raise
    except (pa.ArrowException, OverflowError) as error:
        raise OptionError(f"events: the values of {name} make no column: {error}") from None


def _fault(test: RuleTest, answer: pa.Table) -> str:
    """Say how the alerts of a test differ from those expected; nothing if they do not."""
    alerts = _rows_of(answer)
    shown = "".join(f"\n  told: {_row_text(row)}" for row in alerts)
    if isinstance(test.expected, int):
        if len(alerts) == test.expected:
            return ""
        return f"{counted(test.expected, 'alert')} expected, {len(alerts):,} told{shown}"
    for name in dict.fromkeys(name for row in test.expected for name in row):
        if name not in answer.column_names:
            return f"no column is called {name}: alerts have {', '.join(answer.column_names)}"
    unfit = _without_partner(test.expected, alerts)
    if not unfit and len(alerts) == len(test.expected):
        return ""
    missing = "".join(f"\n  expected: {_row_text(row)}" for row in unfit)
    return f"{counted(len(test.expected), 'alert')} expected, {len(alerts):,} told{missing}{shown}"


def _rows_of(answer: pa.Table) -> list[Mapping[str, Any]]:
    """Return alerts by row, with times to the microsecond, as those of TOML are."""
    columns = [
        column.cast(pa.timestamp("us", column.type.tz), safe=False)
        if pa.types.is_timestamp(column.type)
        else column
        for column in answer.columns
    ]
    rows: list[Mapping[str, Any]] = pa.table(columns, names=answer.column_names).to_pylist()
    return rows


def _row_text(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in row.items())


def _without_partner(
    expected: Sequence[Mapping[str, Any]], alerts: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the expected rows that no alert is left for, once as many as can be have one of their own.

    By augmenting paths (Kuhn, 1955), as an alert may fit several rows.
    """
    fitting = [[j for j, alert in enumerate(alerts) if _fits(row, alert)] for row in expected]
    partner: dict[int, int] = {}

    def placed(row: int, seen: set[int]) -> bool:
        for j in fitting[row]:
            if j not in seen:
                seen.add(j)
                if j not in partner or placed(partner[j], seen):
                    partner[j] = row
                    return True
        return False

    return [row for number, row in enumerate(expected) if not placed(number, set())]


def _fits(row: Mapping[str, Any], alert: Mapping[str, Any]) -> bool:
    return all(_equal(value, alert[name]) for name, value in row.items())


def _equal(expected: Any, value: Any) -> bool:
    if isinstance(expected, float) and isinstance(value, float | int):
        return math.isclose(expected, value, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    if isinstance(expected, datetime) and isinstance(value, datetime):
        # Times without a zone are of UTC.
        expected, value = (one if one.tzinfo else one.replace(tzinfo=UTC) for one in (expected, value))
    return bool(expected == value)
