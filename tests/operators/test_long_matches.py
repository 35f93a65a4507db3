"""Joins of more components than are weighed side by side."""

from __future__ import annotations

import pyarrow as pa
import pytest

import uncertain_cep as uc
from eventbased import describe
from uncertain_cep.operators.description import MatchDescription


def test_few_long_matches_are_weighed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt waits for no more of them at once."""
    weighed: list[int] = []
    fill = MatchDescription.fill

    def counted(self: MatchDescription, chosen: object, *rest: object) -> None:
        weighed.append(chosen.shape[1])  # type: ignore[attr-defined]
        fill(self, chosen, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(MatchDescription, "fill", counted)
    monkeypatch.setattr(describe, "MATCH_CUBES", 5 * 9**3 + 1)
    lower = range(0, 33, 3)
    trace = pa.table({"type": ["A"] * 11, "id": range(11), "lower": lower, "upper": [at + 3 for at in lower]})
    pattern = ", ".join(f"ANY {name}" for name in "abcdefghi")
    found = uc.match(trace, f"PATTERN SEQ({pattern}) WITHIN 60", evaluation="query_order")
    assert found.num_rows == sum(weighed) > 50
    assert max(weighed) == 5
