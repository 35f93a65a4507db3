"""Hostile text: long lines, deep nesting and long numbers end with one clear error, in bounded memory."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncertain_cep.errors import TraceError
from uncertain_cep.traces import load_schema, read_traces
from uncertain_cep.traces.bounded import (
    LONGEST_LINE,
    MOST_COLUMNS,
    MOST_LEVELS,
    NestingGuard,
    UnreadableLineError,
    levels_of,
)

ROW = '{"type": "A", "id": 1, "lower": 1, "upper": 2}\n'
CSV = "type,id,lower,upper,x\n"

_PEAK = """
import resource, sys
from uncertain_cep.errors import TraceError
from uncertain_cep.traces import read_traces
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for file in sys.argv[1:]:
    try:
        read_traces(file)
    except TraceError as error:
        print(error)
    else:
        print("nothing")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def read_elsewhere(*files: Path) -> tuple[list[str], int]:
    """Return the output of a new process for each file, and by how many MiB its memory grew."""
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, *map(str, files)],
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *said, peak = done.stdout.splitlines()
    return said, int(peak)


DEEP = {
    "lists": "[" * 10_000 + "]" * 10_000,
    "objects": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "open": "[" * 10_000,
    "both": '{"a": [' * 10_000,
    "long": "[" * 3_000_000,
    "mixed": "[[]," * 10_000 + "]" * 10_000,
}
PACK: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}


@pytest.fixture(scope="module")
def deep_json(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, str]:
    """Files of deep JSON, and what a process says of each: one for all, as each could end it."""
    folder = tmp_path_factory.mktemp("deep")
    files = []
    for name, nested in DEEP.items():
        text = f'{ROW}\n{{"type": "A", "id": 2, "lower": 1, "upper": 2, "x": {nested}}}\n{ROW}'.encode()
        for suffix, pack in PACK.items():
            files.append(folder / f"{name}.jsonl{suffix}")
            files[-1].write_bytes(pack(text))
    said, _ = read_elsewhere(*files)
    return dict(zip(files, said, strict=True))


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("name", DEEP)
def test_deep_json(deep_json: dict[Path, str], name: str, suffix: str) -> None:
    ((file, said),) = (
        (file, said) for file, said in deep_json.items() if file.name == f"{name}.jsonl{suffix}"
    )
    assert said.startswith(f"{file}, row 2, value ")
    assert said.endswith(f"nested more than {MOST_LEVELS} levels deep: make the row flat")


def test_brackets_in_text_are_no_nesting(tmp_path: Path) -> None:
    file = tmp_path / "text.jsonl"
    rows = [
        {"type": "A", "id": 1, "lower": 1, "upper": 2, "x": "[" * 1000 + '"\\' + "{" * 1000},
        {"type": "A", "id": 2, "lower": 1, "upper": 2, "x": "]" * 9},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_traces(file).column("x").to_pylist() == [row["x"] for row in rows]


@pytest.mark.parametrize("line", ["null", "null, null", "\ufeffnull", "  \n null", '{"id": 1}\nnull', "nul"])
def test_a_null_is_no_row(tmp_path: Path, line: str) -> None:
    file = tmp_path / "null.jsonl"
    file.write_text(f"{line}\n{ROW}")
    with pytest.raises(TraceError, match=r"null\.jsonl, row [12], value .?nul"):
        read_traces(file)


_pieces = st.sampled_from(
    ["[", "{", "]", "}", '"', "\\", "\n", "a", '"[[["', "[" * 70, "]" * 70, '\\"', "n", " \t", " \n\r"]
)


@given(st.lists(_pieces, max_size=12), st.integers(1, 40))
def test_the_guard_lets_pass_what_is_sound_whatever_the_blocks(pieces: list[str], size: int) -> None:
    data = "".join(pieces).encode()
    deep = any(
        levels_of(line) > MOST_LEVELS or line.lstrip(b" \t\r").startswith(b"n") for line in data.split(b"\n")
    )
    guard = NestingGuard(io.BytesIO(data))
    passed = b""
    try:
        while piece := guard.read(size):
            passed += piece
    except UnreadableLineError:
        assert deep
    else:
        assert not deep
        assert passed == data


@given(
    st.recursive(st.none() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=2), max_leaves=20)
)
def test_levels_of_values(value: object) -> None:
    def depth(value: object) -> int:
        return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0

    assert levels_of(json.dumps(value).encode()) == depth(value)


