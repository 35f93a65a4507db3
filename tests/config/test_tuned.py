"""Sweeps of the numbers of the tuning."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks import tuned
from uncertain_cep.config import tuning


def test_rows_that_a_factor_moves_are_shown() -> None:
    figures = {
        0.25: {"a": 100.0, "b": 85.0, "c": 1.0},
        1.0: {"a": 100.0, "b": 100.0},
        4.0: {"a": 105.0, "b": 112.0},
    }
    assert tuned.moved_rows(figures) == {"b": {0.25: 0.85, 1.0: 1.0, 4.0: 1.12}}


def test_numbers_are_those_of_the_tuning() -> None:
    names = tuned.tunable()
    assert "PARTS_PER_THREAD" in names
    assert all(isinstance(getattr(tuning, name), int | float) for name in names)


@pytest.mark.parametrize(("name", "value"), [("PARTS_PER_THREAD", "16.0"), ("UNEVEN_PARTS", "0.3125")])
def test_modules_read_the_number_that_was_set(name: str, value: str) -> None:
    """It is set before they are imported."""
    program = tuned._PROGRAM.partition("from benchmarks.cli")[0]
    program += (
        "from uncertain_cep.candidates import parts\nprint(getattr(parts, name, getattr(tuning, name)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, name, value], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) == float(value)
