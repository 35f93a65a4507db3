"""Expressions with functions, drawn at random: each as our language and as DuckDB write it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies as st

from tests.cases.sampling import sampled_from

Kind = Literal["int", "float", "string", "bool", "time", "duration"]


@dataclass(frozen=True, slots=True)
class Drawn:
    """An expression; ``duck`` is what DuckDB is asked."""

    text: str
    duck: str


def same(text: str) -> Drawn:
    """Return the part that both write alike."""
    return Drawn(text, text)


def filled(pattern: str, *parts: Drawn, duck: str | None = None) -> Drawn:
    """Return an expression whose operands, in parentheses, stand in the places of ``{}``."""
    text = pattern.format(*(part.text for part in parts))
    return Drawn(text, (duck or pattern).format(*(part.duck for part in parts)))


COLUMNS: dict[Kind, tuple[str, ...]] = {
    "int": ("x", "w"), "float": ("y",), "string": ("s", "t"), "bool": ("f",), "time": ("ts",), "duration": (),
}  # fmt: skip
STRINGS = [
    "",
    "a",
    "ab",
    "Ab",
    "a%b",
    "a_b",
    " a ",
    "12",
    "2.5",
    "true",
    "é",
    "ÉA",
    "ß",
    "a.b",
    "it''s",
    "a!b",
]
PATTERNS = ["a%", "%b", "_b", "%", "", "A_", "%.%", "É%", "a!%b"]
REGEXES = ["^a", "b$", "a.b", "[a-c]+", "(a)(b)?", "(?i)AB", "\\\\d+", "^$"]
# Per kind of the result: the pattern, the kinds of its operands, and how DuckDB writes it if otherwise.
MIXING: dict[Kind, list[tuple[Any, ...]]] = {
    "int": [
        ("({} + {})", "int", "int"), ("({} - {})", "int", "int"), ("ABS({})", "int"), ("SIGN({})", "float"),
        ("CAST({} AS BIGINT)", "float", "TRY_CAST({} AS BIGINT)"), ("CAST({} AS BIGINT)", "bool"),
        ("ROUND({}, 2)", "int"), ("LEAST({}, {}, {})", "int", "int", "int"),
        ("GREATEST({}, {})", "int", "int"), ("HOUR({})", "time"), ("DAYOFWEEK({})", "time"),
    ],
    "float": [
        ("({} * {})", "float", "float"), ("ABS({})", "float"), ("FLOOR({})", "float"), ("CEIL({})", "float"),
        ("ROUND({})", "float"), ("ROUND({}, 1)", "float"), ("ROUND({}, -1)", "float"),
        ("SQRT({})", "float", "clean(SQRT({}))"), ("LN({})", "float", "clean(LN({}))"), ("EXP({})", "float"),
        ("POWER({}, 2)", "float"), ("POWER({}, {})", "float", "int", "clean(POWER({}, {}))"),
        ("CAST({} AS DOUBLE)", "int"), ("LEAST({}, {})", "float", "float"),
        ("GREATEST({}, {}, {})", "float", "float", "float"),
    ],
    "string": [],
    "bool": [
        ("({} AND {})", "bool", "bool"), ("({} OR {})", "bool", "bool"), ("(NOT {})", "bool"),
        ("({} < {})", "float", "float"), ("({} >= {})", "int", "int"), ("({} = {})", "string", "string"),
        ("({} < {})", "string", "string"), ("({} <= {})", "time", "time"), ("({} != {})", "int", "int"),
        ("({} > {})", "duration", "duration"), ("({} IS NULL)", "float"), ("({} IS NOT NULL)", "string"),
        ("({} IN ({}, {}, NULL))", "int", "int", "int"),
        ("({} NOT IN ({}, {}))", "string", "string", "string"),
        ("({} BETWEEN {} AND {})", "float", "float", "float"),
        ("({} NOT BETWEEN {} AND {})", "string", "string", "string"), ("CAST({} AS BOOLEAN)", "int"),
        ("CONTAINS({}, {})", "string", "string"), ("STARTS_WITH({}, {})", "string", "string"),
        ("({} LIKE {})", "string", "string"), ("({} NOT ILIKE {})", "string", "string"),
    ],
    "time": [
        ("({} + {})", "time", "duration"), ("({} - {})", "time", "duration"),
        *((f"DATE_TRUNC('{part}', {{}})", "time") for part in ("second", "hour", "day", "week")),
    ],
    "duration": [("({} - {})", "time", "time")],
}  # fmt: skip
CHOOSING = [
    ("(CASE WHEN {} THEN {} WHEN {} THEN {} END)", "bool", "", "bool", ""),
    ("(CASE WHEN {} THEN {} ELSE {} END)", "bool", "", ""), ("COALESCE({}, {})", "", ""),
    ("NULLIF({}, {})", "", ""),
]  # fmt: skip
OF_ONE_EVENT: dict[Kind, list[tuple[Any, ...]]] = {
    "int": [("LENGTH({})", "string")],
    "float": [("CAST({} AS DOUBLE)", "string", "clean(TRY_CAST({} AS DOUBLE))")],
    "string": [
        ("LOWER({})", "string"), ("UPPER({})", "string"), ("TRIM({})", "string"),
        ("SUBSTRING({}, 2)", "string"), ("SUBSTRING({}, -2, 1)", "string"), ("SUBSTRING({}, 0, 2)", "string"),
        ("SUBSTRING({}, -3, 5)", "string"), ("SUBSTRING({}, 3, 0)", "string"),
        ("CONCAT({}, '-', {})", "string", "int"), ("CONCAT({}, {})", "string", "string"),
        ("REPLACE({}, 'a', 'xy')", "string"), ("REPLACE({}, '', 'b')", "string"),
        ("REGEXP_EXTRACT({}, '[a-b]+')", "string"), ("REGEXP_EXTRACT({}, '(a)(b)?', 2)", "string"),
        ("CAST({} AS VARCHAR)", "int"), ("CAST({} AS VARCHAR)", "float"), ("CAST({} AS VARCHAR)", "bool"),
    ],
    "bool": [
        ("STARTS_WITH({}, 'a')", "string"), ("CONTAINS({}, 'b')", "string"),
        ("({} LIKE 'a!%%' ESCAPE '!')", "string"),
        ("CAST({} AS BOOLEAN)", "string", "TRY_CAST({} AS BOOLEAN)"),
    ],
    "time": [
        (f"DATE_TRUNC('{part}', {{}})", "time")
        for part in ("minute", "week", "month", "quarter", "year")
    ],
    "duration": [],
}  # fmt: skip


def literals(kind: Kind) -> st.SearchStrategy[Drawn]:
    """Draw a constant."""
    if kind == "int":
        return st.integers(-3, 12).map(lambda value: same(f"({value})"))
    if kind == "float":
        return sampled_from(["0.5", "2.5", "-1.5", "0.0", "100.25", "-2.0"]).map(
            lambda text: Drawn(f"({text})", f"({text}::DOUBLE)")
        )
    if kind == "string":
        return sampled_from(STRINGS).map(lambda text: same(f"'{text}'"))
    if kind == "bool":
        return sampled_from(["TRUE", "FALSE"]).map(same)
    if kind == "time":
        return sampled_from(["2024-05-01 10:00:00", "2024-02-29 23:59:59.5"]).map(
            lambda text: same(f"TIMESTAMP '{text}'")
        )
    return sampled_from(["90 minutes", "3 days", "500 ms"]).map(
        lambda text: Drawn(text, f"INTERVAL '{text}'")
    )


@st.composite
def expressions(draw: st.DrawFn, kind: Kind, variables: tuple[str, ...], depth: int) -> Drawn:
    """Draw an expression over the attributes of some events."""
    choice = draw(st.integers(0, 9))
    if depth > 0 and choice < 2:
        chosen: tuple[Any, ...] = draw(sampled_from(CHOOSING))
        kinds: list[Kind] = [part or kind for part in chosen[1:]]
        return filled(chosen[0], *(draw(expressions(part, variables, depth - 1)) for part in kinds))
    if depth > 0 and choice < 5 and OF_ONE_EVENT[kind]:
        return _applied(draw, draw(sampled_from(OF_ONE_EVENT[kind])), (draw(sampled_from(variables)),), depth)
    if depth > 0 and choice == 5 and kind == "bool":
        text = draw(expressions("string", (draw(sampled_from(variables)),), depth - 1))
        sign = draw(sampled_from(["LIKE", "ILIKE", "NOT LIKE", "REGEXP"]))
        pattern = draw(sampled_from(REGEXES if sign == "REGEXP" else PATTERNS))
        duck = "regexp_matches({}, '" + pattern + "')" if sign == "REGEXP" else None
        return filled("({} " + sign + " '" + pattern + "')", text, duck=duck)
    if depth > 0 and choice < 8 and MIXING[kind]:
        return _applied(draw, draw(sampled_from(MIXING[kind])), variables, depth)
    if choice == 8 or not COLUMNS[kind]:
        return draw(literals(kind))
    return same(f"{draw(sampled_from(variables))}.{draw(sampled_from(COLUMNS[kind]))}")


def _applied(draw: st.DrawFn, form: tuple[Any, ...], variables: tuple[str, ...], depth: int) -> Drawn:
    pattern, *parameters = form
    count = pattern.count("{}")
    kinds: list[Kind] = list(parameters[:count])
    parts = [draw(expressions(kind, variables, depth - 1)) for kind in kinds]
    return filled(pattern, *parts, duck=parameters[count] if len(parameters) > count else None)
