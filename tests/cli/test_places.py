"""URLs in place of files, which every command refuses at once, and queries in place of traces."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.cli.conftest import Invoke
from tests.traces.files import put
from uncertain_cep.errors import OptionError

QUERY: Final = "PATTERN SEQ(A a) WITHIN 5"
OUT: Final = "s3://bucket/x"
STREAM: Final = ("stream", QUERY, "--largest-interval", "1s", "--source", "in")

WRITING: Final = (
    ("match", QUERY, "t.csv", "-o", OUT),
    ("match", QUERY, "t.csv", "-o", f"{OUT}.csv", "--engine", "spark"),
    ("report", QUERY, "t.csv", "-o", OUT),
    ("init", "t.csv", "-o", OUT),
    ("infer-offsets", "t.csv", "-o", OUT),
    ("generate", "stream", "-o", OUT),
    ("generate", "cluster", "-o", OUT),
    ("casestudy", "-o", OUT),
    (*STREAM, "--checkpoint", OUT, "-o", "out"),
    (*STREAM, "--checkpoint", "state", "-o", OUT),
)
WEB: Final = "https://example.org/x.csv"
READING: Final = (
    ("match", QUERY, WEB),
    ("match", QUERY, WEB, "--engine", "spark"),
    ("match", QUERY, "t.csv", "--schema", WEB),
    ("match", WEB, "t.csv"),
    ("explain", QUERY, WEB),
    ("report", QUERY, WEB, "-o", "out"),
    ("init", WEB),
    ("validate", WEB),
    ("validate", "s3://bucket/t.csv"),
    ("infer-offsets", WEB),
    ("stream", QUERY, "--largest-interval", "1s", "--source", WEB, "--checkpoint", "state", "-o", "out"),
)


@pytest.mark.parametrize("command", [*WRITING, *READING])
def test_urls_are_refused_at_once(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    trace = put(tmp_path / "t.csv", "type,id,lower,upper\nA,1,1,2\n")
    result = invoke(*command)
    assert result.exit_code == 2
    said = "is a URL" if command in WRITING else r"a URL|read from the web|folder of this machine"
    assert re.search(said, result.output), result.output
    assert "reading" not in result.output
    assert [*tmp_path.iterdir()] == [trace]


def test_a_second_query_file_is_known_by_its_name(invoke: Invoke, tmp_path: Path) -> None:
    trace = put(tmp_path / "t.csv", "type,id,lower,upper\nA,1,1,1\nB,2,3,3\n")
    first = put(tmp_path / "Pair.query", "PATTERN SEQ(A a, B b) WITHIN 5")
    second = put(tmp_path / "next.query", "PATTERN SEQ(Pair p) WITHIN 5")
    result = invoke("match", first, second, trace)
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 2
    result = invoke("match", first, second)
    assert result.exit_code == 2
    assert "there is no trace" in result.output
    assert f"{str(second)!r} is taken for a query, too" in result.output
    other = put(tmp_path / "next.txt", second.read_text())
    result = invoke("match", first, other, trace)
    assert result.exit_code == 2
    assert f"{other} holds a query" in result.output
    assert "further queries are files named *.sase or *.query or *.sql before the traces" in result.output


def test_the_name_of_a_query_file_is_no_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "pattern", QUERY)
    events = pa.table({"type": ["A"], "id": [1], "lower": [1], "upper": [2]})
    name: Any
    function: Any
    for name in ("x.query", "some/Where.SASE", "pattern", Path("x.query"), tmp_path / "y.txt"):
        for function in (uc.match, uc.report, uc.iter_matches, lambda table, query: uc.explain(query, table)):
            with pytest.raises(OptionError, match=re.escape(f'query is text: read it, as in Path("{name}")')):
                list(function(events, name))
        if isinstance(name, str):
            with pytest.raises(OptionError, match="is the name of a file"):
                uc.parse(name)
