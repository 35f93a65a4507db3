"""Samples of OpenMetrics as columns: those that one line after the other gives, however blocks are cut."""

from __future__ import annotations

import io
import math
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncertain_cep.errors import TraceError
from uncertain_cep.traces.readers import openmetrics, source

HEADS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "up": ("up", {}),
    'up{a="1"}': ("up", {"a": "1"}),
    'up{a="1",b="x y"}': ("up", {"a": "1", "b": "x y"}),
    'up{b="x y", a="1"}': ("up", {"a": "1", "b": "x y"}),
    'up{a="q\\"\\n"}': ("up", {"a": 'q"\n'}),
    'z{e="é"}': ("z", {"e": "é"}),
}
SAMPLES: Final = st.tuples(
    st.sampled_from(sorted(HEADS)),
    st.sampled_from(["1", "2.5", "NaN", "+Inf", "1e3", "-4", "1_0"]),
    st.sampled_from([1, 1.5, 2, 5, 7, 100, 1395066363000]),
)


def events(text: str, block: int) -> list[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "_BLOCK", block)
        batches = openmetrics.events(source.Source(io.BytesIO(text.encode()), "x"))
        rows = [row for batch in batches for row in batch.to_pylist()]
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def event(head: str, value: float, time: int, step: int | None) -> dict[str, Any]:
    name, labels = HEADS[head]
    inside = ",".join(f"{label}={text}" for label, text in sorted(labels.items()))
    series = f"{name}{{{inside}}}" if inside else name
    row = {"type": name, "id": f"{series}:{time}", "lower": time - (step or 1) + 1, "upper": time}
    numbers = {"value": value} if math.isfinite(value) else {}
    return row | numbers | ({"step_ms": step} if step else {}) | labels


def one_by_one(samples: list[tuple[str, str, float]]) -> list[dict[str, Any]]:
    """Return the events by the rule alone, one sample after the other."""
    latest: dict[str, tuple[int, int | None, tuple[str, float, int] | None]] = {}
    rows = []
    for head, text, stamp in samples:
        key = repr(HEADS[head])
        time = round(stamp * 1000 if stamp < 1e11 else stamp)
        if key not in latest:
            latest[key] = time, None, (head, float(text), time)
            continue
        last, step, first = latest[key]
        distance = abs(time - last)
        step = min(distance, step or distance) if distance else step
        if first is not None and step is not None:
            rows.append(event(*first, step))
            first = None
        rows.append(event(head, float(text), time, step))
        latest[key] = time, step, first
    return rows + [event(*first, None) for _, _, first in latest.values() if first is not None]


@given(st.lists(SAMPLES, max_size=14), st.sampled_from([40, 90, 1 << 21]), st.booleans())
def test_samples_are_those_of_one_line_after_the_other(
    samples: list[tuple[str, str, float]], block: int, comments: bool
) -> None:
    lines = [f"{head} {value} {stamp}" for head, value, stamp in samples]
    lines = [part for line in lines for part in (line, "# a comment", "")] if comments else lines
    assert events("\n".join(lines), block) == one_by_one(samples)
    assert events("\n".join([*lines, "# EOF", "no sample"]), block) == one_by_one(samples)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("up 1", "the sample has no stamp"), ("up x 3", "no number"), ("up 1 -5", "out of range"),
        ("up{a=1} 1 2", "it is no sample"), ("{} 1 2", "it is no sample"), ("up 1 1e30", "out of range"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("block", [20, 1 << 21])
def test_a_faulty_line_is_named(line: str, message: str, block: int) -> None:
    with pytest.raises(TraceError, match=message) as raised:
        events(f"up 1 2\nup 1 3\n\n{line}\nup 1 5\n", block)
    assert raised.value.faults[0].row == 4


def test_exemplars_are_passed_over() -> None:
    text = 'up 1 5 # {t="a"} 0.5\nup 1 6 # {t="a"} 0.5 7\n'
    assert [row["upper"] for row in events(text, 1 << 21)] == [5000, 6000]
