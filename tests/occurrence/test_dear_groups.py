"""Groups that take too many steps: certain bounds, estimates, and the answers of the other groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, note
from hypothesis import strategies as st

import uncertain_cep as uc
from confidence.budget import steps_per_call
from confidence.groups import bounding, weighing_groups
from confidence.groups.counting import probabilities_of_groups
from confidence.kernel import plain_for, runs_plain, seconds_plain
from tests.cases.existence import doubtful
from tests.cases.grouped import Grouping, groupings
from tests.cases.language import language_cases
from tests.cases.sampling import FEWER
from uncertain_cep.cli import main
from uncertain_cep.errors import ConfidenceCostError, OptionError
from uncertain_cep.executor import execute
from uncertain_cep.occurrence import answers
from uncertain_cep.plan import MatchOptions, make_plan

EVENTS = pa.table(
    {
        "type": ["A", "A", "B", "B", "A", "B"],
        "id": ["p", "q", "r", "s", "t", "u"],
        "lower": [0, 2, 1, 2, 50, 48],
        "upper": [3, 5, 6, 4, 50, 55],
        "host": ["x", "x", "x", "x", "y", "y"],
    }
)
QUERY = "PATTERN SEQ(A a, B b) WHERE [host] WITHIN 9"
"""Four matches on x, which share events, and one on y."""


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make groups of several matches too dear, and their parts of several, too."""
    monkeypatch.setattr(answers, "MOST_GROUP_STEPS", 3)
    monkeypatch.setattr(bounding, "_FEWEST_STEPS", 40)


def rows_of(clauses: str, **options: Any) -> list[dict[str, Any]]:
    return uc.match(EVENTS, f"{QUERY} {clauses}", **options).to_pylist()  # type: ignore[no-any-return]


EXACT = {row["host"]: row["probability"] for row in rows_of("RETURN PROBABILITY BY host")}


