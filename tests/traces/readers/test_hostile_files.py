"""Files that are cut off, broken or made to hurt: one clear error with the file, or what can be read."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import msgspec
import pytest

import uncertain_cep as uc
from tests.traces.readers.samples import SAMPLES
from uncertain_cep.traces.readers import recognised
from uncertain_cep.traces.readers.source import Source
from uncertain_cep.traces.readers.xml_elements import parsed_elements

DEEP: Final = 200_000
XML: Final = ("ganglia", "rrd", "xes")
ROOTS: Final = {"ganglia": "GANGLIA_XML", "rrd": "rrd", "xes": "log"}


def refused(path: Path, name: str) -> str | None:
    """Return the one fault of a file, or None if it is read."""
    try:
        uc.read_traces(path, format=name)
    except uc.TraceError as error:
        (fault,) = error.faults
        assert fault.file == str(path)
        assert str(fault).isprintable()
        return str(fault)
    return None


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_that_is_cut_off_is_told_or_ends_with_a_line(tmp_path: Path, name: str) -> None:
    data = SAMPLES[name].encode()
    path = tmp_path / "file"
    faulty = 0
    step = max(len(data) // 60, 1)
    for length in range(step, len(data) - 2, step):
        path.write_bytes(data[:length])
        fault = refused(path, name)
        faulty += fault is not None
        cut_line = data[length:].split(b"\n")[0]
        whole_lines = name in (
            "spark-eventlog",
            "hadoop-jhist",
            "hadoop-history",
            "otlp",
            "prometheus",
            "openmetrics",
            "influx",
        )
        assert fault is not None or whole_lines or not cut_line.strip(), data[:length][-80:]
    assert faulty > 20


@pytest.mark.parametrize("name", SAMPLES)
def test_broken_bytes_are_told_or_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    drawn = random.Random(5)
    for _ in range(80):
        data = bytearray(SAMPLES[name].encode())
        for _ in range(drawn.randint(1, 3)):
            data[drawn.randrange(len(data))] = drawn.choice(b'\x00\xff\x80{}[]"<>&0-9e\\ \n')
        path.write_bytes(data)
        refused(path, name)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe{\x00}\x00",
        b"\x00" * 5000,
        b"PK\x03\x04",
        b"{" * DEEP,
        b"[" * DEEP,
        b"<a>" * DEEP,
        b"null",
        b"7",
        b"[{}]",
    ],
    ids=["UTF-16", "zeros", "zip", "braces", "brackets", "elements", "null", "number", "list"],
)
def test_what_is_no_such_file_is_told(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    assert refused(path, name) is not None


@pytest.mark.parametrize("name", SAMPLES)
def test_an_empty_file_is_told(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")
    fault = refused(path, name)
    assert fault is not None
    assert "the file is empty" in fault


@pytest.mark.parametrize("name", XML)
def test_entities_are_not_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    laughs = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else "ha"}">' for n in range(12))
    secret = tmp_path / "secret"
    secret.write_text("secret")
    for entities in (laughs, f'<!ENTITY a11 SYSTEM "{secret.as_uri()}">'):
        root = ROOTS[name]
        path.write_text(f'<!DOCTYPE {root} [{entities}]><{root}><x y="1">&a11;</x></{root}>')
        fault = refused(path, name)
        assert fault is not None
        assert "declares entities" in fault or "no XML" in fault
        path.write_text(f'<!DOCTYPE {root} [{entities}]><{root} x="&a11;"/>')
        assert refused(path, name) is not None


@pytest.mark.parametrize("name", ["spark-eventlog", "hadoop-jhist", "openmetrics", "hadoop-history"])
def test_a_line_without_an_end_is_told(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncertain_cep.traces.readers.source.MOST_BYTES", 1000)
    path = tmp_path / "file"
    path.write_text(SAMPLES[name].splitlines()[0] + "\n" + "x" * 2000)
    fault = refused(path, name)
    assert fault is not None
    assert "row 2" in fault
    assert "longer than 1,000 bytes" in fault


@pytest.mark.parametrize("name", ["hadoop-rumen", "jaeger", "zipkin", "otlp"])
def test_a_document_that_is_too_long_is_told(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uncertain_cep.traces.readers.source.MOST_DOCUMENT", 100)
    path = tmp_path / "file"
    path.write_text("[" + " " * 3_000_000)
    fault = refused(path, name)
    assert fault is not None
    assert "longer than 100 bytes" in fault


def test_texts_like_the_border_of_two_objects_end(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for texts in (500, 100_000):
        path.write_text('{"resourceSpans":[],"x":"' + "}{" * texts + '"}\n{"resourceSpans":[]}')
        assert refused(path, "otlp") is None
    path.write_text('{"resourceSpans":[],"x":"' + "}{" * 200_000)
    fault = refused(path, "otlp")
    assert fault is not None
    assert "row 1" in fault


def test_a_binary_history_is_told_from_json(tmp_path: Path) -> None:
    path = tmp_path / "job.jhist"
    path.write_bytes(b'Avro-Binary\n{"type":"record"}\n\x00\x02\xff')
    assert recognised(path.read_bytes()) == "hadoop-jhist"
    with pytest.raises(uc.TraceError, match=r"history as Avro-Binary, and JSON is read: .*format=json"):
        uc.read_traces(path, format="hadoop-jhist")


def test_spans_of_too_many_attributes_are_told(tmp_path: Path) -> None:
    path = tmp_path / "file"
    tags = ",".join(f'"t{n}":"1"' for n in range(1001))
    path.write_text(f'[{{"traceId":"1","id":"2","timestamp":1,"tags":{{{tags}}}}}]')
    fault = refused(path, "zipkin")
    assert fault is not None
    assert "more than 1,000 different attributes" in fault


class Counting(io.BytesIO):
    """A stream that counts how often it is read, and how much."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text)
        self.reads = self.read_bytes = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.reads += 1
        self.read_bytes += len(data)
        return data


