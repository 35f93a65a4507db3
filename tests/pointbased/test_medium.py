"""The point-based framework on streams of tens and hundreds of events, against the formula written out."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from pointbased import PointEvaluation, compile_sequence
from tests.cases.comparison import RELATIVE_ERROR
from tests.cases.sampling import FEWER
from tests.pointbased.test_answers import cramped

Answer = dict[tuple[int, ...], tuple[int, int, float]]


@dataclass(frozen=True)
class Stream:
    """Events in order of their lower bounds; ``fills`` says which components each can fill."""

    lower: tuple[int, ...]
    pmf: tuple[tuple[float, ...], ...]
    fills: tuple[tuple[int, ...], ...]
    length: int
    window: int


def stream_of(seed: int) -> Stream:
    chance = random.Random(seed)
    count, length = chance.randint(10, 28), chance.choice([2, 3, 3])
    sharing = chance.choice([0.0, 0.0, 0.3])
    lower = sorted(chance.randint(0, 40) for _ in range(count))
    pmf, fills = [], []
    for _ in lower:
        weights = [chance.choice([0, 1, 1, 1, 2]) for _ in range(chance.choice([1, 2, 4, 5]) - 1)] + [1]
        pmf.append(tuple(weight / sum(weights) for weight in weights))
        several = chance.random() < sharing
        fills.append(tuple(sorted(chance.sample(range(length), 2 if several else 1))))
    return Stream(tuple(lower), tuple(pmf), tuple(fills), length, chance.choice([5, 9, 20, 60]))


def formula(stream: Stream, next_match: bool) -> Answer:
    """SEMANTICS 5, the product over the forbidden events for every choice of times."""
    can_fill = [[e for e, fills in enumerate(stream.fills) if j in fills] for j in range(stream.length)]
    ticks = [
        [(low + k, p) for k, p in enumerate(pmf) if p > 0]
        for low, pmf in zip(stream.lower, stream.pmf, strict=True)
    ]
    answer: Answer = {}
    for chosen in itertools.product(*can_fill):
        if len(set(chosen)) < len(chosen):
            continue
        total, first, last = 0.0, [], []
        for times in itertools.product(*(ticks[e] for e in chosen)):
            t = [time for time, _ in times]
            if any(x >= y for x, y in itertools.pairwise(t)) or t[-1] - t[0] >= stream.window:
                continue
            probability = math.prod(p for _, p in times)
            if next_match:
                for x in set().union(*can_fill[1:]) - set(chosen):
                    gaps = [(t[j - 1], t[j]) for j in stream.fills[x] if j]
                    probability *= math.fsum(
                        p for time, p in ticks[x] if not any(low < time < high for low, high in gaps)
                    )
            if probability > 0:
                total += probability
                first.append(t[0])
                last.append(t[-1])
        if first:
            answer[chosen] = (min(first), max(last), total)
    return answer


def evaluate(stream: Stream, next_match: bool, batch: int, **switches: bool) -> Answer:
    evaluation = PointEvaluation(
        compile_sequence(stream.length, stream.window, next_match=next_match), **switches
    )
    parts = []
    pool = np.array([p for pmf in stream.pmf for p in pmf])
    offsets = np.cumsum([0, *map(len, stream.pmf)])
    events = range(len(stream.lower))
    for start in range(0, len(events), batch):
        rows = [(e, j) for e in events[start : start + batch] for j in stream.fills[e]]
        event, component = (np.array(part, dtype=np.int64) for part in zip(*rows, strict=True))
        lower = np.array(stream.lower)[event]
        upper = lower + np.array([len(pmf) for pmf in stream.pmf])[event] - 1
        parts.append(evaluation.advance(int(lower.min())))
        parts.append(
            evaluation.push(component, np.zeros_like(event), lower, upper, event, offsets[event], None, pool)
        )
    parts.append(evaluation.close())
    return {
        tuple(key): (low, high, confidence)
        for part in parts
        for key, low, high, confidence in zip(
            part.event.reshape(-1, stream.length).tolist(),
            *(values.tolist() for values in part[3:6]),
            strict=True,
        )
    }


def assert_close(answer: Answer, expected: Answer) -> None:
    assert answer.keys() == expected.keys()
    for key, (low, high, confidence) in expected.items():
        assert answer[key][:2] == (low, high), key
        assert math.isclose(answer[key][2], confidence, rel_tol=RELATIVE_ERROR), key


@pytest.mark.parametrize("next_match", [False, True])
@FEWER
@given(seed=st.integers(0, 2**32), batch=st.sampled_from([1, 4, 100]))
def test_every_setting_is_the_formula(next_match: bool, seed: int, batch: int) -> None:
    stream = stream_of(seed)
    expected = formula(stream, next_match)
    assert_close(evaluate(stream, next_match, batch), expected)
    assert_close(evaluate(stream, next_match, batch, merging=False, nelt=False), expected)
    with cramped():
        assert_close(evaluate(stream, next_match, batch), expected)
        assert_close(evaluate(stream, next_match, batch, merging=False), expected)


@pytest.mark.parametrize("strategy", ["skip_till_any_match", "skip_till_next_match"])
@pytest.mark.parametrize("length", [2, 3, 5])
def test_two_frameworks_agree_on_a_stream(length: int, strategy: str) -> None:
    chance = np.random.default_rng(length)
    count = 3000
    lower = np.arange(count) - chance.integers(0, 6, count)
    table = pa.table(
        {
            "type": chance.choice(list("ABCDE"[:length]) + ["F"] * (30 // length), count),
            "id": np.arange(count),
            "lower": lower,
            "upper": lower + chance.integers(0, 9, count),
            "k": chance.integers(0, 3, count),
        }
    )
    pattern = ", ".join(f"{name} {name.lower()}" for name in "ABCDE"[:length])
    variables = ", ".join("abcde"[:length])
    query = f"PATTERN SEQ({pattern}) WHERE [k] AND {strategy}({variables}) WITHIN 60"
    by = [(name.lower(), "ascending") for name in "ABCDE"[:length]]
    joined = uc.match(table, query, evaluation="query_order").sort_by(by)
    points = uc.match(table, query, evaluation="point").sort_by(by)
    assert joined.num_rows > 50
    assert joined.drop_columns("confidence").equals(points.drop_columns("confidence"))
    np.testing.assert_allclose(
        joined.column("confidence").to_numpy(), points.column("confidence").to_numpy(), rtol=RELATIVE_ERROR
    )
