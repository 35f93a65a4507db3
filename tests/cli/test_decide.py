"""``decide``: what would decide the answers of a query over files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import uncertain_cep as uc
from tests.cli.conftest import Invoke

QUERY = "PATTERN SEQ(A a, B b) WITHIN 99"
TRACE = """type,id,lower,upper,source,offset_lower,offset_upper
A,1,0,9,n1,-2,2
B,2,5,5,n2,0,0
A,3,20,29,n1,-2,2
B,4,25,25,n2,0,0
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return path


def test_it_says_what_python_says(invoke: Invoke, trace: Path) -> None:
    result = invoke("decide", QUERY, trace, "--by", "event")
    assert result.exit_code == 0
    expected = uc.deciding(uc.read_traces(trace), QUERY, by="event")
    assert result.stdout == f"{expected}\n"
    assert expected.sentence in result.stdout


def test_a_json_object_has_all_of_it(invoke: Invoke, trace: Path) -> None:
    query = f"{QUERY} RETURN PROBABILITY BY a"
    facts = json.loads(invoke("decide", query, trace, "--json", "--doubtful", "1").stdout)
    expected = uc.deciding(uc.read_traces(trace), query, doubtful=1)
    assert facts["sentence"] == expected.sentence
    assert (facts["count"], facts["open"]) == (expected.count, expected.open)
    assert facts["sources"] == expected.sources.to_pylist()
    assert facts["answers"] == expected.answers.to_pylist()


def test_a_faulty_query_is_one_error(invoke: Invoke, trace: Path) -> None:
    result = invoke("decide", "PATTERN SEQ(A a) WITHIN 9 RETURN EXPECTED COUNT", trace)
    assert result.exit_code == 2
    assert "expected counts" in result.stderr
    assert "Traceback" not in result.stderr
