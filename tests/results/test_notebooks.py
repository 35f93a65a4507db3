"""Results in notebooks need no `show`, and reprs are short."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.needs import lacking
from uncertain_cep.results.notebooks import show_matches

try:
    from IPython.core.formatters import DisplayFormatter
except ModuleNotFoundError:
    lacking("packages", "no IPython: install the extra docs", whole_file=True)

EVENTS = pa.table(
    {"type": ["A", "B", "B"], "id": [7, 8, 9], "lower": [1, 3, 8], "upper": [4, 4, 9], "host": ["<b>"] * 3}
)
QUERY = "PATTERN SEQ(A a, B b) WITHIN 9"


def shown(value: object) -> dict[str, str]:
    """Return the forms of a value that a notebook gets."""
    formatter = DisplayFormatter()
    show_matches(formatter)
    data, _ = formatter.format(value)  # type: ignore[no-untyped-call]
    return dict(data)


def test_matches_are_a_table_without_show() -> None:
    data = shown(uc.match(EVENTS, f"{QUERY} RETURN a.host"))
    page = uc.show(uc.match(EVENTS, f"{QUERY} RETURN a.host"))
    assert data == {"text/html": page._repr_html_(), "text/plain": repr(page)}
    assert "&lt;b&gt;" in data["text/html"]
    assert "certain" in data["text/plain"]


def test_groups_and_counts_are_tables() -> None:
    data = shown(uc.match(EVENTS, f"{QUERY} RETURN PROBABILITY BY b"))
    assert data["text/plain"].splitlines()[0] == "2 groups"
    assert "<table>" in shown(uc.match(EVENTS, f"{QUERY} RETURN EXPECTED COUNT"))["text/html"]
    hundred = pa.table({"host": range(100), "probability": [0.5] * 100})
    assert shown(hundred)["text/plain"].startswith("the first 20 of 100 groups\n")


@pytest.mark.parametrize(
    "table", [EVENTS, EVENTS.append_column("probability", pa.array([0.5] * 3)), pa.table({"x": [1]})]
)
def test_other_tables_stay_as_they_are(table: pa.Table) -> None:
    assert shown(table) == {"text/plain": repr(table)}


def test_without_a_session_nothing_happens() -> None:
    show_matches()


MANY = range(500)
MADE: dict[str, Any] = {
    "query": uc.parse(f"PATTERN SEQ({', '.join(f'A a{n}' for n in range(150))}) WITHIN 5"),
    "rules": uc.rules({f"rule {n}": QUERY for n in MANY}),
    "clock": uc.clock_offset({f"h{n}": (-5, 5) for n in MANY}, unit="tick", shared=True),
    "by value": uc.by_value("type", {f"t{n}": uc.exact() for n in MANY}),
    "constraint": uc.causal("SEQ(A a, B b) WHERE a.x = b.x"),
    "schemas": [
        uc.load_schema(uc.examples.folder(name) / "schema.toml") for name in ("cluster", "yahoo_hadoop")
    ],
    "matcher": uc.IncrementalMatcher(QUERY, EVENTS.schema),
    "names": uc.Names(),
    "estimate": uc.Approximation(std_error=0.1, seed=1),
    "report": uc.report(EVENTS, QUERY),
    "matches": uc.match(EVENTS, QUERY),
}


@pytest.mark.parametrize("name", MADE)
def test_reprs_are_short(name: str) -> None:
    assert 0 < len(repr(MADE[name])) < 1000


def test_completion_offers_what_is_public() -> None:
    assert dir(uc) == sorted(uc.__all__)
    assert {"match", "show", "plot", "TraceError"} <= set(dir(uc))
    assert not [name for name in dir(uc) if name.startswith("_") and name != "__version__"]