@pytest.mark.compiled
def test_a_dear_group_is_no_work_for_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain Python takes few steps of it: to give up 900 matches, all tied, it would take 40 s."""
    calls = []
    kernel = probabilities_of_groups

    def called(*arguments: Any) -> Any:
        calls.append((runs_plain(), arguments[2], steps_per_call()))
        return kernel(*arguments)

    monkeypatch.setattr(weighing_groups, "probabilities_of_groups", called)
    tied = pa.table(
        {
            "type": ["A"] * 30 + ["B"] * 30,
            "id": range(60),
            "lower": [3 * place for place in range(60)],
            "upper": [3 * place + 200 for place in range(60)],
        }
    )
    query = "PATTERN SEQ(A a, B b) WITHIN 2000 RETURN PROBABILITY"
    with plain_for(seconds_plain() + 1_000), pytest.raises(ConfidenceCostError):
        list(execute(make_plan(uc.parse(query), tied.schema, MatchOptions()), tied))
    assert [is_plain for is_plain, _, _ in calls][-1] is False
    assert all(steps <= few for is_plain, steps, few in calls if is_plain)


def test_columns() -> None:
    """They are those of the options, whatever the groups take."""
    both = [("exact", pa.bool_()), ("probability_lower", pa.float64()), ("probability_upper", pa.float64())]
    columns = [("p", pa.float64()), *both]
    query = f"{QUERY} RETURN PROBABILITY AS p"
    assert uc.match(EVENTS, query, undecided="bounds").schema == pa.schema(columns)
    columns.insert(2, ("std_error", pa.float64()))
    assert uc.match(EVENTS, query, approximate=0.1).schema == pa.schema(columns)
    (row,) = uc.match(EVENTS, query, approximate=0.1).to_pylist()
    assert row["exact"]
    assert row["std_error"] == 0.0
    assert row["probability_lower"] == row["p"] == row["probability_upper"]


@pytest.mark.usefixtures("few_steps")
def test_other_groups_keep_their_answers() -> None:
    with pytest.raises(ConfidenceCostError, match=r"host = 'x' .* approximate=0.01, .*undecided=\"bounds\""):
        rows_of("RETURN PROBABILITY BY host")
    dear, easy = rows_of("RETURN PROBABILITY BY host", undecided="bounds")
    assert easy["probability"] == EXACT["y"]
    assert easy["exact"]
    assert dear["probability"] is None
    assert not dear["exact"]
    assert 0.0 < dear["probability_lower"] < EXACT["x"] < dear["probability_upper"] <= 1.0


@pytest.mark.usefixtures("few_steps")
def test_estimates_are_between_the_bounds() -> None:
    dear, easy = rows_of("RETURN PROBABILITY BY host", approximate=0.01)
    assert easy["exact"]
    assert not dear["exact"]
    assert dear["probability_lower"] <= dear["probability"] <= dear["probability_upper"]
    assert abs(dear["probability"] - EXACT["x"]) <= 5 * dear["std_error"]
    assert 0.0 < dear["std_error"] <= 0.01
    several = rows_of("RETURN PROBABILITY BY host", approximate=0.01, threads=2)
    assert several == [dear, easy]
    other = rows_of("RETURN PROBABILITY BY host", approximate=uc.Approximation(0.01, seed=7))
    assert other[0]["probability"] != dear["probability"]


@pytest.mark.usefixtures("few_steps")
def test_an_estimate_can_be_too_dear_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_CONFIDENCE_STEPS", 10)
    with pytest.raises(ConfidenceCostError, match=r"allow a standard error above 0\.01"):
        rows_of("RETURN PROBABILITY BY host", approximate=0.01)
    dear, _ = rows_of("RETURN PROBABILITY BY host", approximate=0.01, undecided="bounds")
    assert dear["probability"] is None
    assert dear["std_error"] is None
    assert dear["probability_lower"] < dear["probability_upper"]


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize(
    ("having", "hosts"),
    [
        ("PROBABILITY >= 0.99", ["x"]),
        ("PROBABILITY > 1", []),
        ("PROBABILITY <= 0.01", []),
        ("PROBABILITY < 0.99", ["x", "y"]),
        ("0.99 <= PROBABILITY", ["x"]),
        ("host = 'y'", ["y"]),
        ("host = 'y' AND PROBABILITY >= 0.1", ["y"]),
        ("PROBABILITY > 0.98 AND PROBABILITY < 0.99", ["x"]),
        ("host = 'x' OR PROBABILITY > 2", ["x"]),
        ("probability_lower > 0.1 AND NOT exact", ["x"]),
    ],
)
def test_having_drops_what_bounds_rule_out(having: str, hosts: list[str]) -> None:
    dear, easy = rows_of("RETURN PROBABILITY BY host", undecided="bounds")
    assert 0.01 < dear["probability_lower"] < 0.98
    assert dear["probability_upper"] > 0.99
    assert easy["probability"] == 0.625
    kept = rows_of(f"HAVING {having} RETURN PROBABILITY BY host", undecided="bounds")
    assert [row["host"] for row in kept] == hosts


@pytest.mark.usefixtures("few_steps")
def test_undecided_rows_come_last() -> None:
    rows = rows_of("RETURN PROBABILITY BY host ORDER BY PROBABILITY DESC", undecided="bounds")
    assert [row["host"] for row in rows] == ["y", "x"]
    assert (
        rows_of("RETURN PROBABILITY BY host ORDER BY PROBABILITY DESC LIMIT 1", undecided="bounds")
        == rows[:1]
    )


def test_options_are_checked() -> None:
    with pytest.raises(OptionError, match="undecided='no' is unknown"):
        rows_of("RETURN PROBABILITY", undecided="no")
    with pytest.raises(OptionError, match="is for groups of matches"):
        rows_of("", undecided="bounds")


@pytest.mark.usefixtures("few_steps")
def test_the_command_takes_the_options(tmp_path: Path) -> None:
    trace, out = tmp_path / "trace.parquet", tmp_path / "rows.parquet"
    pq.write_table(EVENTS, trace)
    query = f"{QUERY} RETURN PROBABILITY BY host"
    for arguments, options in (
        (["--undecided", "bounds"], {"undecided": "bounds"}),
        (["--approximate", "0.05", "--seed", "3"], {"approximate": uc.Approximation(0.05, seed=3)}),
    ):
        run = CliRunner().invoke(
            main, ["match", query, str(trace), *arguments, "-o", str(out), "--overwrite"]
        )
        assert run.exit_code == 0, run.output
        assert pq.read_table(out).to_pylist() == uc.match(EVENTS, query, **options).to_pylist()


@FEWER
@given(
    st.one_of(language_cases(most=4), doubtful(language_cases(most=4))),
    st.sampled_from([1, 30, 300]),
    st.sampled_from([{"undecided": "bounds"}, {"approximate": 0.05}]),
    st.data(),
)
def test_bounds_hold_the_probability(
    case: Any, steps: int, options: dict[str, Any], data: st.DataObject
) -> None:
    grouping: Grouping = data.draw(groupings(case.query()))
    text = case.text(grouping.clause)
    note(text)
    expected = grouping.answer(case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "MOST_GROUP_STEPS", steps)
        patch.setattr(bounding, "_FEWEST_STEPS", steps)
        rows = uc.match(case.trace.table(), text, **options).to_pylist()
    for row in rows:
        bucket = row.get("bucket")
        truth = float(expected.get((tuple(row[name] for name in grouping.by), bucket), 0.0))
        assert row["probability_lower"] <= truth * (1 + 1e-9)
        assert row["probability_upper"] >= truth * (1 - 1e-9)
        if row["exact"]:
            assert row["probability"] == pytest.approx(truth, rel=1e-9)
        elif row["probability"] is not None:
            assert abs(row["probability"] - truth) <= 6 * row["std_error"] + 1e-12
    keys = {(tuple(row[name] for name in grouping.by), row.get("bucket")) for row in rows}
    assert keys >= expected.keys()
