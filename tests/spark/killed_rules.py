"""Runs rules over the files of a folder; a test kills it, and goes on with others.

``python -m tests.spark.killed_rules FOLDER NAME`` goes on with the rules of a name from the checkpoint in the
folder, until all files are read.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

import uncertain_cep as uc
from tests.spark.streams import ended, reading
from tests.spark.test_streams import LARGEST, trace
from tests.spark.traces import NOT_GENERATED
from uncertain_cep.rule_sets.named_rules import Rules, suppression_of
from uncertain_cep.rule_sets.rule_changes import HeldRules, PartNote
from uncertain_cep.spark import get_session, match
from uncertain_cep.spark.held_indices import held_indices

_PAIR: Final = "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 6"
_NEXT: Final = "PATTERN SEQ(C c, D d) WHERE [key] WITHIN 9"
_RULES: Final = {
    "first": {"pair": _PAIR, "absent": "PATTERN SEQ(A a, !B b) WHERE [key] AND a.value > 3 WITHIN 9"},
    "second": {"next": _NEXT, "pair": _PAIR, "buckets": f"{_NEXT} RETURN PROBABILITY BY key EVERY 20"},
    "third": {"absent": "PATTERN SEQ(A a, !B b) WHERE [key] AND a.value > 5 WITHIN 14", "next": _NEXT},
}
NAMES: Final = tuple(_RULES)


def rules_of(name: str) -> Rules:
    """Return a set of rules; that which looks for C and D waits after an alert."""
    rules = uc.rules(_RULES[name])
    return Rules([replace(one, suppress=suppression_of("7")) if one.name == "next" else one for one in rules])


def changes_in(spark: SparkSession, folder: Path) -> dict[int, tuple[int, Any]]:
    """Return the tick and the rules of each change, by its number; change 0 is the beginning."""
    _note_change(spark, folder)
    lines = [json.loads(line) for line in (folder / "changes").read_text().splitlines()]
    return {number: (tick, about) for number, tick, about in lines}


def go_on(spark: SparkSession, folder: Path, name: str) -> None:
    """Go on with rules until all files are read, and note the changes that the checkpoint has."""
    schema = trace(1, 9).schema
    while True:
        _note_change(spark, folder)
        frame = reading(spark, folder / "events", schema)
        alerts = match(frame, rules_of(name), largest_interval=LARGEST, checkpoint=folder / "checkpoint")
        try:
            ended(alerts, folder)
        except uc.OptionError as error:
            # The batch that a kill kept uncommitted was written.
            assert "has gone on since match() read it" in str(error)  # noqa: PT017
        else:
            break


def _note_change(spark: SparkSession, folder: Path) -> None:
    held = HeldRules.of(held_indices(spark, folder / "checkpoint"))
    if held.late:
        note = PartNote.of(held.late)
        with (folder / "changes").open("a") as sink:
            sink.write(json.dumps([note.changes, note.since, note.about]) + "\n")


def main() -> None:
    """Run the rules that the command line names."""
    spark = get_session("local[2]", conf={"spark.sql.shuffle.partitions": "2", **NOT_GENERATED})
    go_on(spark, Path(sys.argv[1]), sys.argv[2])
    spark.stop()


if __name__ == "__main__":
    main()
