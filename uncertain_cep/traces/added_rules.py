"""Rules of uncertainty that add up: stamps that are cut to the second by a clock that is right to 200 ms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from uncertain_cep.config.limits import MOST_TICKS_OF_READINGS
from uncertain_cep.errors import OptionError, TraceError
from uncertain_cep.traces.faulty_rows import row_faults
from uncertain_cep.traces.instants import Grid
from uncertain_cep.traces.uncertain_stamps import Intervals, Stamps, Uncertainty
from uncertain_cep.traces.uncertainty import Moved

__all__ = ["Added", "added", "as_rule"]


@dataclass(frozen=True, slots=True)
class Added:
    """A rule, and lengths of time by which the times may be off besides; see `added`."""

    first: Uncertainty
    lengths: tuple[Moved, ...]

    def stamps(self, time: str | None) -> tuple[str, ...]:
        """Return the columns whose values are stamps."""
        return self.first.stamps(time)

    def reads(self, time: str | None) -> tuple[str, ...]:
        """Return all columns that the rule reads."""
        return self.first.reads(time)

    def intervals(self, stamps: Stamps) -> Intervals:
        """Return the interval of each row: that of the first rule, longer by all lengths.

        A row with a pmf gets its convolution with that of a time anywhere within the lengths, equally likely;
        others stay uniform. O(n), and O(ticks) of the rows with a pmf.
        """
        made = self.first.intervals(stamps)
        tick = stamps.grid.tick or 1
        shifts = [rule.shifts(stamps.grid) for rule in self.lengths]
        low, high = (sum(pair[end] for pair in shifts) // tick for end in (0, 1))
        # A bound above the other one stays a fault.
        is_interval = made.lower <= made.upper
        _check_fits(made, low, high, is_interval)
        lower = np.where(is_interval, made.lower + low, made.lower)
        upper = np.where(is_interval, made.upper + high, made.upper)
        pmf = None if made.pmf is None else _spread(made.pmf, high - low + 1, stamps.grid)
        spans = None if made.spans is None else made.spans.moved(low, high)
        return replace(made, lower=lower, upper=upper, pmf=pmf, spans=spans)

    def is_whole(self, tick: int, schema: pa.Schema, unit: str | None) -> bool:
        """Return whether all lengths are whole ticks."""
        return all(rule.is_whole(tick, schema, unit) for rule in (self.first, *self.lengths))

    def takes_unit(self, time: str | None, schema: pa.Schema) -> bool:
        """Return whether there can be numbers that have the unit of the rows."""
        return self.first.takes_unit(time, schema)


def added(rules: Sequence[Uncertainty]) -> Uncertainty:
    """Return the rule of times that are uncertain for several reasons, which do not depend on each other.

    Its interval is the Minkowski sum of theirs. ``exact``, ``plus_minus``, ``granularity`` and ``window`` are
    lengths, of which there may be any number. One other rule may be among them; an OptionError says that
    there are several, or no rule.
    """
    parts: list[Uncertainty] = []
    for rule in rules:
        parts += [rule.first, *rule.lengths] if isinstance(rule, Added) else [rule]
    lengths = [rule for rule in parts if isinstance(rule, Moved) and rule.source is None]
    firsts = [rule for rule in parts if rule not in lengths]
    if not parts:
        raise OptionError("uncertainty=[]: name a rule, or several that add up")
    if len(firsts) > 1:
        raise OptionError(
            "of rules that add up only one can be another one than plus_minus, granularity, window and "
            "exact: make columns of the bounds, and add these with uc.columns"
        )
    lengths = [rule for rule in lengths if rule.kind != "exact"]
    if not firsts:
        return lengths[0] if len(lengths) == 1 else Added(Moved("exact"), tuple(lengths))
    return Added(firsts[0], tuple(lengths)) if lengths else firsts[0]


def as_rule(rule_or_rules: Any) -> Any:
    """Return the sum of a list of rules; what is no list, or no list of rules, as it is."""
    if not isinstance(rule_or_rules, list | tuple):
        return rule_or_rules
    if not all(hasattr(rule, "intervals") for rule in rule_or_rules):
        return rule_or_rules
    return added(rule_or_rules)


def _check_fits(made: Intervals, low: int, high: int, is_interval: npt.NDArray[np.bool_]) -> None:
    limits = np.iinfo(np.int64)
    beyond = (made.lower < limits.min - min(low, 0)) | (made.upper > limits.max - max(high, 0))
    beyond &= is_interval
    if beyond.any():
        message = "with all that its rules add, the time does not fit into 64 bits at this tick"
        raise TraceError(row_faults(beyond, message))


def _spread(pmf: pa.Array, width: int, grid: Grid) -> pa.Array:
    """Return the laws of times with probabilities plus any of ``width`` ticks, equally likely."""
    lists = pmf.to_pylist()
    sizes = [len(weights) + width - 1 for weights in lists if weights]
    if sum(sizes) > MOST_TICKS_OF_READINGS:
        raise OptionError(
            f"{len(sizes):,} events with probabilities, spread over {width:,} ticks, would have "
            f"{sum(sizes):,} of them, and at most {MOST_TICKS_OF_READINGS:,} are kept: give a longer tick "
            f"than {grid.text or 'one'}"
        )
    spread = [weights and _window_sums(np.asarray(weights, np.float64), width) / width for weights in lists]
    return pa.array(spread, pa.list_(pa.float64()))


def _window_sums(weights: npt.NDArray[np.float64], width: int) -> npt.NDArray[np.float64]:
    """Return the sums of ``width`` neighbours, (n + width - 1,), without a subtraction. O(n + width)."""
    size = len(weights) + width - 1
    blocks = -(-(size + width - 1) // width)
    padded = np.zeros(blocks * width)
    padded[width - 1 : width - 1 + len(weights)] = weights
    by_block = padded.reshape(blocks, width)
    behind = by_block.cumsum(axis=1).ravel()
    ahead = by_block[:, ::-1].cumsum(axis=1)[:, ::-1].ravel()
    begin = np.arange(size)
    return ahead[:size] + np.where(begin % width == 0, 0.0, behind[width - 1 : width - 1 + size])
