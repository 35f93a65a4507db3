"""The options of the figures of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["FIGURES", "PaperOptions"]

FIGURES: Final = ("4a", "4b", "4c", "4d", "4e", "4f", "5a", "5b", "5c", "spark", "targets")
"""What can be measured; ``spark`` is the case study of 4(f) from Parquet to Parquet."""


@dataclass(frozen=True, slots=True)
class PaperOptions:
    """How to measure the figures of the paper.

    Attributes
    ----------
    folder : str
        Where the plots go.
    quick : bool
        Shorter rounds over shorter streams: to see the shapes, not the figures.
    log_events : int
        Log events of the case study.
    """

    folder: str
    quick: bool = False
    log_events: int = 7_000_000

    @property
    def seconds(self) -> float:
        """How long a round should take."""
        return 0.2 if self.quick else 1.0

    @property
    def fewest_events(self) -> int:
        """How many events to begin with, and to stay with where they take longer than a round."""
        return 100 if self.quick else 200
