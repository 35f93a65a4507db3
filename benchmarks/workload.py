"""The stream and the queries of section 5.1 of Zhang, Diao, Immerman (PVLDB 3(1), 2010)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from uncertain_cep.traces.streams import value_stream

__all__ = ["EXPECTED_MATCHES", "FIVE", "KEYED", "THREE", "WINDOW", "Stream", "sequence_query"]

THREE: Final = (10, 11, 13)
FIVE: Final = (10, 11, 13, 17, 19)
KEYED: Final = (20, 22, 26)
WINDOW: Final = 100

EXPECTED_MATCHES: Final = {0: 3_330_811, 5: 5_393_680}
"""Half interval -> matches of THREE within WINDOW among a million events, by two SQL formulations."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of the paper, to be made where it is used.

    Attributes
    ----------
    events : int
    half_interval : int
        The paper's delta, in ticks.
    spacing : int
        Ticks from one event to the next.
    long_share : float
        Share of the events whose half interval is `long_half_interval` instead.
    long_half_interval : int
    """

    events: int
    half_interval: int
    spacing: int = 1
    long_share: float = 0.0
    long_half_interval: int = 2000

    def table(self) -> pa.Table:
        """Return the stream's events."""
        return value_stream(
            self.events,
            half_interval=self.half_interval,
            seed=7,
            spacing=self.spacing,
            long_share=self.long_share,
            long_half_interval=self.long_half_interval,
        )

    @property
    def interval_lengths(self) -> tuple[int, ...]:
        """The values of ``upper - lower`` that occur, ascending."""
        halves = {self.half_interval} | ({self.long_half_interval} if self.long_share else set())
        return tuple(sorted(2 * half for half in halves))


def sequence_query(
    divisors: tuple[int, ...],
    window: int = WINDOW,
    partition_by: str | None = None,
    *,
    next_match: bool = False,
) -> str:
    """Return ``SEQ`` of one component a divisor, which selects the values that it divides.

    With `next_match` the strategy is ``skip_till_next_match``, else ``skip_till_any_match``.
    """
    variables = "abcdefgh"[: len(divisors)]
    pattern = ", ".join(f"E {variable}" for variable in variables)
    predicates = [f"[{partition_by}]"] if partition_by else []
    predicates += [
        f"{variable}.value % {divisor} = 0" for variable, divisor in zip(variables, divisors, strict=True)
    ]
    if next_match:
        predicates.append(f"skip_till_next_match({', '.join(variables)})")
    return f"PATTERN SEQ({pattern})\nWHERE {' AND '.join(predicates)}\nWITHIN {window}"
