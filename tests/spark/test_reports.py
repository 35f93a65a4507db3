"""Reports on Spark frames: what the page of the same events in this process says."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import uncertain_cep as uc
from tests.reporting.pages import data_of
from tests.spark.traces import random_trace, to_spark
from uncertain_cep.errors import OptionError
from uncertain_cep.reporting.nearby import SPOILING_SHOWN

FORBIDS = """
    PATTERN SEQ(A a, !D n, B b) WHERE [match] WITHIN 9 HAVING CONFIDENCE >= 0.02 RETURN a.position
"""
PLAIN = "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 9 HAVING CONFIDENCE >= 0.3"
SECONDS = "PATTERN SEQ(A a, B b) WHERE [at] WITHIN 9 seconds HAVING CONFIDENCE >= 0.3"


def trace() -> pa.Table:
    """Return events of which some have stamps, a few of them far from their intervals."""
    table = random_trace(7, 160, keys=3)
    draw = np.random.default_rng(7)
    lower, upper = (np.asarray(table.column(name)) for name in ("lower", "upper"))
    stamp = lower + (draw.random(len(lower)) * (upper - lower + 1)).astype(np.int64)
    stamp[::9] += 40
    return table.append_column("stamp", pa.array(stamp, mask=draw.random(len(lower)) < 0.2))


def oddly_named() -> pa.Table:
    """Return the same with columns named like some that are put before those of events."""
    renamed = {"key": "match", "name": "position", "value": "variable"}
    table = trace()
    return table.rename_columns([renamed.get(name, name) for name in table.column_names])


def timed() -> pa.Table:
    """Return the same with ticks of a second that a column tells, and times as keys."""
    table = trace()

    def seconds(name: str, zone: str | None = None) -> pa.ChunkedArray:
        return pc.multiply(table.column(name), 1_000_000).cast(pa.timestamp("us", zone))

    for name in ("lower", "upper", "stamp"):
        table = table.set_column(table.column_names.index(name), name, seconds(name))
    return table.append_column("at", seconds("key", "UTC")).append_column("tick", [["1s"] * len(table)])


def drawn(facts: dict[str, Any], name: str) -> list[tuple[str, str]]:
    """Return the matches of a table with all that is drawn of each, and the shades apart, in one order."""
    events = facts["events"]
    columns = facts["columns" if name == "found" else name]

    def event(place: int) -> list[object]:
        columns = [events[name] for name in ("type", "id", "lower", "upper", "stamp", "clock", "read")]
        return [column[place] for column in (*columns, *(one["values"] for one in events["attributes"]))]

    rows = []
    for n, (drawn_events, spoiling) in enumerate(facts[f"{name}_drawn"]):
        row = {one["name"]: one["values"][n] for one in columns}
        if "confidence" in row:
            row["confidence"] = f"{row['confidence']:.9g}"
        there = facts["compared"][n] if name == "found" and facts["compared"] else None
        named = [(variable, event(place)) for variable, place, *_ in drawn_events]
        # Of those that are alike but for their ids, any may be among the first ones.
        few = event if len(spoiling) < SPOILING_SHOWN else lambda place: event(place)[2:4]
        rows.append(
            (
                repr((row, there, named, sorted(map(repr, map(few, spoiling))))),
                "/".join(s for _, _, s, *_ in drawn_events),
            )
        )
    return sorted(rows)


def surrounded(facts: dict[str, Any], name: str) -> list[tuple[object, ...]]:
    """Return each match with how many events are around it, and which of these are shown."""
    ids, columns = facts["events"]["id"], facts["columns" if name == "found" else name]
    keys = zip(*(one["values"] for one in columns if one["name"] in facts["match_columns"]), strict=True)
    around = facts[f"{name}_nearby"]
    return sorted(
        (repr(key), total, sorted(ids[place] for place in places))
        for key, (total, places) in zip(keys, around, strict=True)
    )


def shared_groups(facts: dict[str, Any], *, decided: bool) -> list[str]:
    """Return the groups of matches that share events, in one order; if decided, which have a sentence.

    Of two events that decide as much, it names the one that comes first.
    """
    groups = facts["shared"]
    assert sorted(groups["lower"], reverse=True) == groups["lower"]
    names = ("lower", "upper", "probability", "expected", "best")
    rounded = [[value if value is None else f"{value:.9g}" for value in groups[name]] for name in names]
    keys = [key["values"] for key in groups["keys"]]
    of_group = [groups["of_match"].count(number) for number in groups["key"]]
    has_sentence = [decided and bool(sentence) for sentence in groups["decides"]]
    rows = zip(*keys, *rounded, groups["matches"], has_sentence, of_group, strict=True)
    return sorted(map(repr, ((groups["over"], groups["total"], *row) for row in rows)))


def explained(facts: dict[str, Any]) -> int:
    """Return how many matches have the factors of their confidence."""
    return sum(len(steps["match"]) for steps in facts["found_why"])


def counts_by_key(facts: dict[str, Any]) -> list[tuple[object, ...]]:
    """Return the matches of each value by key, and how likely there is one."""
    rows: list[tuple[object, ...]] = []
    for group in facts["groups"]:
        for one in group["values"]:
            happened = one["happened"] and [f"{end:.9g}" for end in one["happened"]]
            rows.append((group["name"], group["distinct"], one["value"], one["count"], one["expected"]))
            rows.append((group["name"], one["value"], happened))
    return rows


def assert_same_drawings(there: list[tuple[str, str]], here: list[tuple[str, str]]) -> None:
    """Assert that matches are drawn alike; a shade may be rounded to the next one."""
    assert [row for row, _ in there] == [row for row, _ in here]
    for (_, shades_here), (_, its) in zip(here, there, strict=True):
        assert len(shades_here) == len(its)
        levels = [[int(shade.replace("/", "0"), 36) for shade in shades] for shades in (shades_here, its)]
        assert max((abs(a - b) for a, b in zip(*levels, strict=True)), default=0) <= 1


@pytest.mark.parametrize(
    ("query", "table"),
    [
        (FORBIDS, oddly_named()),
        pytest.param(PLAIN, trace(), marks=pytest.mark.thorough),
        pytest.param(SECONDS, timed(), marks=pytest.mark.thorough),
    ],
    ids=["forbids", "plain", "seconds"],
)
def test_a_page_is_that_of_this_process(spark: SparkSession, query: str, table: pa.Table) -> None:
    frame = to_spark(spark, table)
    # Spark takes times without a zone as those of its session, and hands out the same ones by a cast.
    for name in (one.name for one in table.schema if one.type == pa.timestamp("us")):
        frame = frame.withColumn(name, frame[name].cast("timestamp_ntz"))
    here = str(uc.report(table, query, stamp="stamp", title="Same"))
    there = str(uc.report(frame, query, stamp="stamp", title="Same"))
    facts_here, its = data_of(here), data_of(there)
    assert facts_here["totals"]["matches"] >= 10
    assert facts_here["raw"]["missed"]
    assert facts_here["raw"]["invented"]
    assert any(spoiling for _, spoiling in facts_here["found_drawn"]) == (query == FORBIDS)
    assert counts_by_key(its) == counts_by_key(facts_here)
    for group, its_group in zip(facts_here["groups"], its["groups"], strict=True):
        assert group["cells"] is not None
        for cells, its_cells in zip(group["cells"], its_group["cells"], strict=True):
            assert its_cells == pytest.approx(cells, rel=1e-3)
    for name in ("histogram", "moments", "raw", "limit", "clock", "variables", "nothing"):
        assert its[name] == facts_here[name], name
    assert its["totals"] == pytest.approx(facts_here["totals"])
    assert explained(its) == explained(facts_here) == its["totals"]["matches"]
    # What would decide a group is told where other events cannot spoil a match.
    decided = query != FORBIDS
    assert [around for _, around, _ in surrounded(facts_here, "found")].count(0) < len(facts_here["compared"])
    for name in ("found", "missed"):
        assert surrounded(its, name) == surrounded(facts_here, name)
    assert shared_groups(its, decided=decided) == shared_groups(facts_here, decided=decided)
    assert any(its["shared"]["decides"]) == decided
    for name in ("found", "invented"):
        assert_same_drawings(drawn(its, name), drawn(facts_here, name))
    # All that is not packed but the plan, which each task makes for itself.
    written = re.compile(r'<(?:p|ul) class="(?:words|totals|plain|plain warn)">.*?</(?:p|ul)>')
    assert written.findall(there) == written.findall(here)
    assert len(written.findall(here)) >= 2


def test_what_else_a_report_on_spark_says(spark: SparkSession) -> None:
    frame = to_spark(spark, trace().slice(0, 40))
    nothing = data_of(uc.report(frame, "PATTERN SEQ(A a, B b) WHERE a.value > 1000 WITHIN 5"))
    assert nothing["totals"]["matches"] == 0
    assert nothing["nothing"].startswith("Candidates: a 0, b ")
    assert nothing["nothing"].endswith("Without a.value > 1000 there would be matches.")
    with pytest.raises(OptionError, match="a streaming frame has no end"):
        uc.report(spark.readStream.format("rate").load(), PLAIN)
    with pytest.raises(OptionError, match="memory_limit= is for frames in this process"):
        uc.report(frame, PLAIN, memory_limit="1GB")
    with pytest.raises(OptionError, match="truth= is for frames in this process"):
        uc.report(frame, PLAIN, truth="stamp")
    with pytest.raises(OptionError, match="the events have no column when"):
        uc.report(frame, PLAIN, stamp="when")
    with pytest.raises(OptionError, match="returns expected counts"):
        uc.report(frame, "PATTERN SEQ(A a, B b) WITHIN 5 RETURN EXPECTED COUNT")
