"""Every key of a schema has an effect, or is refused: no value is taken without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

import uncertain_cep as uc
from tests.traces.files import put, schema_of
from uncertain_cep.errors import TraceError, UncertainCepWarning
from uncertain_cep.traces.schema_document import _EVENTS, _TOP

WRONG = {
    "format": ['""', "[]", "1", '"nosuch"'],
    "tick": ['""', "[]", "1", '"nosuch"'],
    "zone": ['""', "[]", "1", "true", '"nosuch"', '"Mars/Olympus"', '"+25:00"'],
    "delimiter": ['""', "[]", "1", '";;"'],
    "nulls": ['""', "[]", "1", "[1]", '"NA"'],
    "columns": ['""', "[]", "1", "[1]", '[""]', '"host"', '["a", "a"]'],
    "columns_by": ['""', "[]", "1", "{}", '{ nosuch = { A = ["x"] } }'],
    "explode": ['""', "[]", "1", "[1]", '"nosuch"', '["nosuch"]', '"n"', '["l", "nosuch"]'],
    "file_column": ['""', "[]", "1", '"host"'],
    "folder_column": ['""', "[]", "1", '"host"'],
    "continuation": ['""', "[]", "1", "true", '"("'],
    "templates": ['""', "[]", "1", "{}", '{ n = "x" }', '{ n = { A = "<**> x" } }', '{ n = { A = "" } }'],
    "encoding": ['""', "[]", "1", '"nosuch"', '"base64"'],
    "skip_rows": ['"3"', "[]", "0", "-1", "true"],
    "record_begin": ['""', "[]", "1", "false", '"("'],
    "deduplicate": ['""', "[]", "1", '"true"'],
    "types": ['""', "[]", "1", '{ n = "nosuch" }', '{ nosuch = "int" }'],
    "extract": ['""', "[]", "1", "{ host = [] }", '{ host = "nosuch" }', '{ nosuch = "(?P<a>x)" }'],
    "constraints": ['""', "[]", "1", "{}", '[{ causal = "nosuch" }]', "[{}]"],
    "events": ['""', "[]", "1", "{}", "[{}]"],
    "files": ['""', "[]", "1", '"nosuch"'],
    "type": ['""', "[]", "1", "{}"],
    "type_column": ['""', "[]", "1", '"nosuch"'],
    "id": ['""', "[]", "1", '"nosuch"', '"{nosuch}"'],
    "time": ['""', "[]", "1", '"nosuch"', '["nosuch"]', '["at", "nosuch"]', '"at + nosuch"', '"at + n"'],
    "begin": ['""', "[]", "1", '"nosuch"', '"at"', '"at +"'],
    "end": ['""', "[]", "1", '"nosuch"', '"at"', '"at +"'],
    "duration": ['""', "[]", "1", '"nosuch"', '"n"'],
    "unit": ['""', "[]", "1", '"nosuch"'],
    "where": ['""', "[]", "1", '"nosuch = 1"', '"n ="'],
    "attributes": ['""', "1", "[1]", '[""]', '"host"', '["nosuch"]', "{ a = 1 }", '{ a = "nosuch" }'],
    "uncertainty": [
        '""', "[]", "1", "{}", '{ kind = "nosuch" }', '{ kind = "exact", by = "1s" }',
        '{ kind = "plus_minus" }',
        '{ kind = "plus_minus", by = [] }', '{ kind = "window", length = "1s", source = "nosuch" }',
        '{ kind = "columns", lower = "at", upper = "nosuch" }', '{ kind = "histogram", pmf = "nosuch" }',
        '{ kind = "clock_offset", table = "nosuch.csv" }',
    ],
    "uncertainty_by": ['""', "[]", "1", "{}", "{ host = {} }", '{ nosuch = { "*" = { kind = "exact" } } }'],
    "missing": ['""', "[]", "1", '"nosuch"'],
    "time_format": ['""', "[]", "1", "[1]", '[""]', '"nosuch"', '["iso", "nosuch"]'],
    "year": ['""', "[]", '"2015"', "1", "true", "2015.5", "2015"],
    "date": ['""', "[]", '"nosuch"', "1", "true", "2015-10-17"],
    "fixed_date": ['""', "[]", "1", "true"],
    "time_zone": ['""', "[]", "1", '"nosuch"'],
    "value_columns": ['""', "[]", "1", "{}", '["nosuch"]', '["n", "nosuch"]', '["n", "nosuch*"]'],
    "probability": ['""', "[]", "1", '"nosuch"', '"host"'],
    "sequence": ['""', "[]", "1", '"nosuch"', '"host"'],
    "source": ['""', "[]", "1", '"nosuch"'],
    "ordered": ['""', "[]", "1", '"true"'],
    "optional": ['""', "[]", "1", '"true"'],
    "spans": ['""', "[]", "1", '"true"', "true"],
}  # fmt: skip
"""Values of each key that are of the wrong type, that name nothing, or that name what is not there."""

SAID = {
    ("types", '{ nosuch = "int" }'),
    ("extract", '{ nosuch = "(?P<a>x)" }'),
    ("value_columns", '["n", "nosuch"]'),
    ("value_columns", '["n", "nosuch*"]'),
}
"""What a file of another day may have: it is warned of."""
ROW = '{"type": "A", "at": "2026-01-05 08:00:00", "host": "h", "n": 1, "l": [1]}\n'
EVENTS = {"type_column": '"type"', "time": '"at"', "uncertainty": '{ kind = "exact" }'}


def schema_text(key: str, value: str) -> str:
    """Return a schema in which a key has a value, at the top if it belongs there."""
    events = dict(EVENTS)
    top = f"{key} = {value}\n" if key in _TOP else ""
    if key == "events":
        return top
    if key in _EVENTS and key != "types":
        if key == "type":
            events.pop("type_column")
        if key == "uncertainty_by":
            events.pop("uncertainty")
        if key == "source":
            events["ordered"] = "true"
        events[key] = value
    return f"{top}[[events]]\n" + "".join(f"{name} = {setting}\n" for name, setting in events.items())


def test_all_keys_are_swept() -> None:
    assert set(WRONG) == {*_TOP, *_EVENTS}


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in WRONG.items() for value in values]
)
def test_a_value_without_effect_is_refused(tmp_path: Path, key: str, value: str) -> None:
    path = put(tmp_path / "t.jsonl", ROW)
    text = schema_text(key, value)
    if (key, value) in SAID:
        with pytest.warns(UncertainCepWarning) as caught:
            uc.read_traces(path, schema_of(tmp_path, text))
        said = str(caught[0].message)
    else:
        with pytest.raises(TraceError) as error:
            uc.read_traces(path, schema_of(tmp_path, text))
        said = str(error.value)
    # The message names the key, or what its value names.
    assert key in said or "nosuch" in said or "'n'" in said or "'host'" in said


def test_types_of_tables_of_events_are_swept(tmp_path: Path) -> None:
    path = put(tmp_path / "t.jsonl", ROW)
    for value in ('""', "[]", "1", '{ n = "nosuch" }', '{ nosuch = "int" }'):
        events = schema_text("ordered", "true").replace("ordered = true", f"types = {value}")
        with pytest.raises(TraceError, match="types"):
            uc.read_traces(path, schema_of(tmp_path, events))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('time_format = "epoch_s"\ntime_zone = "Europe/Berlin"', "time_zone: has no effect on numbers"),
        ('unit = "s"\ntime_zone = "Europe/Berlin"', "time_zone: has no effect on numbers"),
        ('time_format = "%Y-%m-%d"\nyear = 2015', "year: has no effect, as time_format tells it"),
        ('time_format = "%Y-%m-%d %H:%M"\ndate = 2015-10-17', "date: has no effect, as time_format tells it"),
        ("year = 2015", "year: has no effect, as ISO 8601 tells it"),
    ],
)
def test_keys_that_have_no_effect_together(tmp_path: Path, keys: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        schema_of(tmp_path, schema_text("ordered", "true").replace("ordered = true", keys))


def test_a_list_that_some_file_has_may_be_absent_in_others(tmp_path: Path) -> None:
    put(tmp_path / "in" / "a.jsonl", ROW)
    put(tmp_path / "in" / "b.jsonl", ROW.replace(', "l": [1]', ""))
    text = 'explode = "l"\n' + schema_text("attributes", "[]")
    assert uc.read_traces(tmp_path / "in", schema_of(tmp_path, text)).num_rows == 2
    with pytest.raises(TraceError, match=r"explode: no file has a list 'm'; there are at, host, l, n, type"):
        uc.read_traces(tmp_path / "in", schema_of(tmp_path, text.replace('"l"', '"m"')))
