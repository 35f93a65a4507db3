"""The report of a benchmark: figures with their targets, and tables that explain them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

__all__ = ["Figure", "Options", "Results", "Target", "at_least", "at_most", "exactly"]


@dataclass(frozen=True, slots=True)
class Options:
    """How to measure.

    Attributes
    ----------
    rounds : int
        Rounds after the warm-up.
    scale : float
        Factor on the number of events of every figure; 1 is what the targets are stated for.
    clock : {"wall", "cpu"}
        What the figures are computed from, other than those of Spark. The time a process ran on the
        processor is steadier on a machine that does other work.
    core : int or None
        The core that figures of one core are pinned to; None: not pinned.
    brief : bool
        Whether to leave out what only explains figures: what was chosen before is not chosen again, and what
        runs the same is run once.
    """

    rounds: int = 5
    scale: float = 1.0
    clock: Literal["wall", "cpu"] = "wall"
    core: int | None = None
    brief: bool = False

    def events(self, n: int) -> int:
        """Return the number of events to use where the target says `n`."""
        return max(int(n * self.scale), 1000)


@dataclass(frozen=True, slots=True)
class Target:
    """The target that a figure has to reach."""

    bound: Literal["at least", "at most", "exactly"]
    value: float

    def holds(self, value: float) -> bool:
        """Return whether a value reaches the target."""
        if self.bound == "at least":
            return value >= self.value
        if self.bound == "at most":
            return value <= self.value
        return value == self.value


def at_least(value: float) -> Target:
    """Return the target that a figure is `value` or more."""
    return Target("at least", value)


def at_most(value: float) -> Target:
    """Return the target that a figure is `value` or less."""
    return Target("at most", value)


def exactly(value: float) -> Target:
    """Return the target that a figure is `value`."""
    return Target("exactly", value)


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of the report.

    Attributes
    ----------
    name : str
    value : float
        The median of the rounds, or a ratio of medians.
    unit : str
    target : Target or None
        None: shown for comparison only.
    rounds : tuple of float
        The single rounds, in seconds where `value` is derived from times.
    note : str
        What a reader has to know to judge the figure.
    """

    name: str
    value: float
    unit: str
    target: Target | None = None
    rounds: tuple[float, ...] = ()
    note: str = ""

    @property
    def passed(self) -> bool | None:
        """Whether the target is reached; None without a target."""
        return None if self.target is None else self.target.holds(self.value)

    def record(self) -> dict[str, Any]:
        """Return the figure as JSON values."""
        target = None if self.target is None else {"bound": self.target.bound, "value": self.target.value}
        return {
            "name": self.name, "value": self.value, "unit": self.unit, "target": target,
            "passed": self.passed, "rounds": list(self.rounds), "note": self.note,
        }  # fmt: skip


@dataclass(slots=True)
class Results:
    """The figures of one benchmark and what explains them.

    Attributes
    ----------
    figures : list of Figure
    breakdowns : dict
        Title of a table -> its rows, each a mapping of column to value.
    failures : list of str
        Figures that could not be measured, and why.
    """

    figures: list[Figure] = field(default_factory=list)
    breakdowns: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(
        self,
        name: str,
        value: float,
        unit: str,
        target: Target | None = None,
        rounds: Sequence[float] = (),
        note: str = "",
    ) -> None:
        """Append a figure."""
        self.figures.append(Figure(name, value, unit, target, tuple(rounds), note))

    def add_median(
        self, name: str, rounds: Sequence[float], unit: str, target: Target | None = None, note: str = ""
    ) -> None:
        """Append a figure that is the median of its rounds."""
        self.add(name, median(rounds), unit, target, rounds, note)

    def record(self) -> dict[str, Any]:
        """Return the results as JSON values."""
        return {
            "figures": [figure.record() for figure in self.figures],
            "tables": self.breakdowns,
            "failures": self.failures,
        }
