"""One declaration of the options: every entrance has its defaults and its checks, before an event is read."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from uncertain_cep import cli
from uncertain_cep.cli import arguments
from uncertain_cep.config.limits import MAX_MATCHES
from uncertain_cep.plan import EVALUATIONS, PLANNERS, MatchOptions, make_plan
from uncertain_cep.running.resource_limits import Limits
from uncertain_cep.spark import match as match_on_spark
from uncertain_cep.spark import match_to_parquet
from uncertain_cep.timeline.domain import Names

SCHEMA = pa.schema([("type", pa.string()), ("id", pa.int64()), ("lower", pa.int64()), ("upper", pa.int64())])
SEQUENCE = "PATTERN SEQ(A a, B b, C c) WITHIN 10"
PLANNING: Final = ("names", "tick", "evaluation", "planner", "latency_weight", "parameters")
MATCHING: Final = (*PLANNING, "known_until", "confidence", "approximate", "kleene")
ENTRANCES: Final[dict[Callable[..., Any], tuple[str, ...]]] = {
    uc.match: (*MATCHING, "undecided", "sources", "max_matches", "threads", "timeout", "memory_limit"),
    uc.iter_matches: (
        *MATCHING,
        "undecided",
        "sources",
        "max_matches",
        "batch_rows",
        "threads",
        "timeout",
        "memory_limit",
    ),
    uc.explain: (*PLANNING, "known_until", "sources", "timeout", "memory_limit"),
    match_on_spark: (*MATCHING, "undecided", "sources"),
    match_to_parquet: (*MATCHING, "undecided", "sources"),
    uc.IncrementalMatcher: (
        "sources",
        "names",
        "tick",
        "evaluation",
        "confidence",
        "approximate",
        "undecided",
        "parameters",
        "timeout",
        "memory_limit",
    ),
    uc.RuleMatcher: (
        "sources", "names", "tick", "confidence", "approximate", "undecided", "timeout", "memory_limit",
    ),
}  # fmt: skip
"""Which options each function takes."""

STREAMING: Final = {"largest_interval": None, "idle_after": None, "duplicates": "error"}

BESIDE: Final[dict[Callable[..., Any], dict[str, object]]] = {
    uc.match: {"progress": None},
    uc.iter_matches: {"progress": None},
    uc.explain: {"analyze": False, "format": "text"},
    match_on_spark: {
        "partitions": None, "slice_length": None, "prune": None, "diagnostics": None, "buckets": None,
        "metrics": "uncertain_cep", "checkpoint": None, **STREAMING
    },
    match_to_parquet: {
        "partitions": None, "slice_length": None, "prune": None, "diagnostics": None, "overwrite": False,
        "progress": None,
    },
    uc.IncrementalMatcher: {
        "largest_interval": None, "slice_length": None, "duplicates": "error", "when": "final",
    },
    uc.RuleMatcher: {"largest_interval": None, "duplicates": "error", "when": "final"},
}  # fmt: skip
"""What else each function takes by name."""

WRONG: Final[list[tuple[dict[str, Any], str]]] = [
    ({"evaluation": "fast"}, "evaluation='fast' is unknown"),
    ({"planner": "best"}, "planner='best' is unknown"),
    ({"planner": None}, "planner=None is unknown"),
    ({"latency_weight": -0.5}, "latency_weight=-0.5: it must be a finite number"),
    ({"latency_weight": float("nan")}, "latency_weight=nan"),
    ({"latency_weight": True}, "latency_weight=True"),
    ({"planner": "greedy", "evaluation": "point"}, "planner='greedy' does not go with evaluation='point'"),
    ({"latency_weight": 1, "evaluation": "any_state"}, "latency_weight=1 is heeded by a planner"),
    ({"latency_weight": 1, "planner": "((a b) c)"}, "latency_weight=1 is heeded by planners"),
    ({"known_until": "soon"}, "known_until='soon': it must be a time"),
    ({"names": {"kind": "k"}}, "its keys are among type, id"),
    ({"parameters": {"x": {1: 2}}}, r"\$x is {1: 2}: it must be a finite number"),
    ({"parameters": ("x", 1)}, "must be a mapping of names to values"),
]


def defaults_of(function: Callable[..., Any]) -> dict[str, object]:
    """Return the arguments that a function takes by name alone, and their defaults."""
    taken = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in taken if one.kind is inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize(
    "function", ENTRANCES, ids=lambda function: f"{function.__module__}.{function.__name__}"
)
def test_the_functions_have_the_defaults_of_the_options(function: Callable[..., Any]) -> None:
    declared: dict[str, object] = {field.name: field.default for field in fields(MatchOptions)}
    declared |= {"timeout": declared.pop("limit"), "memory_limit": None, "names": None, "parameters": None}
    if function is uc.match:
        declared["max_matches"] = MAX_MATCHES
    expected = {name: declared[name] for name in ENTRANCES[function]} | BESIDE[function]
    assert defaults_of(function) == expected


def test_the_commands_have_the_defaults_of_the_options() -> None:
    declared = {field.name: field.default for field in fields(MatchOptions)} | {"max_matches": MAX_MATCHES}
    planning = {"evaluation", "planner", "latency_weight", "sources", "known_until"}
    for name, names in (("match", planning | {"kleene", "max_matches"}), ("explain", planning)):
        options = {one.name: one.default for one in cli.main.commands[name].params if one.name in names}
        assert options == {one: declared[one] for one in names}
    assert sorted(arguments.EVALUATIONS) == sorted(EVALUATIONS)


@pytest.mark.parametrize(("wrong", "said"), WRONG)
def test_options_are_refused_before_events_are_looked_at(wrong: dict[str, Any], said: str) -> None:
    nothing: Any = object()
    for call in (uc.match, uc.iter_matches):
        with pytest.raises(uc.OptionError, match=said):
            call(nothing, SEQUENCE, **wrong)
    for events in (None, nothing):
        with pytest.raises(uc.OptionError, match=said):
            uc.explain(SEQUENCE, events, **wrong)
    with pytest.raises(uc.OptionError, match=said):
        match_on_spark(nothing, SEQUENCE, **wrong)
    with pytest.raises(uc.OptionError, match=said):
        match_to_parquet(nothing, SEQUENCE, "nowhere", **wrong)


def test_options_of_streams_are_no_more_of_match() -> None:
    nothing: Any = object()
    with pytest.raises(
        uc.OptionError, match="largest_interval=, idle_after= and duplicates= are for streaming"
    ):
        uc.match(pa.table({"type": ["A"]}), SEQUENCE, largest_interval=3)
    with pytest.raises(uc.OptionError, match="match has no option thread=: did you mean threads"):
        uc.match(nothing, SEQUENCE, thread=3)  # type: ignore[call-arg]


def test_options_of_matches_are_refused_before_events_are_looked_at() -> None:
    nothing: Any = object()
    for one in (uc.match, uc.iter_matches):
        with pytest.raises(uc.OptionError, match="sources=1: it must be True or False"):
            one(nothing, SEQUENCE, sources=1)  # type: ignore[arg-type]
    for wrong, said in (({"kleene": "short"}, "kleene='short' is unknown"), ({"approximate": 2}, "is 2.0")):
        for call in (uc.match, uc.iter_matches, match_on_spark):
            with pytest.raises(uc.OptionError, match=said):
                call(nothing, SEQUENCE, **wrong)
        with pytest.raises(uc.OptionError, match=said):
            match_to_parquet(nothing, SEQUENCE, "nowhere", **wrong)
    with pytest.raises(uc.OptionError, match="batch_rows=0: it must be a whole number, at least 1"):
        uc.iter_matches(nothing, SEQUENCE, batch_rows=0)
    for call in (uc.match, uc.iter_matches):
        with pytest.raises(uc.OptionError, match="timeout=0"):
            call(nothing, SEQUENCE, timeout=0)


def test_the_options_do_not_change() -> None:
    options = MatchOptions(latency_weight=2)
    with pytest.raises(FrozenInstanceError):
        options.tick = "1s"  # type: ignore[misc]
    assert not hasattr(options, "__dict__")
    assert repr(options.latency_weight) == "2.0"


def test_changed_options_are_checked_again() -> None:
    with pytest.raises(uc.OptionError, match="heeded by a planner"):
        replace(MatchOptions(latency_weight=2.0), evaluation="point")
    with pytest.raises(uc.OptionError, match="heeded by a planner"):
        make_plan(uc.parse(SEQUENCE), SCHEMA, MatchOptions(latency_weight=2.0), evaluation="point")


@given(
    evaluation=st.sampled_from(EVALUATIONS),
    planner=st.sampled_from([*PLANNERS, "((c a) b)"]),
    confidence=st.booleans(),
    approximate=st.sampled_from([None, uc.Approximation(0.01, 3)]),
    latency_weight=st.sampled_from([0, 0.0, 1, 5e-324]),
    kleene=st.sampled_from(["matches", "compressed"]),
)
def test_what_is_accepted_is_what_the_plan_holds(**given: Any) -> None:
    weight, tree = given["latency_weight"], given["planner"].startswith("(")
    named = given["evaluation"] != "auto"
    if (named and (weight or given["planner"] != "auto")) or (tree and weight):
        with pytest.raises(uc.OptionError, match="leave one of them out"):
            MatchOptions(**given)
        return
    options = MatchOptions(**given)
    query = uc.parse("PATTERN SEQ(A a, B b, C c) WITHIN 10")
    if given["kleene"] == "compressed":
        with pytest.raises(uc.OptionError, match="compressed"):
            make_plan(query, SCHEMA, options)
        return
    plan = make_plan(query, SCHEMA, options)
    assert plan == make_plan(query, SCHEMA, **given)
    assert plan.evaluation == options.method == (given["evaluation"] if named else "query_order")
    assert plan.planner == ("none" if named else "given" if tree else given["planner"])
    assert (plan.tree is not None) == (tree and not named)
    assert (plan.latency_weight, plan.confidence) == (weight, given["confidence"])
    assert plan.approximate == given["approximate"]


def test_what_only_the_run_needs_does_not_change_the_plan() -> None:
    plain = make_plan(uc.parse(SEQUENCE), SCHEMA)
    run = MatchOptions(max_matches=3, batch_rows=2, limit=Limits(5.0))
    assert make_plan(uc.parse(SEQUENCE), SCHEMA, run) == plain


def test_names_and_tick_reach_the_plan() -> None:
    schema = pa.schema(
        [("kind", pa.string()), *((name, SCHEMA.field(name).type) for name in SCHEMA.names[1:])]
    )
    options = MatchOptions(names=Names("kind"), tick="100ms")
    plan = make_plan(uc.parse("PATTERN SEQ(A a, B b) WITHIN 2 seconds"), schema, options)
    assert (plan.names.type, plan.window) == ("kind", 20)
