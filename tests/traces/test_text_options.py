"""Text of other encodings than UTF-8, and lines that stand before a table."""

from __future__ import annotations

import gzip
import json
import tomllib
from pathlib import Path
from typing import Final

import pytest

import uncertain_cep as uc
from tests.traces.files import put, schema_of
from uncertain_cep.traces.proposing import propose

CITIES: Final = ("Zürich", "Málaga")
ROWS: Final = tuple((f"2025-03-02 03:04:0{number}", city) for number, city in enumerate(CITIES))
TEXTS: Final = {
    "t.csv": "at,city\n" + "".join(f"{at},{city}\n" for at, city in ROWS),
    "t.tsv": "at\tcity\n" + "".join(f"{at}\t{city}\n" for at, city in ROWS),
    "t.jsonl": "".join(json.dumps({"at": at, "city": city}, ensure_ascii=False) + "\n" for at, city in ROWS),
    "t.log": "".join(f"{at} city={city}\n" for at, city in ROWS),
}
SCHEMA: Final = '[[events]]\ntype = "A"\ntime = "at"\nuncertainty = { kind = "exact" }\n'
LINE: Final = "[extract]\nline = '^(?P<at>\\S+ \\S+) city=(?P<city>.*)'\n"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1", "cp1252"])
@pytest.mark.parametrize("name", TEXTS)
def test_any_encoding(tmp_path: Path, name: str, encoding: str, packed: bool) -> None:
    data = TEXTS[name].encode(encoding)
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(data) if packed else data)
    says = f'encoding = "{encoding}"\n' if encoding in ("latin-1", "cp1252") else ""
    schema = f"{says}{LINE if name == 't.log' else ''}{SCHEMA}"
    table = uc.read_traces(path, schema_of(tmp_path, schema))
    assert table.column("city").to_pylist() == [*CITIES]
    proposed = propose([path]).text
    assert tomllib.loads(proposed).get("encoding") == ("cp1252" if says else None)
    table = uc.read_traces(path, put(tmp_path / "schema.toml", proposed))
    assert table.column("city").to_pylist() == [*CITIES]


def test_text_of_another_encoding_says_so(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(TEXTS["t.csv"].encode("latin-1"))
    with pytest.raises(uc.TraceError, match='its text is not UTF-8: say encoding = "latin-1"'):
        uc.read_traces(path, schema_of(tmp_path, SCHEMA))
    with pytest.raises(uc.TraceError, match="its text is no ascii: name another encoding"):
        uc.read_traces(path, schema_of(tmp_path, f'encoding = "ascii"\n{SCHEMA}'))


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
@pytest.mark.parametrize("before", [[], ["Report of March"], ["Station: 7", "", '"a quoted, line"']])
def test_lines_before_a_table(tmp_path: Path, name: str, before: list[str]) -> None:
    path = put(tmp_path / name, "".join(f"{line}\n" for line in before) + TEXTS[name])
    proposed = propose([path]).text
    assert tomllib.loads(proposed).get("skip_rows", 0) == len(before)
    table = uc.read_traces(path, put(tmp_path / "schema.toml", proposed))
    assert table.column("city").to_pylist() == [*CITIES]
    # Rows are counted from the first one below the names.
    broken = put(
        tmp_path / f"broken.{name}", path.read_text() + TEXTS[name].splitlines()[1].replace("2025", "x")
    )
    with pytest.raises(uc.TraceError, match="row 3"):
        uc.read_traces(broken, put(tmp_path / "s.toml", proposed.replace(f'files = "{name}"\n', "")))
