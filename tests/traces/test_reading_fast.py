"""Reading many rows at once gives the same as reading them one by one."""

from __future__ import annotations

import io
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from uncertain_cep.errors import TraceError
from uncertain_cep.traces import json_files, searching, text_lines
from uncertain_cep.traces.extracting import ExtractionUses
from uncertain_cep.traces.formats import FileOptions, read_file
from uncertain_cep.traces.program_presets import PRESETS
from uncertain_cep.traces.text_lines import CONTINUATION, record_blocks
from uncertain_cep.traces.time_formats import TimeFormat

_BEGINS = (
    *(
        "",
        " x",
        "\tat",
        "\x0b",
        "\x0cf",
        "\r",
        "1 Error",
        "é Error",
        "[x",
        "Error",
        "a.b.CError: x",
        "Errors",
    ),
    *("IOException", "x$Exception!", "Exceptional", "a Exception", "Caused by: x", "Caused by:", "_Error"),
    *("Suppressed: ", "Traceback (most recent call last):", "Traceback (most", "\u00a0x", "Zebra"),
)


@given(st.lists(st.sampled_from(_BEGINS), max_size=8), st.integers(0, 3))
def test_lines_that_go_on_are_those_of_the_expression(lines: list[str], begin: int) -> None:
    block = pa.array(lines, pa.string()).slice(begin)
    expected = np.asarray(pc.match_substring_regex(block, CONTINUATION))
    assert text_lines._found_in(block, CONTINUATION).tolist() == expected.tolist()


@given(
    st.lists(
        st.sampled_from(
            [b"\xef\xbb\xbf", b"a", b"\n", b"\r", b"\r\n", b"\xc3\xa9", b"\xc3", b"\xf0\x9f\x98\x80"]
        )
    ),
    st.integers(1, 9),
)
@example([b"\n", b"\xef\xbb\xbf"], 1)
def test_lines_of_any_bytes_whatever_the_blocks(pieces: list[bytes], size: int) -> None:
    data = b"".join(pieces)
    try:
        *lines, last = data.decode("utf-8-sig").split("\n")
        whole_lines = [*lines, last] if last else lines
        expected: list[str] | int = [line.removesuffix("\r") for line in whole_lines]
    except UnicodeDecodeError as error:
        expected = data.count(b"\n", 0, error.start + 3 * data.startswith(b"\xef\xbb\xbf")) + 1
    before, text_lines._BLOCK = text_lines._BLOCK, size  # type: ignore[misc]
    try:
        assert _lines_of(data) == expected
    finally:
        text_lines._BLOCK = before  # type: ignore[misc]


def _lines_of(data: bytes) -> list[str] | int | None:
    """Return the lines of a text, or the row that a fault names."""
    try:
        return [line for block in record_blocks(io.BytesIO(data), None) for line in block.lines.to_pylist()]
    except TraceError as error:
        return error.faults[0].row


_STAMPS = (
    *("2015-10-17 15:37:56,547", "2015-10-17 15:37:56.5", "2015-10-17T24:00:00", "2016-12-31 23:59:60Z"),
    *(
        "2015-02-30 00:00:00",
        "2015-10-17 25:00:00",
        "17/Oct/2015:10:05:03 +0200",
        "17/Oct/2015:10:05:03 -0300",
    ),
    *("Oct 11 22:14:15", "Jan  1 00:00:00", "Dec 31 23:59:59", "1.5", "-3", "x", "", None),
)
_FORMATS = ("iso", "%d/%b/%Y:%H:%M:%S %z", "%b %d %H:%M:%S", "epoch_s")


@given(
    st.lists(st.sampled_from(_STAMPS), max_size=4),
    st.lists(st.sampled_from(_FORMATS), min_size=1, unique=True),
    st.integers(1, 3),
)
def test_stamps_that_are_read_once_are_read_alike(
    stamps: list[str | None], formats: list[str], times: int
) -> None:
    form = TimeFormat(tuple(formats), base="2015")
    texts = pa.chunked_array([pa.array(stamps, pa.large_string())] * times, pa.large_string())
    present = np.asarray(texts.is_valid())
    plain = form._parsed(texts, present)
    turned = plain.complete(form.base, fixed=False)
    once, turned_once = form._stamps(texts, present)
    assert turned_once == turned
    for name in ("counts", "length", "offset", "good", "number", "leap"):
        assert getattr(once, name).tolist() == getattr(plain, name).tolist(), name


