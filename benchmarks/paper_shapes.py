"""The shapes of the paper's figures, said so that ours can be held against them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

__all__ = ["ANY", "POINT", "SELECTIVITY", "SORTED", "Claim", "Series", "judged"]

Series: TypeAlias = Mapping[str, Mapping[Any, float]]
"""Method -> place on the horizontal axis -> events a second."""

POINT: Final = "point"
ANY: Final = "any_state"
SELECTIVITY: Final = "selectivity"
SORTED: Final = "query_order"

_ALIKE: Final = 0.93
"""Two figures that differ by less than 7% are taken as alike: rounds differ by as much."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence about a figure.

    Attributes
    ----------
    text : str
        What the paper's figure shows.
    holds : callable
        Whether it is so in ours.
    otherwise : str
        Why not, if not.
    """

    text: str
    holds: Callable[[Series], bool]
    otherwise: str = ""


def judged(claims: tuple[Claim, ...], series: Series) -> list[dict[str, str]]:
    """Return a row for each claim whose methods were measured: what, whether it is so here, why not."""
    rows = []
    for claim in claims:
        try:
            agrees = claim.holds(series)
        except KeyError as missing:
            rows.append({"paper": claim.text, "here": "-", "why": f"{missing.args[0]} was not measured"})
            continue
        rows.append(
            {"paper": claim.text, "here": "yes" if agrees else "no", "why": "" if agrees else claim.otherwise}
        )
    return rows


def fall(points: Mapping[Any, float]) -> float:
    """Return by what factor throughput falls from the first place to the last."""
    values = list(points.values())
    return values[0] / values[-1]


def faster(one: str, other: str) -> Callable[[Series], bool]:
    """Return the claim that a method is faster than another at every place."""

    def holds(series: Series) -> bool:
        return all(value > series[other][place] for place, value in series[one].items())

    return holds


def best(one: str) -> Callable[[Series], bool]:
    """Return the claim that no method is faster than this one anywhere."""

    def holds(series: Series) -> bool:
        return all(
            value >= _ALIKE * max(points[place] for points in series.values() if place in points)
            for place, value in series[one].items()
        )

    return holds


def between(one: str, below: str, above: str) -> Callable[[Series], bool]:
    """Return the claim that a method lies between two others at every place."""

    def holds(series: Series) -> bool:
        return all(
            _ALIKE * series[below][place] <= value <= series[above][place] / _ALIKE
            for place, value in series[one].items()
        )

    return holds


def falls_more(one: str, other: str, factor: float = 1.5) -> Callable[[Series], bool]:
    """Return the claim that a method loses more than another, by this factor, along the axis."""
    return lambda series: fall(series[one]) >= factor * fall(series[other])


def falls_alike(one: str, other: str, factor: float = 2.0) -> Callable[[Series], bool]:
    """Return the claim that two methods lose alike, within this factor, along the axis."""
    return lambda series: 1 / factor <= fall(series[one]) / fall(series[other]) <= factor


def falls(one: str, at_least: float) -> Callable[[Series], bool]:
    """Return the claim that a method loses at least this factor along the axis."""
    return lambda series: fall(series[one]) >= at_least


def falls_little(one: str, at_most: float = 2.0) -> Callable[[Series], bool]:
    """Return the claim that a method loses at most this factor along the axis."""
    return lambda series: fall(series[one]) <= at_most
