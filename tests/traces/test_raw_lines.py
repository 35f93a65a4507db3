"""Ids that name a row lead to the line that it stands in, with its neighbours."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.cli.conftest import Invoke, invoke
from tests.reporting.pages import data_of
from uncertain_cep.traces.file_options import FileOptions
from uncertain_cep.traces.raw_lines import rows_around, rows_named, text_files
from uncertain_cep.traces.schema import given_schema

__all__ = ["invoke"]

EVENTS = '[[events]]\ntype = "A"\nid = "place"\ntime = "t"\nunit = "s"\nuncertainty = { kind = "exact" }\n'
TEXTS = st.text(st.sampled_from("x \"',\n;"), max_size=4)


@FEWER
@given(
    st.lists(st.tuples(st.integers(0, 99), TEXTS), min_size=1, max_size=9), st.sampled_from(["csv", "jsonl"])
)
def test_each_row_is_found_again(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, str]], kind: str
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    file, schema = folder / f"a:1.{kind}.gz", folder / "schema.toml"
    with gzip.open(file, "wt", newline="") as out:
        if kind == "csv":
            csv.writer(out).writerows([("t", "k"), *rows])
        else:
            out.writelines(json.dumps({"t": t, "k": k}) + "\n\n" for t, k in rows)
    schema.write_text(EVENTS + 'attributes = ["k"]\n')
    table = uc.read_traces(file, schema)
    options = FileOptions()
    files = text_files([str(file)], options)
    named = rows_named(table["id"].to_pylist(), files, given_schema(schema))
    assert named == [(str(file), row) for row in range(1, len(rows) + 1)]
    texts = rows_around([place for place in named if place], files, options, 0, 1000)
    for place, (t, k) in zip(named, rows, strict=True):
        assert place is not None
        if kind == "csv":
            assert next(csv.reader(io.StringIO(texts[place], newline=""))) == [str(t), k]
        else:
            assert json.loads(texts[place]) == {"t": t, "k": k}


def test_neighbours_and_long_lines(tmp_path: Path) -> None:
    file = tmp_path / "app.log"
    file.write_text("".join(f"line {number} {'x' * number * 100}\n" for number in range(1, 7)))
    files = text_files([str(file)], FileOptions())
    texts = rows_around([(str(file), 2), (str(file), 9)], files, FileOptions(), 1, 150)
    assert [(row, len(text)) for (_, row), text in texts.items()] == [(1, 107), (2, 151), (3, 151)]
    file.unlink()
    assert rows_around([(str(file), 2)], files, FileOptions(), 1, 150) == {}


def test_other_ids_name_no_row(tmp_path: Path) -> None:
    schema = tmp_path / "schema.toml"
    schema.write_text(EVENTS)
    ids = ["a.log:1", "a.log:2:Begin", "a.log:x", "a.log", "b.log:1", "a.log:", 7, None]
    assert rows_named(ids, ["a.log", "a"], given_schema(schema)) == [("a.log", 1), ("a.log", 2), *[None] * 6]
    assert rows_named(ids, ["a.log"], None) == [None] * 8
    schema.write_text(EVENTS.replace('"place"', '"name"'))
    assert rows_named(ids, ["a.log"], given_schema(schema)) == [None] * 8


def test_the_page_of_the_command_has_them(tmp_path: Path, invoke: Invoke) -> None:
    file, schema, page = tmp_path / "app.log", tmp_path / "schema.toml", tmp_path / "page.html"
    lines = [f"2024-05-31 10:00:0{second} INFO </script>{second}" for second in range(5)]
    file.write_text("\n".join([lines[0], "  more of it", *lines[1:]]) + "\n")
    form = "'^(?P<t>[0-9-]+ [0-9:]+) (?P<level>[A-Z]+) (?P<message>.*)$'"
    schema.write_text(f"[extract]\nline = {form}\n" + EVENTS.replace('unit = "s"\n', ""))
    where = "STARTS_WITH(a.message, '</script>0') AND b.message = '</script>4'"
    query = f"PATTERN SEQ(A a, A b) WHERE {where} WITHIN 5 s"
    assert invoke("report", query, file, "--schema", schema, "-o", page).exit_code == 0
    facts = data_of(page.read_text())
    shown = facts["lines"]
    assert shown["files"] == [str(file)]
    ids = facts["events"]["id"]
    assert {(ids[place], row) for place, _, row in shown["of"]} == {(f"{file}:1", 1), (f"{file}:6", 6)}
    whole = file.read_text().splitlines()
    assert shown["texts"] == [[[row, whole[row - 1]] for row in (1, 2, 3, 4, 5, 6)]]
    assert data_of(uc.report(uc.read_traces(file, schema), query))["lines"] is None
