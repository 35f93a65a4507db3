"""Flat JSON lines read by a kernel: the table that Arrow makes of them, or none."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from uncertain_cep.traces import flat_json
from uncertain_cep.traces.flat_json import flat_table
from uncertain_cep.traces.json_files import _arrow_table

_NAMES = st.sampled_from(["a", "b", "time", "a b", 'a"', "é"])
_KINDS = (
    ("1", "-7", "0", "123456789012345678", "null"),
    ("1", "2.5", "-0.25", "0.1", "12345678.87654321", "null"),
    ('"a"', '"b c"', '""', '"é𝄞"', "null", '"2024-05-31"'),
    ('"2024-05-31"', '"2024-06-01"', "null"),
    ('"2024-05-31T10:00:00"', '"2024-05-31 10:00"', '"2024-05-31"', "null"),
    ('"2024-05-31T10:00:00Z"', '"2024-05-31T10:00:00+02:00"', '"2024-05-31T10:00:00"', "null"),
    ("true", "false", "null"),
    (r'"a\nb"', r'"\\n\\\\n"', r'"\"\/\b\f\r\t"', r'"\u0000é\u00e9\ud834\udd1e\\u0041"', '"b"', "null"),
    (r'"2024\u002d05-31"', r'"2024-05-31"', r'"2024-05-31\n"', "null"),
    ("null",),
    ("9223372036854775807", "-9223372036854775808", "9223372036854775808", "9007199254740993", "-0", "-0.0"),
    ("1e5", "1E-3", "0.30000000000000004", "1.7976931348623157e308", "3.141592653589793238"),
    (r'"\ud834"', r'"\x"', r'"\u12"', r'"\u12g4"', '"x\x01"', "[]", "[1]", "{}", '{"q":1}'),
    ("01", "1.", ".5", "nul", '"', "NaN", "tru", "-", "+1"),
)


@st.composite
def _lines(draw: st.DrawFn) -> tuple[bytes, list[pa.Field]]:
    names = draw(st.lists(_NAMES, min_size=1, max_size=4, unique=True))
    usual = st.integers(0, 8)
    kinds = {name: _KINDS[draw(usual if draw(st.integers(0, 9)) else st.integers(0, 13))] for name in names}
    space = draw(st.sampled_from(["", "", " ", "\t"]))
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 5))):
        present = names
        if lines and not draw(st.integers(0, 4)):
            present = draw(st.permutations(names))[: draw(st.integers(0, len(names)))]
        if present and not draw(st.integers(0, 30)):
            present = [*present, present[0]]
        pairs = [
            f"{json.dumps(name, ensure_ascii=False)}{space}:{space}{draw(st.sampled_from(kinds[name]))}"
            for name in present
        ]
        lines.append(f"{space}{{{space}{f'{space},'.join(pairs)}{space}}}{space}")
        if not draw(st.integers(0, 19)):
            lines.append(draw(st.sampled_from(["", " ", "null", "x", '{"a":1}{"a":2}', "\r"])))
    text = draw(st.sampled_from(["\n", "\n", "\r\n"])).join(lines) + draw(st.sampled_from(["\n", ""]))
    return text.encode(), [pa.field(name, pa.string()) for name in names if not draw(st.integers(0, 3))]


@given(_lines(), st.sampled_from([1, 20, 1 << 21]))
def test_rows_are_those_of_arrow(drawn: tuple[bytes, list[pa.Field]], size: int) -> None:
    block, fields = drawn
    before, flat_json._SLICE = flat_json._SLICE, size  # type: ignore[misc]
    try:
        table = flat_table(block, fields, _arrow_table)
    finally:
        flat_json._SLICE = before  # type: ignore[misc]
    event("left to Arrow" if table is None else "read")
    if table is None:
        return
    expected = _arrow_table(block, fields)
    table.validate(full=True)
    assert table.schema == expected.schema
    assert table.equals(expected)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**63), 2**63 - 1))
def test_numbers_are_those_of_arrow(number: float, whole: int) -> None:
    block = (
        f'{{"a":{number!r},"b":{whole},"c":{round(number % 1e6, 3)!r}}}\n{{"a":1.5,"b":0,"c":0.5}}\n'.encode()
    )
    table = flat_table(block, [], _arrow_table)
    if table is not None:
        assert table.equals(_arrow_table(block, []))


@pytest.mark.parametrize(
    ("line", "value"),
    [('{"a":1}', 1), ('{"a":-1.25}', -1.25), ('{"a":"x"}', "x"), ('{"a":true}', True), ('{"a":null}', None)],
)
def test_usual_lines_are_read_here(line: str, value: Any) -> None:
    table = flat_table(f"{line}\n{{}}\n".encode(), [], _arrow_table)
    assert table is not None
    assert table.column("a").to_pylist() == [value, None]
