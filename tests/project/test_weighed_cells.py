"""The grid of ``python -m benchmarks weighers``: every cell is a query that the project answers."""

from __future__ import annotations

import pytest

import uncertain_cep as uc
from benchmarks.weighed_cells import GRID, KINDS, Cell, events_of, query_of


def test_each_cell_of_the_grid_has_a_query_that_fits_its_events() -> None:
    for cell in GRID:
        uc.explain(uc.parse(query_of(cell)), events=events_of(cell, 1).slice(0, 0))


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_matches_to_weigh(kind: str) -> None:
    cell = Cell(kind, length=2, ticks=3, density=1)
    matches = uc.match(events_of(cell, 60), query_of(cell), threads=1)
    confidences = matches["confidence"].to_pylist()
    assert confidences
    assert min(confidences) < 1.0
