"""Damaged files: each command names the file."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

import uncertain_cep as uc
from tests.cases.model_files import COMPRESSIONS
from tests.traces.readers.samples import SAMPLES
from uncertain_cep.cli import main
from uncertain_cep.traces.readers import READERS

QUERY: Final = "PATTERN SEQ(A a, B b) WITHIN 5 seconds"
CSV: Final = "type,id,lower,upper\n" + "".join(f"A,{n},{n},{n * n}\n" for n in range(3000))
LOG: Final = "".join(f"2026-01-05 08:00:{n % 60:02} INFO [main] a.B: {n * n}\n" for n in range(3000))
JSON: Final = "".join(
    f'{{"type":"A","id":{n},"lower":{n},"upper":{n * n}}}\n' for n in range(3000)
)  # fmt: skip
TEXTS: Final = {"t.csv": CSV, "t.jsonl": JSON, "t.log": LOG}
SCHEMA: Final = (
    '[[events]]\ntype = "A"\nid = "id"\ntime = "lower"\nunit = "ms"\nuncertainty = { kind = "exact" }\n'
)


def check_named(folder: Path, file: Path, said: str, *options: object) -> None:
    """Check that no command, and neither call, reads a file, and that each says so with its name."""
    out = folder / "out"
    for command in (
        ("match", QUERY),
        ("explain", QUERY),
        ("validate",),
        ("report", QUERY, "-o", out),
        ("init", "-o", out),
    ):
        options_taken = (
            options if command[0] != "init" else options[2:] if options[:1] == ("--schema",) else options
        )
        result = CliRunner().invoke(main, [*map(str, command), str(file), *map(str, options_taken)])
        assert result.exit_code == 2, (command, result.output)
        assert file.name in result.output, (command, result.output)
        assert said in result.output, (command, result.output)


@pytest.mark.parametrize("compression", [name for name in COMPRESSIONS if name])
@pytest.mark.parametrize("name", TEXTS)
def test_packed_text_that_is_cut_off(tmp_path: Path, name: str, compression: str) -> None:
    packed = COMPRESSIONS[compression](TEXTS[name].encode())
    file = tmp_path / f"{name}{compression}"
    file.write_bytes(packed[: len(packed) // 2])
    (tmp_path / "schema.toml").write_text(SCHEMA)
    schema = ("--schema", tmp_path / "schema.toml") if name == "t.log" else ()
    check_named(tmp_path, file, "it is damaged or cut off: copy or make it again", *schema)


@pytest.mark.parametrize("packed", [False, True])
def test_a_header_that_is_no_utf_8(tmp_path: Path, packed: bool) -> None:
    text = b"type,id,lower,upper,gr\xf6\xdfe\nA,1,1,1,2\nB,2,2,2,3\n"
    file = tmp_path / ("t.csv.gz" if packed else "t.csv")
    file.write_bytes(gzip.compress(text) if packed else text)
    check_named(tmp_path, file, "the name of a column is no UTF-8 text: convert the file")


@pytest.mark.parametrize("name", READERS)
@pytest.mark.filterwarnings("ignore:the trace has no events")
def test_files_that_only_begin_have_no_events_or_are_named(tmp_path: Path, name: str) -> None:
    """Nothing of what Arrow says is handed on."""
    lines = SAMPLES[name].splitlines(keepends=True)
    for number in range(1, min(4, len(lines))):
        for more in ("", "\n", "\n \n\n"):
            file = tmp_path / "file"
            file.write_text("".join(lines[:number]) + more, encoding="utf-8")
            for fault in uc.validate(file, format=name):
                assert fault.file == str(file)
                assert "Array" not in fault.message
                assert "damaged" not in fault.message


def test_a_history_of_its_header_alone_has_no_events(tmp_path: Path) -> None:
    file = tmp_path / "job.jhist"
    file.write_text('Avro-Json\n{"type":"record"}\n\n')
    result = CliRunner().invoke(main, ["init", str(file), "-o", str(tmp_path / "new")])
    assert result.exit_code == 2
    assert "there are no events in the traces: give files" in result.output
    assert "mistake of the library" not in result.output
