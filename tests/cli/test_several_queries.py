"""``uncertain-cep match`` with several queries: the matches of one are events of the next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke
from uncertain_cep.cli.outputs import ABOUT_FILE

FIRST = "PATTERN SEQ(A a, B b) WITHIN 4 RETURN b.node AS node\n"
SECOND = "PATTERN SEQ(Pair p, C c) WHERE p.confidence > 0.1 AND p.node = c.node WITHIN 9"


@pytest.fixture
def first(tmp_path: Path) -> Path:
    file = tmp_path / "Pair.sase"
    file.write_text(FIRST)
    return file


def test_matches_are_events_of_the_next_query(
    invoke: Invoke, parquet: Path, first: Path, tmp_path: Path
) -> None:
    second = tmp_path / "second.sase"
    second.write_text(SECOND)
    result = invoke("match", first, second, parquet, "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert "Pair: 1 match\n" in result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    # The trace's ids end at 4.
    assert {(row["p"], row["c"]) for row in rows} == {(5, 2), (5, 4)}


def test_a_name_for_the_matches_and_queries_as_text(invoke: Invoke, parquet: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    third = "PATTERN SEQ(Pair p, `Pair and C` q) WITHIN 20 RETURN EXPECTED COUNT"
    result = invoke("match", FIRST, SECOND, third, parquet, "--as", "Pair", "--as", "Pair and C", "-o", out)
    assert result.exit_code == 0, result.stderr
    assert json.loads((out / ABOUT_FILE).read_text())["before"] == {"Pair": FIRST, "Pair and C": SECOND}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{first}", "{parquet}", "{first}"], "queries come before the traces"),
        (["{first}", SECOND], "there is no trace"),
        ([FIRST, SECOND, "{parquet}"], "a query that is given as text has no name for its matches: add --as"),
        (["{first}", "{first}", SECOND, "{parquet}"], "the matches of two queries would be called Pair"),
        (["{first}", "{parquet}", "--as", "X"], "it was given 1 times for 0 such queries"),
        (["{first}", SECOND, "{parquet}", "--as", "A"], "the trace has events of type A already"),
        (
            ["PATTERN SEQ(A a) WITHIN 1 RETURN EXPECTED COUNT", SECOND, "{parquet}", "--as", "Pair"],
            "Pair returns expected counts",
        ),
        (
            ["{first}", SECOND, "{parquet}", "--engine", "spark"],
            "not supported yet: several queries on Spark",
        ),
    ],
)
def test_misuse(invoke: Invoke, parquet: Path, first: Path, arguments: list[str], message: str) -> None:
    command_line = [
        argument.replace("{first}", str(first)).replace("{parquet}", str(parquet)) for argument in arguments
    ]
    result = invoke("match", *command_line)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_each_query_takes_its_parameters(invoke: Invoke, parquet: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "Pair.sase", tmp_path / "second.sase"
    first.write_text("PATTERN SEQ(A a, B b) WITHIN $window RETURN b.node AS node")
    second.write_text("PATTERN SEQ(Pair p, C c) WHERE p.confidence > $least WITHIN $window")
    arguments = ("--param", "window=9", "--param", "$least=10%")
    result = invoke("match", first, second, parquet, *arguments)
    assert result.exit_code == 0, result.stderr
    written = tuple(
        text.read_text().replace("$window", "9").replace("$least", "0.1") for text in (first, second)
    )
    first.write_text(written[0])
    assert result.stdout == invoke("match", first, written[1], parquet).stdout
    second.write_text(written[1])
    for wrong, said in (
        (arguments, "the query has no $least (it has none)"),
        (("--param", "x"), "write NAME=VALUE"),
        (("--param", "x=1", "--param", "x=2"), "--param gives x twice"),
    ):
        result = invoke("match", first, second, parquet, *wrong)
        assert result.exit_code == 2
        assert said in result.stderr


def test_every_command_on_a_query_takes_parameters(invoke: Invoke, parquet: Path, tmp_path: Path) -> None:
    query = "PATTERN SEQ(A a, B b) WHERE a.node = $node WITHIN $window"
    arguments = ("--param", "node=n", "--param", "window=9")
    page = tmp_path / "page.html"
    assert "a.node = 'n'" in invoke("explain", query, parquet, *arguments).stdout
    assert invoke("validate", parquet, "--query", query, *arguments).exit_code == 0
    assert invoke("report", query, parquet, "-o", page, *arguments).exit_code == 0
    assert "$window = 9" in page.read_text()
    assert "no value for $window" in invoke("explain", query, parquet, *arguments[:2]).stderr
