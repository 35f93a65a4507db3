"""``why-not`` says what the function says; a match is an error that shows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import uncertain_cep as uc
from tests.cli.conftest import Invoke

TRACE = "type,id,lower,upper,k\nA,17,1,3,u\nB,8,14,16,u\nB,9,30,32,v\n"
QUERY = "PATTERN SEQ(A a, B+ b[]) WHERE [k] WITHIN 10"


@pytest.fixture
def trace(tmp_path: Path) -> str:
    place = tmp_path / "trace.csv"
    place.write_text(TRACE)
    return str(place)


@pytest.mark.parametrize(
    ("named", "ids"),
    [
        (["a=17"], {"a": 17}),
        (["a=17", "b=8"], {"a": 17, "b": 8}),
        (["b=[8, 9]"], {"b": [8, 9]}),
        (["a=17", "k=u"], {"a": 17, "k": "u"}),
        ([], {}),
    ],
)
def test_it_says_what_the_function_says(
    invoke: Invoke, trace: str, named: list[str], ids: dict[str, object]
) -> None:
    where = [part for text in named for part in ("--where", text)]
    answer = uc.why_not(uc.read_traces([trace]), QUERY, ids)
    done = invoke("why-not", QUERY, trace, *where)
    assert (done.exit_code, done.stdout) == (0, f"{answer}\n")
    assert json.loads(invoke("why-not", QUERY, trace, *where, "--json").stdout) == json.loads(
        answer.to_json()
    )


def test_texts_and_variables_that_are_left_out(invoke: Invoke, tmp_path: Path) -> None:
    place = tmp_path / "trace.csv"
    place.write_text("type,id,lower,upper\nA,x,1,3\nB,y,14,16\nC,17,30,32\n")
    query = "PATTERN SEQ(A a, B? b, C+ c[]) WITHIN 10"
    named = ["--where", "a=x", "--where", "b=null", "--where", 'c=["17"]']
    answer = json.loads(invoke("why-not", query, str(place), *named, "--json").stdout)
    assert answer["misses"][0]["events"] == {"a": "x", "b": None, "c": ["17"]}


def test_a_match_is_an_error_that_shows_it(invoke: Invoke, trace: str) -> None:
    done = invoke("why-not", QUERY.replace("10", "99"), trace, "--where", "a=17")
    assert done.exit_code == 1
    assert "error: there is a match: k = u, a = 17, b = [8], certain, from 1 to 16" in done.stderr


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("a", "write NAME=ID"),
        ("=1", "write NAME=ID"),
        ("a=x", "the column id is of type int64"),
        ("c=1", "the pattern has no such variable; it has a, b"),
        ("a=1", "a=1: no event has this id"),
        ("a=[17]", "a takes one event"),
        ("a=null", "no branch of the pattern"),
    ],
)
def test_what_cannot_be_named(invoke: Invoke, trace: str, named: str, message: str) -> None:
    done = invoke("why-not", QUERY, trace, "--where", named)
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_name_twice(invoke: Invoke, trace: str) -> None:
    done = invoke("why-not", QUERY, trace, "--where", "a=17", "--where", "a=8")
    assert (done.exit_code, "names a twice" in done.stderr) == (2, True)