class Decoding:
    """A decoder that counts the bytes that it is given."""

    def __init__(self) -> None:
        self.decoder = msgspec.json.Decoder(dict)
        self.given = 0

    def decode(self, text: bytes) -> Any:
        self.given += len(text)
        return self.decoder.decode(text)


@pytest.mark.parametrize("within", [b"x" * 3, b"} {", b"}{\n"])
def test_one_long_object_is_read_in_linear_time(within: bytes) -> None:
    """A reader copies and decodes data a few times altogether: not once a block or a border."""
    text = b'{"a": "' + within.replace(b"\n", b" ") * 2**22 + b'"}'
    stream, decoder = Counting(text + b"\n" + b'{"a": "b"}  \n{}'), Decoding()
    source = Source(cast(BinaryIO, stream), "file")
    values_read = [(row, value.get("a")) for row, value, _ in source.values(cast(Any, decoder))]
    assert [(row, value and len(value)) for row, value in values_read] == [
        (1, len(text) - 9),
        (2, 1),
        (3, None),
    ]
    assert stream.reads < 12
    assert decoder.given < 4 * len(text)


def test_a_long_line_is_put_together_once() -> None:
    text = b"x" * 2**24
    stream = Counting(b"\xef\xbb\xbf" + text + b"\ny\n" + text)
    blocks = list(Source(cast(BinaryIO, stream), "file").blocks())
    assert [(before, len(block)) for before, block in blocks] == [(0, len(text) + 3), (2, len(text))]


TAGS = {
    "an attribute": '<log xes.version="1.0"><trace><string key="',
    "attributes": '<log xes.version="1.0"><trace><string ',
    "a comment": '<log xes.version="1.0"><trace><!--',
    "a name": '<log xes.version="1.0"><trace><',
}


@pytest.mark.parametrize("begin", TAGS)
def test_a_long_tag_is_refused_before_it_is_held(begin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser holds a tag until it has ended: 900 MB of an attribute took 2.8 GB."""
    monkeypatch.setattr("uncertain_cep.traces.readers.xml_elements.LONGEST_LINE", 1 << 20)
    filling = b'a="b" ' if begin == "attributes" else b"a" * 6
    stream = Counting(TAGS[begin].encode() + filling * 2**20 + b'"/></trace></log>')
    with pytest.raises(uc.TraceError, match=r"longer than 1,048,576 bytes|no XML") as caught:
        list(parsed_elements(Source(cast(BinaryIO, stream), "file"), "log", frozenset(("trace",))))
    assert ("longer than" in str(caught.value)) or begin in ("attributes", "a name")
    assert stream.read_bytes < 2 * 2**20


def test_many_tags_are_no_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncertain_cep.traces.readers.xml_elements.LONGEST_LINE", 1 << 17)
    text = b'<log xes.version="1.0">' + b"<trace></trace>" * 2**16 + b"</log>"
    elements = parsed_elements(Source(cast(BinaryIO, io.BytesIO(text)), "file"), "log", frozenset(("log",)))
    assert sum(begins for begins, _ in elements) == 2**16 + 1
