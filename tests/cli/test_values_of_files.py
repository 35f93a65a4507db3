"""Numbers, codes, zones and local times of files mean the same on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

SCHEMA = (
    'tick = "{tick}"\n{top}\n[[events]]\ntype_column = "what"\ntime = "at"\n{keys}\nuncertainty = {rule}\n'
)
ORDER = "PATTERN SEQ(A a, B b) WITHIN 3 h"
LONG = 14512345678901234567


def schema(keys: str = "", top: str = "", tick: str = "1s", rule: str = '{ kind = "exact" }') -> str:
    return SCHEMA.format(tick=tick, top=top, keys=keys, rule=rule)


CASES: dict[str, tuple[str, str, str, str, int, str]] = {
    "trace ids in CSV": (
        "t.csv",
        f"what,at,k\nA,2026-01-05 08:00:00,{LONG}\nB,2026-01-05 08:00:01,{LONG + 1}\n",
        schema(), "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 3 h", 0, "",
    ),
    "trace ids in JSON": (
        "t.jsonl",
        f'{{"what":"A","at":"2026-01-05T08:00:00","k":{LONG}}}\n'
        f'{{"what":"B","at":"2026-01-05T08:00:01","k":{LONG + 1}}}\n',
        schema(), "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 3 h", 0, "",
    ),
    "codes": (
        "t.csv", "what,at,k\nA,2026-01-05 08:00:00,08\nB,2026-01-05 08:00:01,8\n",
        schema(), "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 3 h", 0, "",
    ),
    "float stamps": (
        "t.jsonl", '{"at":1000.123,"what":"A"}\n{"at":1000.456,"what":"B"}\n',
        schema('unit = "us"', tick="1ns"), ORDER, 1, "",
    ),
    "zones of JSON": (
        "t.jsonl", '{"at":"2026-05-31T10:00:00+02:00","what":"A"}\n{"at":"2026-05-31T09:00:00","what":"B"}\n',
        schema(), ORDER, -1, "row 2, column 'at', value '2026-05-31T09:00:00': it has no time zone",
    ),
    "UTC": (
        "t.csv", "what,at\nA,2026-01-05 08:00:00 UTC\nB,2026-01-05 08:00:01 UTC\n", schema(), ORDER, 1, "",
    ),
    "the hour that clocks show twice": (
        "t.log", "2026-10-25 02:59:00 B\n2026-10-25 02:10:00 A\n",
        schema('time_zone = "Europe/Berlin"', "[extract]\nline = '^(?P<at>\\S+ \\S+) (?P<what>\\w)'"),
        ORDER, 0,
        "2 stamps of at stand for two times, as clocks of Europe/Berlin were set back: the order of the rows",
    ),
    "days that change": (
        "t.csv", "what,at\nB,05:00\nA,23:00\n", schema('time_format = "%H:%M"\ndate = 2026-01-05'), ORDER, 0,
        "at: the day changes 1 time from one row to the next, from 2026-01-04 to 2026-01-05",
    ),
    "indented lines": (
        "t.log", "  2026-01-05T08:00:00 A\n  2026-01-05T08:00:01 B\n",
        schema("", "[extract]\nline = '^ +(?P<at>\\S+) (?P<what>\\w)'"), ORDER, 0,
        "1 line that fits an expression of [extract] went on with the line before",
    ),
    "a list that is not there": (
        "t.jsonl", '{"at":"2026-01-05T08:00:00","what":"A"}\n', schema("", 'explode = "nosuch"'), ORDER, -1,
        "explode: no file has a list 'nosuch'; there are at, what",
    ),
}  # fmt: skip
"""A file and its text, a schema, a query, how many matches (-1: an error), and what is said."""


@pytest.mark.parametrize("case", CASES)
def test_match_and_validate(invoke: Invoke, tmp_path: Path, case: str) -> None:
    name, text, schema_text, query, matches, said = CASES[case]
    trace, schema_path = tmp_path / name, tmp_path / "schema.toml"
    trace.write_text(text)
    schema_path.write_text(schema_text)
    result = invoke("match", query, trace, "--schema", schema_path)
    assert said in result.output
    assert (result.exit_code == 0) == (matches >= 0)
    if matches >= 0:
        # One line names the columns.
        assert len(result.stdout.splitlines()) == matches + 1
    checked = invoke("validate", trace, "--schema", schema_path)
    assert said in checked.output
