"""A call says how far it is, where somebody sees it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.cases.cut import cut
from uncertain_cep.running import meter as meters

AT = np.arange(3000) * 3
EVENTS = pa.table({"type": ["A"] * 3000, "id": np.arange(3000), "lower": AT, "upper": AT + 5})
QUERY = "PATTERN SEQ(A a, A b, A c) WITHIN 60"


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    """Have everything compiled, so that nothing is said of it in between."""
    with cut(1.25):
        list(uc.iter_matches(EVENTS, QUERY, threads=2, batch_rows=1000))


def test_it_says_how_many_how_fast_and_how_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meters, "BETWEEN_LINES", 0.0)
    with cut(1.25):
        batches = list(uc.iter_matches(EVENTS, QUERY, threads=2, batch_rows=1000, progress=True))
    said = capsys.readouterr()
    assert said.out == ""
    first, *lines, last = said.err.split("\r\x1b[K")
    assert (first, last) == ("", "")
    assert any(line.endswith(" s left") and "%, about" in line for line in lines)
    counts = [int(line.partition(" match")[0].replace(",", "")) for line in lines]
    assert counts == sorted(counts)
    assert counts[-1] == sum(batch.num_rows for batch in batches)
    assert all(" a second" in line for line in lines)


@pytest.mark.parametrize(
    ("watched", "seconds", "says"), [(True, 0.0, True), (True, 1e9, False), (False, 0.0, False)]
)
def test_it_speaks_of_itself_where_it_is_watched(
    watched: bool,
    seconds: float,
    says: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(meters, "BETWEEN_LINES", 0.0)
    monkeypatch.setattr(meters, "LONG_CALL", seconds)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: watched)
    # In a notebook somebody always watches; tests of notebooks may have run in this process.
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    uc.match(EVENTS, QUERY)
    assert ("matches" in capsys.readouterr().err) is says


def test_silence(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meters, "LONG_CALL", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    uc.match(EVENTS, QUERY, progress=False)
    assert capsys.readouterr().err == ""


def test_the_line_goes_when_nobody_waits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meters, "BETWEEN_LINES", 0.0)
    batches: Any = uc.iter_matches(EVENTS, QUERY, batch_rows=1000, progress=True)
    next(batches)
    batches.close()
    said = capsys.readouterr().err
    assert "1,000 matches" in said
    assert said.endswith("\r\x1b[K")


def test_what_it_takes() -> None:
    option: Any = "yes"
    with pytest.raises(uc.OptionError, match="progress='yes': it must be True, False or None"):
        uc.iter_matches(EVENTS, QUERY, progress=option)
