"""Options beside the whole language: what is refused, what is too dear, and what is estimated."""

from __future__ import annotations

import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.weighers.forcing import leave_out
from uncertain_cep.operators import backtracking as growing
from uncertain_cep.operators import costly_matches, next_match
from uncertain_cep.plurals import first_few
from uncertain_cep.weighers.held_ends import HeldChains

CONSTRUCTS = {
    "SEQ(A+ a[])": "Kleene components",
    "SEQ(A a, !B n, A b)": "negation",
}


def crowd() -> pa.Table:
    """Events all over each other: what is forbidden in one gap of a match reaches into the others."""
    lower = [0, 2, 5, 9, 10, 14, 18]
    upper = [low + 59 for low in lower]
    return pa.table({"type": ["A"] * 7, "id": list(range(7)), "lower": lower, "upper": upper, "k": ["u"] * 7})


@pytest.mark.parametrize("pattern", CONSTRUCTS)
@pytest.mark.parametrize("evaluation", ["any_state", "selectivity"])
def test_other_evaluations_refuse_them(pattern: str, evaluation: str) -> None:
    message = f"evaluation='{evaluation}' does not support {CONSTRUCTS[pattern]}"
    with pytest.raises(uc.OptionError, match=message):
        uc.match(crowd(), f"PATTERN {pattern} WITHIN 5", evaluation=evaluation)


@pytest.mark.parametrize("strategy", ["partition_contiguity", "strict_contiguity"])
def test_other_evaluations_refuse_contiguity(strategy: str) -> None:
    text = f"PATTERN SEQ(A a, A b) WHERE {strategy}(a, b) WITHIN 5"
    with pytest.raises(uc.OptionError, match=f"does not support {strategy}"):
        uc.match(crowd(), text, evaluation="any_state")
    with pytest.raises(uc.OptionError, match=f"does not support {strategy} over a stream"):
        uc.IncrementalMatcher(text, crowd().schema, evaluation="any_state")


@pytest.mark.parametrize("pattern", CONSTRUCTS)
def test_runs_over_streams_refuse_them(pattern: str) -> None:
    with pytest.raises(uc.OptionError, match=f"does not support {CONSTRUCTS[pattern]} over a stream"):
        uc.IncrementalMatcher(f"PATTERN {pattern} WITHIN 5", crowd().schema, evaluation="any_state")


KLEENE = "PATTERN SEQ(A a, A+ b[], A c) WHERE skip_till_next_match(a, b[], c) { count(b[]) <= 1 } WITHIN 100"
NEGATED = "PATTERN SEQ(!A n, A a, A b, A c, !A m) WHERE n.k = a.k WITHIN 100"


@pytest.mark.compiled
@pytest.mark.parametrize("query", [KLEENE, NEGATED])
def test_too_dear_is_an_error_that_names_the_match(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out(HeldChains, monkeypatch)
    monkeypatch.setattr(growing, "MOST_CONFIDENCE_STEPS", 10_000)
    for module in (next_match, costly_matches):
        monkeypatch.setattr(module, "MOST_CONFIDENCE_STEPS", 10_000)
    with pytest.raises(uc.ConfidenceCostError, match=r"\(a=\d, b=.*, c=\d\).*approximate=") as caught:
        uc.match(crowd(), query)
    assert caught.value.steps > 10_000


@pytest.mark.compiled
def test_an_error_about_a_long_match_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """It named all events: 150 kB for 10,000, and here 7 kB."""
    monkeypatch.setattr(growing, "MOST_CONFIDENCE_STEPS", 100)
    for module in (next_match, costly_matches):
        monkeypatch.setattr(module, "MOST_CONFIDENCE_STEPS", 100)
    count = 60
    ids = [f"{number}:{'x' * 100}" for number in range(count)]
    lower = [2 * number for number in range(count)]
    types = ["S", *["A"] * (count - 2), "E"]
    events = pa.table({"type": types, "id": ids, "lower": lower, "upper": [tick + 1 for tick in lower]})
    query = (
        "PATTERN SEQ(S a, A+ b[], E c) WHERE skip_till_next_match(a, b[], c) AND "
        "TIME(b[i]) - TIME(b[i-1]) <= 2 WITHIN 1000"
    )
    with pytest.raises(uc.ConfidenceCostError, match=r"b=\['1:x+\.\.\., .* and 53 more\], c=") as caught:
        uc.match(events, query)
    assert len(str(caught.value)) < 1_200


@pytest.mark.parametrize(
    ("count", "shown"), [(1, "0"), (5, "0, 1, 2, 3, 4"), (1_239, "0, 1, 2, 3, 4 and 1,234 more")]
)
def test_few_of_many_are_named(count: int, shown: str) -> None:
    assert first_few([str(number) for number in range(count)]) == shown


@pytest.mark.compiled
@pytest.mark.parametrize("query", [KLEENE, NEGATED])
def test_estimates_are_near_and_marked(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(table: pa.Table) -> dict[str, dict[str, object]]:
        return {str((row["a"], row["b"], row["c"])): row for row in table.to_pylist()}

    leave_out(HeldChains, monkeypatch)
    expected = rows(uc.match(crowd(), query))
    monkeypatch.setattr(growing, "MOST_CONFIDENCE_STEPS", 400_000)
    allowed = rows(uc.match(crowd(), query, approximate=uc.Approximation(0.03, seed=3)))
    assert allowed.keys() == expected.keys()
    assert {row["exact"] for row in allowed.values()} == {True, False}
    for key, row in allowed.items():
        error, truth = row["std_error"], expected[key]["confidence"]
        assert isinstance(error, float)
        assert isinstance(truth, float)
        assert row["confidence"] == pytest.approx(truth, rel=1e-9, abs=5 * error)
        assert (error == 0.0) == row["exact"]


@pytest.mark.compiled
def test_many_subsets_are_found_in_bounded_memory_and_stopped() -> None:
    count = 40
    table = pa.table(
        {
            "type": ["A"] * count,
            "id": list(range(count)),
            "lower": list(range(count)),
            "upper": list(range(count)),
        }
    )
    with pytest.raises(uc.MatchLimitError):
        uc.match(table, "PATTERN SEQ(A+ a[]) WITHIN 1000", max_matches=100_000)
    batch = next(iter(uc.iter_matches(table, "PATTERN SEQ(A+ a[]) WITHIN 1000", batch_rows=1000)))
    assert 0 < batch.num_rows <= 1000


def test_a_series_longer_than_anything_reserved() -> None:
    count = 300
    table = pa.table(
        {
            "type": ["A"] * count,
            "id": list(range(count)),
            "lower": list(range(count)),
            "upper": list(range(count)),
        }
    )
    query = (
        "PATTERN SEQ(A+ a[]) WHERE strict_contiguity(a[]) { a[1].id = 0 AND count(a[]) >= 299 } WITHIN 1000"
    )
    lengths = [len(row["a"]) for row in uc.match(table, query).to_pylist()]
    assert sorted(lengths) == [299, 300]
