"""Random expressions: how they are written, and what reading them must give."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.cases.sampling import sampled_from
from uncertain_cep.query.expression_text import quote_name

_LOOSEST, _TIGHTEST = 0, 7
_CASES = (str.upper, str.lower, str.title)
_GAPS = sampled_from([" ", "  ", "\n", "\t", " -- note\n", "\n-- 'note\n "])


@dataclass(frozen=True, slots=True)
class Written:
    """A text, what `tests.query.dump.dump` makes of it, and how tightly its outermost operator binds."""

    text: str
    meaning: str
    binding: int


names = sampled_from(["x", "nodeId", "type", "limit", "Größe", "and", "CpuUsageRate(%)", "a`b", "i"])


@st.composite
def _attributes(draw: st.DrawFn) -> Written:
    variable, name = draw(sampled_from(["a", "b", "count"])), draw(names)
    return Written(f"{variable}.{quote_name(name)}", f"{variable}.{name}", _TIGHTEST)


@st.composite
def _strings(draw: st.DrawFn) -> Written:
    value = draw(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=6))
    quote = draw(sampled_from("'\""))
    return Written(quote + value.replace(quote, quote * 2) + quote, repr(value), _TIGHTEST)


def _number(value: float) -> Written:
    return Written(repr(value), repr(value), 6 if repr(value).startswith("-") else _TIGHTEST)


@st.composite
def _constants(draw: st.DrawFn) -> Written:
    word, value = draw(sampled_from([("true", True), ("false", False), ("null", None)]))
    return Written(draw(sampled_from(_CASES))(word), repr(value), _TIGHTEST)


_percents = st.integers(0, 400).map(lambda n: Written(f"{n}%", repr(n / 100), _TIGHTEST))

leaves = st.one_of(
    _attributes(),
    _strings(),
    st.integers(-(2**63), 2**63).map(_number),
    st.floats(allow_nan=False, allow_infinity=False).map(_number),
    _constants(),
    _percents,
)

_BINARY = {
    **dict.fromkeys(["or"], (1, True)),
    **dict.fromkeys(["and"], (2, True)),
    **dict.fromkeys(["=", "!=", "<", "<=", ">", ">="], (4, False)),
    **dict.fromkeys(["+", "-"], (5, True)),
    **dict.fromkeys(["*", "/", "%"], (6, True)),
}
_OTHER_SIGNS = {"=": ["=", "=="], "!=": ["!=", "<>"]}


@st.composite
def _combined(draw: st.DrawFn, parts: st.SearchStrategy[Written]) -> Written:
    operator = draw(sampled_from([*_BINARY, "not", "minus"]))
    if operator == "not":
        operand = _bracketed(draw, draw(parts), 3)
        sign = draw(sampled_from(_CASES))("not")
        return Written(f"{sign}{draw(_GAPS)}{operand.text}", f"(not {operand.meaning})", 3)
    if operator == "minus":
        # Of an attribute: a minus before a number makes a negative number.
        operand = draw(_attributes())
        return Written(f"-{operand.text}", f"(- {operand.meaning})", 6)
    binding, chains = _BINARY[operator]
    left = _bracketed(draw, draw(parts), binding if chains else binding + 1)
    right = _bracketed(draw, draw(parts), binding + 1)
    sign = draw(sampled_from(_OTHER_SIGNS.get(operator, [operator])))
    if operator in ("and", "or"):
        sign = draw(sampled_from(_CASES))(sign)
    meanings = [left.meaning, right.meaning]
    if operator in ("and", "or"):
        meanings = [_inside(meaning, operator) for meaning in meanings]
    text = f"{left.text}{draw(_GAPS)}{sign}{draw(_GAPS)}{right.text}"
    return Written(text, f"({operator} {' '.join(meanings)})", binding)


def _inside(meaning: str, operator: str) -> str:
    return meaning[len(operator) + 2 : -1] if meaning.startswith(f"({operator} ") else meaning


def _bracketed(draw: st.DrawFn, written: Written, loosest: int) -> Written:
    if written.binding >= loosest and draw(st.integers(0, 4)):
        return written
    return Written(f"({written.text})", written.meaning, _TIGHTEST)


expressions: st.SearchStrategy[Written] = st.recursive(leaves, _combined, max_leaves=12)
