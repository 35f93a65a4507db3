"""Selections that depend on all matches of a world, past the last one, throttle and first, in drawn worlds.

They are not in the language: each world is asked, and their shares are the probabilities of worked facts.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import uncertain_cep as uc

WORLDS = 400
Match = dict[str, Any]
Selection = Callable[[list[Match]], Iterator[Match]]


def past_last(matches: list[Match]) -> Iterator[Match]:
    """Leave out matches whose first event is inside, or of, one that is selected and began before."""
    selected: list[Match] = []
    for match in sorted(matches, key=lambda match: match["range_lower"]):
        begin = match["range_lower"]
        if not any(
            one["range_lower"] < begin and (begin < one["range_upper"] or match["a"] in (one["a"], one["b"]))
            for one in selected
        ):
            selected.append(match)
            yield match


def throttled(matches: list[Match]) -> Iterator[Match]:
    """Select those 3 ticks or more behind the last tick selected, equal ticks together."""
    last = -math.inf
    for match in sorted(matches, key=lambda match: match["range_upper"]):
        if match["range_upper"] == last or match["range_upper"] >= last + 3:
            last = match["range_upper"]
            yield match


def first(matches: list[Match]) -> Iterator[Match]:
    """Select those that end first."""
    end = min(match["range_upper"] for match in matches)
    yield from (match for match in matches if match["range_upper"] == end)


def shares(trace: pa.Table, pattern: str, select: Selection) -> dict[tuple[Any, ...], float]:
    """Return in which share of drawn worlds each match is selected."""
    worlds = [
        world.append_column("world", pa.array([number] * world.num_rows, pa.int64()))
        for number, world in enumerate(uc.draw_worlds(trace, WORLDS, seed=3))
    ]
    matches = defaultdict(list)
    for match in uc.match(pa.concat_tables(worlds), f"PATTERN {pattern} AND [world] WITHIN 50").to_pylist():
        matches[match["world"]].append(match)
    counts = Counter(
        tuple(match[name] for name in "ab" if name in match)
        for in_world in matches.values()
        for match in select(in_world)
    )
    return {ids: count / WORLDS for ids, count in counts.items()}


def events(*rows: tuple[str, int, int, int], **columns: list[Any]) -> pa.Table:
    names = ("type", "id", "lower", "upper")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) | columns)


PAIRS = events(("A", 1, 0, 0), ("A", 2, 1, 4), ("B", 3, 3, 3), ("B", 4, 6, 6))
CHAIN = events(
    *(row for n in range(0, 40, 10) for row in (("A", n, n, n), ("B", n + 1, n + 15, n + 15))),
    k=[0, 0, 1, 1, 2, 2, 3, 3],
    probability=[0.5] + [1.0] * 7,
)
IN_TURN = events(("A", 1, 0, 2), ("A", 2, 1, 3), ("A", 3, 4, 4))
TWO_ENDS = events(("A", 1, 0, 0), ("B", 2, 1, 4), ("B", 3, 2, 5))
NEXT = "SEQ(A a, B b) WHERE skip_till_next_match(a, b)"
BY_KEY = "SEQ(A a, B b) WHERE a.k = b.k"


@pytest.mark.parametrize(
    ("trace", "pattern", "select", "expected"),
    [
        (PAIRS, NEXT, past_last, {(1, 3): 1, (2, 4): 1 / 2}),
        (CHAIN, BY_KEY, past_last, {(n, n + 1): 1 / 2 for n in (0, 10, 20, 30)}),
        (IN_TURN, "SEQ(A a) WHERE a.id > 0", throttled, {(1,): 8 / 9, (2,): 4 / 9, (3,): 2 / 3}),
        (TWO_ENDS, "SEQ(A a, B b) WHERE a.id = 1", first, {(1, 2): 13 / 16, (1, 3): 3 / 8}),
    ],
)
def test_worked_facts(trace: pa.Table, pattern: str, select: Selection, expected: dict[Any, float]) -> None:
    selected = shares(trace, pattern, select)
    assert selected.keys() == expected.keys()
    for ids, probability in expected.items():
        error = math.sqrt(probability * (1 - probability) / WORLDS)
        assert abs(selected[ids] - probability) <= 5 * error
