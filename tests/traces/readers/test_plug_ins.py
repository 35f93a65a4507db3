"""Formats that other packages read."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.project.test_readme import DOCS, blocks
from uncertain_cep.traces.readers import plug_ins

LINES = b"1717149600 +-2 start job-7\n1717149609 +-0 stop job-8\n"


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Have plug-ins by their names."""
    functions: dict[str, Any] = {}
    monkeypatch.setattr(EntryPoint, "load", lambda one: functions[one.name])
    monkeypatch.setattr(
        plug_ins,
        "entry_points",
        lambda group, name: [EntryPoint(name, "x:y", group)] if name in functions else [],
    )
    plug_ins.plug_in.cache_clear()
    yield functions
    plug_ins.plug_in.cache_clear()


def test_the_example_of_the_page(plugged: dict[str, Any], tmp_path: Path) -> None:
    (example,) = blocks("python", DOCS["formats.md"])
    names: dict[str, Any] = {}
    exec(example, names)
    plugged["jobs"] = names["read"]
    (tmp_path / "a.gz").write_bytes(gzip.compress(LINES))
    (tmp_path / "schema.toml").write_text('format = "jobs"\ntick = "1s"\n')
    table = uc.read_traces(tmp_path / "a.gz", format="jobs")
    assert table.column_names[:4] == ["type", "id", "lower", "upper"]
    assert [stamp.timestamp() for stamp in table["lower"].to_pylist()] == [1717149598, 1717149609]
    assert uc.read_traces(tmp_path / "a.gz", tmp_path / "schema.toml").equals(table)
    (row,) = uc.match(table, "PATTERN SEQ(start a, stop b) WITHIN 12 s", tick="1s").to_pylist()
    assert (row["a"], row["confidence"]) == ("job-7", pytest.approx(1.0))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"type": ["A"], "id": [1], "lower": [0]}, "its table lacks upper"),
        ({"type": ["A"], "id": [1], "lower": ["x"], "upper": [0]}, "the plug-in for jobs fails"),
        (None, "the plug-in for jobs fails"),
    ],
)
def test_a_plug_in_that_fails_is_named(plugged: dict[str, Any], tmp_path: Path, made: Any, said: str) -> None:
    plugged["jobs"] = lambda _stream: pa.table(made)
    (tmp_path / "a.txt").write_bytes(LINES)
    with pytest.raises(uc.TraceError, match=said) as error:
        uc.read_traces(tmp_path / "a.txt", format="jobs")
    assert "a.txt" in str(error.value)


def test_a_plug_in_that_cannot_be_imported_is_named(
    plugged: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugged["jobs"] = None
    monkeypatch.setattr(EntryPoint, "load", lambda _: 1 / 0)
    (tmp_path / "a.txt").write_bytes(LINES)
    with pytest.raises(
        uc.OptionError, match="the plug-in for jobs, x:y, cannot be imported: ZeroDivisionError"
    ):
        uc.read_traces(tmp_path / "a.txt", format="jobs")


def test_unknown_formats_are_refused(plugged: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(LINES)
    with pytest.raises(uc.OptionError, match=r"format='jobs' is unknown: use one of .*, or a plug-in"):
        uc.read_traces(tmp_path / "a.txt", format="jobs")
    plugged["jobs"] = lambda _stream: None
    plugged["jobs"].unit = "minutes"
    plug_ins.plug_in.cache_clear()
    with pytest.raises(uc.OptionError, match="has the unit minutes: use one of s, ms, us, ns"):
        uc.read_traces(tmp_path / "a.txt", format="jobs")
