"""Every example of docs/reference.md gives what the page says, and nothing of the language is missing."""

from __future__ import annotations

import re
from ast import literal_eval
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pyarrow as pa
import pytest

import uncertain_cep as uc
from uncertain_cep.query.expression_text import CLAUSES, OPERATOR_SIGNS
from uncertain_cep.query.functions import ALIASES, DATE_PARTS, FUNCTIONS, TYPES
from uncertain_cep.query.parser import WORDS
from uncertain_cep.query.syntax import Aggregate, SelectionStrategy

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")


def table() -> pa.Table:
    """Return the trace that the page shows."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    events: pa.Table = names["events"]
    return events


def rows(last: str) -> list[tuple[str, str]]:
    """Return the examples of the tables whose last column has a name, and what it says."""
    examples, in_table = [], False
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells and cells[0] == "written":
            in_table = cells[-1] == last
        elif cells and in_table and not cells[0].startswith("-"):
            examples.append((cells[-2].strip("`").strip().replace("\\|", "|"), cells[-1].strip("`")))
    return examples


@pytest.mark.parametrize(("query", "matches"), rows("matches"))
def test_a_pattern(query: str, matches: str) -> None:
    parameters = {"most": 10} if "$most" in query else None
    if not query.startswith("PATTERN"):
        query = f"PATTERN {query} WITHIN 9"
    assert uc.match(table(), query, parameters=parameters).num_rows == int(matches)


# A comparison with NULL is shown as what it is.
@pytest.mark.filterwarnings("ignore:.*is never true")
def test_values() -> None:
    examples = rows("value")
    items = ", ".join(f"{text} AS r{number}" for number, (text, _) in enumerate(examples))
    events = table()
    (row,) = uc.match(events, f"PATTERN SEQ(A a, B b) WHERE b.x = 4 WITHIN 9 RETURN {items}").to_pylist()
    for number, (text, value) in enumerate(examples):
        expected = literal_eval(value)
        assert (row[f"r{number}"], type(row[f"r{number}"])) == (expected, type(expected)), text


def test_nothing_is_missing() -> None:
    words = set(re.findall(r"\w+", PAGE))
    for name in (*FUNCTIONS, *ALIASES):
        assert name.upper() in words, name
    for function in FUNCTIONS.values():
        assert f"`{function.written}`" in PAGE
    for part in DATE_PARTS:
        assert part in words
    for kind in ("BIGINT", "DOUBLE", "VARCHAR", "BOOLEAN"):
        assert kind in words
        assert kind.lower() in TYPES
    for sign in OPERATOR_SIGNS.values():
        assert f"`{sign}`" in PAGE or sign == "-", sign
    for written in (*get_args(SelectionStrategy), *get_args(get_type_hints(Aggregate)["function"])):
        assert written in words
    for clause in CLAUSES:
        assert f"| `{clause}" in PAGE
    for terminal, word in WORDS.items():
        if word.isupper() and word.isalpha():
            assert terminal in words, terminal