@pytest.mark.parametrize("size", [2**23, 5])
def test_a_line_that_is_no_utf8_is_named_by_its_row(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(text_lines, "_BLOCK", size)
    with pytest.raises(TraceError) as caught:
        list(record_blocks(io.BytesIO(b"a\xc3\xa9\n\nbcd\n\xe9\nx"), None))
    assert caught.value.faults[0].row == 4


_MODULES = (json_files, searching, text_lines)


def _both_ways(read: Callable[[], pa.Table]) -> tuple[Any, Any]:
    """Read by kernels and without; return the table or the faults, each with its warnings."""
    results = []
    for compiled in (True, False):
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for module in _MODULES:
                patch.setattr(module, "compiled_for_reading", lambda compiled=compiled: compiled)
            try:
                table = read()
                # NaN is no number that equals itself.
                result: Any = str(table.schema), repr(table.to_pylist())
            except TraceError as error:
                result = error.faults
        results.append((result, [str(one.message) for one in caught]))
    return results[0], results[1]


_RECORDS = (
    *("2015-10-17 15:37:56,547 INFO [main] a.B: x", "15:37:56 WARN  [m n] a.B: y: z", "\tat x", ""),
    *('1.2.3.4 - - [17/Oct/2015:10:05:03 +0200] "GET /a HTTP/1.0" 200 23', '1 - - [t] "-" 408 0'),
    *("<34>1 2003-10-11T22:14:15Z h su - ID47 - a b", "<1>1 2003 - - - - -", "x.yError: z", "Oct 11 1"),
    *("Oct 11 22:14:15 web-1 su[123]: failed é", "2016-10-06T00:17:09.66Z stdout F one", "Error"),
    *("2016-10-06T00:17:09.66Z stdout P one", "2015-07-29 17:41:44,747 - INFO  [Q[a]:F@774] - N", "a b c"),
)


@given(
    st.lists(st.sampled_from(_RECORDS), min_size=1, max_size=6),
    st.sampled_from(sorted(PRESETS)),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([8, 2**23]),
)
def test_logs_are_read_alike_with_kernels_and_without(
    lines: list[str], preset: str, end: str, size: int
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_lines, "_BLOCK", size)
        path = Path(folder, "t.log")
        path.write_bytes(end.join(lines).encode())
        extract = tuple(("line", pattern) for pattern in PRESETS[preset].patterns)
        options = FileOptions(extract=extract, parts=PRESETS[preset].parts)
        uses = []

        def read() -> pa.Table:
            uses.append(ExtractionUses())
            return read_file(path, None, options, uses[-1])

        compiled, plain = _both_ways(read)
        assert compiled == plain
        assert uses[0].told() == uses[1].told()


_JSON_LINES = (
    *('{"a":1,"b":"x"}', '{"a":2.5,"b":"y"}', '{"b":"z"}', '{"a":null,"b":null}', '{"b":"é","a":3}'),
    *('{"a":"2024-05-31T10:00:00Z"}', '{"a":"2024-05-31"}', '{"a":12345678901234567890}', "", "null", "{"),
    *('{"a":1,"a":2}', '{"a":[1]}', '{"a":{"b":1}}', '{"a":NaN}', '{"a":1e999}', '{"c":true}'),
    '{"a":9007199254740993}',
)  # fmt: skip


@given(
    st.lists(st.sampled_from(_JSON_LINES), min_size=1, max_size=5),
    st.sampled_from([1, 30, json_files.JSON_BLOCK]),
    st.sampled_from([FileOptions(), FileOptions(texts=("a",)), FileOptions(types=(("a", "string"),))]),
    st.sampled_from([None, {"a"}, {"b"}]),
)
def test_json_is_read_alike_with_kernels_and_without(
    lines: list[str], size: int, options: FileOptions, columns: set[str] | None
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_files, "JSON_BLOCK", size)
        patch.setattr(json_files, "_PIECE", size)
        path = Path(folder, "t.jsonl")
        path.write_text("\n".join(lines), encoding="utf-8")
        compiled, plain = _both_ways(lambda: read_file(path, columns, options))
        assert compiled == plain


@pytest.mark.parametrize("name", ["trace.csv", "trace.jsonl"])
def test_threads_of_arrow_do_not_hold_the_last_reference_to_a_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would ask for the interpreter's lock, which ends a process that is about to end."""
    files: list[weakref.ref[pa.PythonFile]] = []
    made = pa.PythonFile

    def noted(stream: Any, mode: str) -> pa.PythonFile:
        file = made(stream, mode)
        files.append(weakref.ref(file))
        return file

    monkeypatch.setattr(pa, "PythonFile", noted)
    file = tmp_path / name
    if name.endswith("csv"):
        file.write_text("type,id,lower,upper\nA,1,2,3\n")
    else:
        file.write_text('{"type": "A", "id": 1, "more": {"x": [1]}}\n')
    assert read_file(file).num_rows == 1
    assert files
    assert all(reference() is not None for reference in files[-8:])
