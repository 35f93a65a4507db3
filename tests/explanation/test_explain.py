"""explain: the chosen plan with estimated and actual numbers, in words and as JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import uncertain_cep as uc
from tests.optimizer.traces import skewed
from uncertain_cep.cli import main
from uncertain_cep.executor import candidates, execute
from uncertain_cep.operators.counters import Counters
from uncertain_cep.optimizer.cost_model import CostModel
from uncertain_cep.optimizer.measuring import measure
from uncertain_cep.plan import make_plan

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE a.x = c.x AND b.y < c.y AND a.y > 0.5 WITHIN 40"
TABLE = skewed(900, (1, 3, 5), seed=11)
TREE = "((a c) b)"


def explained(query: str = QUERY, table: pa.Table = TABLE, **options: Any) -> dict[str, Any]:
    facts = json.loads(uc.explain(query, table, format="json", **options))
    assert isinstance(facts, dict)
    return facts


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
    facts = explained()
    assert [part["in_match_windows"] for part in facts["components"]] == [
        part["candidates"] for part in facts["choice"]["statistics"]["components"]
    ]
    assert facts["components"][0]["predicates"] == ["a.y > 0.5"]
    assert facts["window_ticks"] == 40
    assert facts["predicates"] == ["a.x = c.x", "b.y < c.y"]
    assert facts["choice"]["why"]
    assert "run" not in facts["choice"]


def test_the_single_components_that_are_joined_before_others_are_grown_are_shown() -> None:
    query = "PATTERN SEQ(A a, B+ b[], C c, B d) WHERE a.x = d.x WITHIN 9"
    choice = explained(query, planner="((a d) c)", analyze=True)["choice"]
    assert "single components" in choice["why"]
    assert choice["tree"]["components"] == ["a", "c", "d"]
    assert "in pattern order" in explained(query)["choice"]["why"]


def test_the_single_components_of_a_set_that_are_joined_first_are_shown() -> None:
    query = "PATTERN SEQ(AND(A a, B b), C c) WHERE a.x = c.x AND b.y < c.y WITHIN 9"
    choice = explained(query, planner="((a c) b)", analyze=True)["choice"]
    root = choice["tree"]
    assert root["components"] == ["a", "b", "c"]
    assert [child["components"] for child in root["children"]] == [["a", "c"], ["b"]]
    # No negation, no Kleene component: what is joined are the matches.
    assert root["actual"] == choice["run"]["matches"] == uc.match(TABLE, query).num_rows > 0
    text = uc.explain(query, TABLE, planner="((a c) b)", analyze=True)
    assert "tree: partial matches" in text
    assert "then partial-order search: " in text


def test_the_join_in_pattern_order_has_numbers_for_each_pivot() -> None:
    query = "PATTERN SEQ(A a, B b, C c) WITHIN 40"
    matches = uc.match(TABLE, query)
    pivots = pivots_of(matches)
    for evaluation in ("auto", "query_order"):
        choice = explained(query, evaluation=evaluation, analyze=True)["choice"]
        assert (choice["join"], choice["tree"]) == ("pivot", None)
        assert ["".join(one["order"]) for one in choice["passes"]] == ["abc", "bac", "cba"]
        for pivot, one in enumerate(choice["passes"]):
            assert one["nodes"][-1]["components"] == ["a", "b", "c"]
            assert one["nodes"][-1]["actual"] == pivots.count(pivot)
        estimated = sum(one["nodes"][-1]["estimated"] for one in choice["passes"])
        assert estimated == pytest.approx(matches.num_rows, rel=0.3)
    text = uc.explain(query, TABLE, analyze=True)
    assert "  a b c: " in text
    assert f"{pivots.count(0):,} actual" in text
    assert explained("PATTERN SEQ(A a, B b) WITHIN 9", evaluation="any_state")["choice"]["passes"] is None


def pivots_of(matches: pa.Table) -> list[int]:
    """Return for each match the first component whose event ends first, one tick a position taken off."""
    upper = dict(zip(TABLE["id"].to_pylist(), TABLE["upper"].to_pylist(), strict=True))
    ends = [
        [upper[row[variable]] - j for j, variable in enumerate("abc")]
        for row in matches.select(["a", "b", "c"]).to_pylist()
    ]
    return [row.index(min(row)) for row in ends]


def test_latency_that_is_weighed_is_shown() -> None:
    choice = explained(planner="dp_bushy", latency_weight=2.0)["choice"]
    assert choice["latency"]["weight"] == 2.0
    assert choice["latency"]["waiting"] > 0.0
    assert "each counts 2 times" in uc.explain(QUERY, TABLE, planner="dp_bushy", latency_weight=2.0)
    assert "latency" not in uc.explain(QUERY, TABLE, planner="dp_bushy")
    assert explained(evaluation="any_state")["choice"]["latency"]["weight"] == 0.0


def test_a_run_counts_each_branch_by_itself() -> None:
    query = "PATTERN OR(SEQ(A a, B b), SEQ(C x, A y)) WHERE a.x = b.x AND x.y < y.y WITHIN 20"
    plan = make_plan(uc.parse(query), TABLE.schema, planner="trivial")
    together = Counters()
    rows = sum(batch.num_rows for batch in execute(plan, TABLE, counters=together))
    assert rows == uc.match(TABLE, query).num_rows
    assert not together.nodes
    for number, branch in enumerate(plan.branches):
        alone = Counters()
        matches = sum(batch.num_rows for batch in execute(branch, TABLE, counters=alone))
        assert together.branches[number] == alone
        assert alone.nodes[0, 1] == matches
    assert together.branches[0] != together.branches[1]


def test_branches_are_explained_one_by_one() -> None:
    query = "PATTERN OR(SEQ(A a, B b), SEQ(A x, C c)) WITHIN 20"
    assert uc.explain(query, TABLE, analyze=True).count("matches in ") == 2
    facts = explained(query, analyze=True)
    total = sum(branch["choice"]["run"]["matches"] for branch in facts["branches"])
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
    facts = json.loads(uc.explain(QUERY, format="json"))
    assert facts["window"] == {"amount": 40, "unit": "ticks"}
    assert [part["variable"] for part in facts["components"]] == ["a", "b", "c"]


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
    weighed = ["--planner", "greedy", "--latency-weight", "3"]
    assert "each counts 3 times" in CliRunner().invoke(main, ["explain", QUERY, trace, *weighed]).output
    answers = [
        CliRunner().invoke(main, ["match", QUERY, trace, "--planner", "greedy", *more]).stdout.splitlines()
        for more in ([], ["--latency-weight", "3"])
    ]
    assert len(answers[0]) > 1
    assert sorted(answers[0]) == sorted(answers[1])
    wrong = CliRunner().invoke(main, ["explain", QUERY, trace, "--planner", TREE, "--latency-weight", "3"])
    assert wrong.exit_code == 2
    alone = CliRunner().invoke(main, ["explain", QUERY, "--analyze"])
    assert alone.exit_code == 2


def _negated(lengths: list[int], of_type: str = "N", events: int = 0) -> pa.Table:
    """Return an A, a B, negated events of some lengths, and others, in an order that is none."""
    types = ["A", "B", *[of_type] * len(lengths), *["C"] * events]
    size = len(types)
    lower = [(7 * number) % size for number in range(size)]
    long = [0, 0, *[length - 1 for length in lengths], *[0] * events]
    return pa.table(
        {
            "type": types,
            "id": range(size),
            "lower": lower,
            "upper": [low + length for low, length in zip(lower, long, strict=True)],
            "y": [0, 0, *range(len(lengths)), *[0] * events],
        }
    )


@pytest.mark.parametrize("events", [0, 20_000])
def test_negated_events_have_the_lengths_that_they_have(events: int) -> None:
    """Also where a sample of all events has none of them."""
    table = _negated([51, 51, 51, 11, 999], events=events)
    query = "PATTERN SEQ(A a, !N n, B b) WHERE n.y < 4 WITHIN 40"
    part = explained(query, table)["choice"]["statistics"]["negated"][0]
    assert part["lengths"] == {"mean": 40.0, "median": 50.0, "most": 50.0, "longest": 50.0}
    assert part["type_share"] == pytest.approx(5 / table.num_rows)
    assert part["local"] == [pytest.approx(4 / 5)]
    assert part["candidates"] == pytest.approx(4)
    assert "intervals of 41 ticks on average, half up to 51, nine in ten to 51, all to 51" in uc.explain(
        query, table
    )


def test_lengths_leave_out_ticks_of_probability_zero() -> None:
    table = _negated([5])
    pmfs = pa.array([None, None, [0.0, 0.5, 0.5, 0.0, 0.0]], pa.list_(pa.float64()))
    facts = explained("PATTERN SEQ(A a, !N n, B b) WITHIN 40", table.append_column("pmf", pmfs))
    assert facts["choice"]["statistics"]["negated"][0]["lengths"]["mean"] == 1.0


def test_negated_events_that_change_alone_are_measured_anew() -> None:
    query = "PATTERN SEQ(A a, !N n, B b) WITHIN 40"
    means = [
        explained(query, _negated(lengths))["choice"]["statistics"]["negated"][0]["lengths"]["mean"]
        for lengths in ([5], [9])
    ]
    assert means == [4.0, 8.0]


def test_longer_negated_events_cost_more() -> None:
    query = uc.parse("PATTERN SEQ(A a, !N n, B b) WITHIN 40")
    costs = []
    for length in (1, 41):
        table = _negated([length] * 3)
        plan = make_plan(query, table.schema)
        model = CostModel.of(plan, measure(plan, table, candidates(plan, table)))
        costs.append(model.checks[0].candidates)
    # In reach of a window of 40 ticks are events that begin up to their length before it.
    assert costs[1] == pytest.approx(2 * costs[0])


def test_singular_and_plural() -> None:
    text = uc.explain("PATTERN SEQ(A a, !N n, B b) WITHIN 1", _negated([1]), analyze=True)
    assert "1 candidate, intervals of 1 tick]" in text
    assert "intervals of 1 tick on average" in text
    assert "1 partition]" in text
    assert "window           1 tick\n" in text
    assert not re.search(r"\b1 (ticks|candidates|partitions|matches)\b", text)
    assert "2 ticks" in uc.explain("PATTERN SEQ(A a) WITHIN 2", _negated([1]))
    assert "no length" not in uc.explain("PATTERN SEQ(A a, Z z) WITHIN 2", _negated([1]))
    assert "window       1 tick\n" in uc.explain("PATTERN SEQ(A a) WITHIN 1")
    assert uc.explain("PATTERN SEQ(A a) WITHIN 1 LIMIT 1").endswith("limit        1 match")


def test_an_explanation_is_shown_as_lines() -> None:
    text = uc.explain("PATTERN SEQ(A a, B b) WHERE a.x < 3 WITHIN 5")
    assert repr(text) == str(text)
    assert "\n" in repr(text)
    html: str = text._repr_html_()  # type: ignore[attr-defined]
    assert html.startswith("<pre>")
    assert json.loads(uc.explain("PATTERN SEQ(A a) WITHIN 5", format="json"))


def test_queries_and_plans_are_shown_shortly() -> None:
    query = uc.parse("PATTERN SEQ(A a, B b)\n  WHERE a.x < 3\n  WITHIN 5")
    assert repr(query) == "<Query PATTERN SEQ(A a, B b) WHERE a.x < 3 WITHIN 5>"
    assert query._repr_html_() == "<pre>PATTERN SEQ(A a, B b)\n  WHERE a.x &lt; 3\n  WITHIN 5</pre>"
    long = uc.parse("PATTERN SEQ(" + ", ".join(f"A a{k}" for k in range(40)) + ") WITHIN 99")
    assert len(repr(long)) < 80
    assert repr(long).endswith(" ...>")
    schema = pa.schema({"type": pa.string(), "id": pa.int64(), "lower": pa.int64(), "upper": pa.int64()})
    plan = make_plan(long, schema)
    assert repr(plan).startswith("<EvaluationPlan of <Query PATTERN")
    assert plan._repr_html_().startswith("<pre>&lt;EvaluationPlan of ")


def test_what_may_not_have_happened_spoils_what_another_evaluation_chooses() -> None:
    events = pa.table(
        {"type": ["A", "B"], "id": [1, 2], "lower": [0, 3], "upper": [2, 5], "probability": [1.0, 0.5]}
    )
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) WITHIN 9"
    assert "point-based automaton" not in uc.explain(query, events, evaluation="point")
    assert "point-based automaton" in uc.explain(query, events.drop(["probability"]), evaluation="point")


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A a, B b) WHERE TIME(b) - TIME(a) <= 3 WITHIN 9",
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) WITHIN 9",
    ],
)
def test_method_is_that_of_the_operator(query: str) -> None:
    events = pa.table(
        {
            "type": ["A", "B"],
            "id": [1, 2],
            "lower": [1, 3],
            "upper": [4, 6],
            "source": ["x", "x"],
            "offset_lower": [0, 0],
            "offset_upper": [2, 2],
        }
    )
    text = str(uc.explain(query, events))
    assert json.loads(uc.explain(query, events, format="json"))["operator"] == "backtracking search"
    assert "backtracking search: events taken one by one" in text
    assert "joined without dead ends" not in text
    alone = str(uc.explain(query, events.drop_columns(["source", "offset_lower", "offset_upper"])))
    assert "joined without dead ends" in alone
