"""Bad input is refused in words that a table has, which Spark uses as well."""

from __future__ import annotations

from typing import Any

import pytest

import uncertain_cep as uc
from tests.cases.mistakes import COLUMNS, EVENTS, FAULTS, PLAIN, QUERIES, events_of, lines_of


@pytest.mark.parametrize(("query", "options", "lines"), QUERIES)
def test_bad_queries_and_options(query: str, options: dict[str, Any], lines: list[str]) -> None:
    with pytest.raises(uc.UncertainCepError) as raised:
        uc.match(EVENTS, query, **options)
    assert lines_of(raised.value) == lines


@pytest.mark.parametrize(("columns", "lines"), [*COLUMNS, *FAULTS])
def test_bad_columns_and_events(columns: dict[str, Any], lines: list[str]) -> None:
    with pytest.raises(uc.TraceError) as raised:
        uc.match(events_of(**columns), PLAIN)
    assert lines_of(raised.value) == lines
