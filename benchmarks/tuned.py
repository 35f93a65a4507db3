"""The rows of the main job with a number of the tuning at a quarter, as it is, and at four times."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from uncertain_cep.config import tuning

__all__ = ["FACTORS", "moved_rows", "swept", "tunable"]

FACTORS: Final = (0.25, 1.0, 4.0)
WORTH: Final = 1.1
"""A row that takes so many times as long, or as short, tells that the number matters."""

_PROGRAM: Final = """
import sys
from uncertain_cep.config import tuning
name, value = sys.argv[1], sys.argv[2]
setattr(tuning, name, type(getattr(tuning, name))(float(value)))
from benchmarks.cli import main
main(sys.argv[3:], prog_name="python -m benchmarks")
"""
"""Sets the number before any module of the engine reads it, and measures."""

Rates = dict[str, float]


def tunable() -> list[str]:
    """Return the names of the numbers that can be swept."""
    return [
        name
        for name, value in vars(tuning).items()
        if name.isupper() and isinstance(value, int | float) and not isinstance(value, bool)
    ]


def swept(name: str, only: Sequence[str], turns: int) -> dict[float, Rates]:
    """Return the figures of some benchmarks for each factor, medians of so many turns.

    Each turn measures all factors one behind the other, briefly, each in a process of its own.
    """
    value = getattr(tuning, name)
    figures: dict[float, list[Rates]] = {factor: [] for factor in FACTORS}
    with TemporaryDirectory(prefix="uncertain-cep-") as folder:
        path = Path(folder, "figures.json")
        options = [word for one in only for word in ("--only", one)]
        for _ in range(turns):
            for factor in FACTORS:
                command = ["main", "--brief", "--clock", "cpu", *options, "--json", str(path)]
                subprocess.run(
                    [sys.executable, "-c", _PROGRAM, name, str(value * factor), *command],
                    check=True, stdout=subprocess.DEVNULL,
                )  # fmt: skip
                figures[factor].append(_rates(path))
    return {factor: _medians(rates) for factor, rates in figures.items()}


def moved_rows(figures: Mapping[float, Rates]) -> dict[str, dict[float, float]]:
    """Return the rows that a factor changes by 10% or more, each with the share of every factor."""
    usual = figures[1.0]
    moved = {}
    for name, value in usual.items():
        shares = {factor: rates[name] / value for factor, rates in figures.items() if name in rates}
        if value and any(share >= WORTH or share <= 1 / WORTH for share in shares.values()):
            moved[name] = shares
    return moved


def _rates(path: Path) -> Rates:
    """Return the figures of a run that are numbers other than 0, by benchmark and name."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return {
        f"{benchmark}: {figure['name']}": float(figure["value"])
        for benchmark, results in document["benchmarks"].items()
        for figure in results["figures"]
        if figure["value"] and figure["unit"] != "matches"
    }


def _medians(rates: Sequence[Rates]) -> Rates:
    names = [name for name in rates[0] if all(name in one for one in rates)]
    return {name: statistics.median(one[name] for one in rates) for name in names}