@pytest.mark.parametrize("number", ["1" * 310, "1" * 4_301, "-" + "9" * 100_000, "1e999", "-1e400"])
def test_long_numbers_in_json(tmp_path: Path, number: str) -> None:
    file = tmp_path / "long.jsonl"
    file.write_text(f'{ROW}{{"type": "A", "id": 2, "lower": 1, "upper": 2, "x": {number}}}\n')
    with pytest.raises(TraceError) as caught:
        read_traces(file)
    assert str(caught.value) == f"{file}, row 2, column 'x': the number is out of range"


def test_a_long_number_beside_another_fault(tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    file.write_text(f'{{"id": {"1" * 5_000}}}\n{{"id": \n{{"id": NaN}}\n')
    with pytest.raises(TraceError) as caught:
        read_traces(file)
    assert [fault.row for fault in caught.value.faults] == [1, 2, 3]
    assert "the number is out of range" in caught.value.faults[0].message
    assert caught.value.faults[2].message == "the line is no JSON: JSON knows no NaN, write null"


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2"])
@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
def test_rows_of_several_megabytes(tmp_path: Path, kind: str, suffix: str) -> None:
    long = "x" * 5_000_000
    if kind == "jsonl":
        text = ROW + json.dumps({"type": "A", "id": 2, "lower": 1, "upper": 2, "x": long}) + "\n" + ROW
    else:
        text = f"{CSV}A,1,1,2,\nA,2,1,2,{long}\nA,3,1,2,y\n"
        text = text.replace(",", "\t") if kind == "tsv" else text
    file = tmp_path / f"long.{kind}{suffix}"
    file.write_bytes(PACK[suffix](text.encode()))
    events = read_traces(file)
    assert events.num_rows == 3
    assert events.column("x")[1].as_py() == long


@pytest.mark.parametrize(
    ("name", "start", "said"),
    [
        ("header.csv.gz", b"", "the line of the column names is longer than"),
        ("names.csv.gz", b"a,", "the line of the column names is longer than"),
        ("row.csv.gz", CSV.encode() + b"A,1,1,2,\nA,2,1,2,", "line 3 is longer than"),
        ("row.tsv.bz2", CSV.replace(",", "\t").encode(), "line 2 is longer than"),
        ("row.jsonl.gz", ROW.encode() + b'{"x": "', "row 2"),
    ],
)
def test_a_line_that_unpacks_to_much_more(tmp_path: Path, name: str, start: bytes, said: str) -> None:
    file = tmp_path / name
    piece = (b"a," if name == "names.csv.gz" else b"xx") * 2**20
    if name.endswith(".gz"):
        with gzip.open(file, "wb", 1) as stream:
            stream.write(start)
            for _ in range(150):
                stream.write(piece)
    else:
        # Streams one behind the other are a file of bzip2 as well, and packed once.
        file.write_bytes(bz2.compress(start) + 150 * bz2.compress(piece))
    assert file.stat().st_size < 2**21
    (message,), peak = read_elsewhere(file)
    assert message.startswith(str(file))
    assert said in message
    assert f"{LONGEST_LINE:,}" in message
    # It was 2 bytes for each of 300 million.
    assert peak < 250


def test_an_open_quote(tmp_path: Path) -> None:
    file = tmp_path / "open.csv"
    file.write_text(CSV + 'A,1,1,2,"' + "A,2,1,2,x\n" * (5 * LONGEST_LINE // 10))
    with pytest.raises(TraceError, match=r"a row is longer than .* bytes: is a quote not closed"):
        read_traces(file)


def test_many_columns(tmp_path: Path) -> None:
    file = tmp_path / "wide.csv"
    names = np.arange(MOST_COLUMNS + 1).astype(str).tolist()
    file.write_text(",".join(names) + "\n")
    with pytest.raises(TraceError, match=f"it has {MOST_COLUMNS + 1:,} columns, and at most"):
        read_traces(file)
    file.write_text(",".join([*names[: MOST_COLUMNS // 2], "0"]) + "\n")
    with pytest.raises(TraceError, match="column '0': two columns have this name"):
        read_traces(file)


@pytest.mark.parametrize("text", ["tick = " + "[" * 100_000, f"tick = {'1' * 5_000}", "a." * 5_000 + "b = 1"])
def test_hostile_schema_files(tmp_path: Path, text: str) -> None:
    file = tmp_path / "schema.toml"
    file.write_text(text)
    with pytest.raises(TraceError, match=r"schema\.toml"):
        load_schema(file)
