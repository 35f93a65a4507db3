"""explain: the chosen plan with estimated and actual numbers, in words and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import uncertain_cep as uc
from tests.plan.traces import skewed
from uncertain_cep.cli import main

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE a.x = c.x AND b.y < c.y AND a.y > 0.5 WITHIN 40"
TABLE = skewed(900, (1, 3, 5), seed=11)
TREE = "((a c) b)"


def explained(query: str = QUERY, table: pa.Table = TABLE, **options: Any) -> dict[str, Any]:
    found = json.loads(uc.explain(query, table, format="json", **options))
    assert isinstance(found, dict)
    return found


def test_a_plan_is_shown_as_a_tree_with_what_is_estimated() -> None:
    text = uc.explain(QUERY, TABLE, planner=TREE)
    lines = [line.split("  ", 1)[-1].strip() for line in text.splitlines()]
    place = lines.index(TREE)
    assert [line.split(":")[0] for line in lines[place + 1 : place + 6]] == ["a b c", "a c", "a", "c", "b"]
    assert all(line.endswith("estimated") for line in lines[place + 1 : place + 6])
    assert "actual" not in text
    assert "the caller's tree" in text
    assert "a.y > 0.5: " in text
    assert "a.x = c.x: " in text


def test_a_run_sets_actual_numbers_beside_the_estimates() -> None:
    matches = uc.match(TABLE, QUERY).num_rows
    text = uc.explain(QUERY, TABLE, planner=TREE, analyze=True)
    assert f"estimated, {matches:,} actual" in text
    assert f"{matches:,} matches in " in text
    choice = explained(planner=TREE, analyze=True)["choice"]
    root = choice["tree"]
    assert (root["components"], root["actual"], choice["run"]["matches"]) == (
        ["a", "b", "c"],
        matches,
        matches,
    )
    assert [child["components"] for child in root["children"]] == [["a", "c"], ["b"]]
    b = root["children"][1]
    assert b["actual"] == pytest.approx(b["estimated"])
    assert (choice["join"], choice["planner"]) == ("tree", "given")


def test_json_has_what_is_known_and_why() -> None:
    found = explained()
    assert [part["in_match_windows"] for part in found["components"]] == [
        part["candidates"] for part in found["choice"]["statistics"]["components"]
    ]
    assert found["components"][0]["predicates"] == ["a.y > 0.5"]
    assert found["window_ticks"] == 40
    assert found["predicates"] == ["a.x = c.x", "b.y < c.y"]
    assert found["choice"]["why"]
    assert "run" not in found["choice"]


def test_the_single_components_that_are_joined_before_others_are_grown_are_shown() -> None:
    query = "PATTERN SEQ(A a, B+ b[], C c, B d) WHERE a.x = d.x WITHIN 9"
    found = explained(query, planner="((a d) c)", analyze=True)["choice"]
    assert "single components" in found["why"]
    assert found["tree"]["components"] == ["a", "c", "d"]
    assert "in pattern order" in explained(query)["choice"]["why"]


def test_branches_are_explained_one_by_one() -> None:
    query = "PATTERN OR(SEQ(A a, B b), SEQ(A x, C c)) WITHIN 20"
    assert uc.explain(query, TABLE, analyze=True).count("matches in ") == 2
    found = explained(query, analyze=True)
    total = sum(branch["choice"]["run"]["matches"] for branch in found["branches"])
    assert total == uc.match(TABLE, query).num_rows


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A a, !B n, C+ c[]) WHERE n.x = a.x AND c[i].y > c[i-1].y WITHIN 20",
        "PATTERN SEQ(AND(A a, B b), C c) WHERE a.x = c.x WITHIN 9",
        "PATTERN SEQ(A a, B b) WITHIN 9 RETURN EXPECTED COUNT",
        "PATTERN SEQ(A a) WITHIN 9",
        "PATTERN SEQ(A a, Z z) WITHIN 9",
        "PATTERN SEQ(A a, B b, C c) WITHIN 2",
    ],
)
@pytest.mark.parametrize("analyze", [False, True])
def test_whatever_is_asked_is_explained(query: str, analyze: bool) -> None:
    assert "why" in uc.explain(query, TABLE, analyze=analyze)
    assert explained(query, analyze=analyze)["choice"]["why"]


def test_a_query_alone_is_explained_too() -> None:
    found = json.loads(uc.explain(QUERY, format="json"))
    assert found["window"] == {"amount": 40, "unit": "ticks"}
    assert [part["variable"] for part in found["components"]] == ["a", "b", "c"]


def test_bad_options_are_refused() -> None:
    with pytest.raises(uc.OptionError, match="use text or json"):
        uc.explain(QUERY, TABLE, format="xml")
    with pytest.raises(uc.OptionError, match="give it events"):
        uc.explain(QUERY, analyze=True)


def test_the_command_explains_in_words_and_json(tmp_path: Any) -> None:
    trace = str(tmp_path / "trace.parquet")
    pq.write_table(TABLE, trace)
    words = CliRunner().invoke(main, ["explain", QUERY, trace, "--planner", TREE, "--analyze"])
    assert words.exit_code == 0
    assert "actual" in words.output
    as_json = CliRunner().invoke(main, ["explain", QUERY, trace, "--planner", TREE, "--json"])
    assert json.loads(as_json.stdout)["choice"]["tree"]["components"] == ["a", "b", "c"]
    alone = CliRunner().invoke(main, ["explain", QUERY, "--analyze"])
    assert alone.exit_code == 2
