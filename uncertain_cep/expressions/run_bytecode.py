"""Predicates across components for runs: compiled once, while the values they work on keep coming.

The batch join knows all values before it compiles. Over a stream two things change as events come in: whether
integer arithmetic could leave int64 (:func:`uncertain_cep.expressions.vectorised.with_checks`), and the rank
of a string among all strings, which is how strings are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.pools import AttributeValues
from eventbased.incremental.candidate_pool import Cells, RunBytecode
from uncertain_cep.expressions.bytecode import BytecodeCompiler, Ranks, strings_in
from uncertain_cep.expressions.codes import places_in, sorted_strings
from uncertain_cep.expressions.vectorised import Values
from uncertain_cep.expressions.whole_numbers import with_checks
from uncertain_cep.query.typed import Column, Kind, TypedExpression, leaves_of, variables_of

__all__ = ["RunPredicates", "Taken"]

Int64 = NDArray[np.int64]

_PLAIN: Final = frozenset[Kind]({"int", "float", "string", "bool"})


@dataclass(frozen=True, slots=True)
class Taken:
    """The changes that new values bring about.

    ``values`` are for the candidate pool; ``bytecode`` is to be used from now on, if it changed; ``ranks``,
    (r,) int64, are the new rank of each string known before, if ranks changed.
    """

    values: AttributeValues
    bytecode: RunBytecode | None
    ranks: Int64 | None


class RunPredicates:
    """Bytecode of some predicates, and what it depends on of the values seen.

    Parameters
    ----------
    predicates : sequence of TypedExpression
        Each mentions at least two variables.
    variables : sequence of str
        In pattern order.

    Attributes
    ----------
    columns : tuple of Column
        What the slots of the bytecode hold.
    bytecode : RunBytecode
    """

    def __init__(self, predicates: Sequence[TypedExpression], variables: Sequence[str]) -> None:
        self._predicates = tuple(predicates)
        self._components = {variable: j for j, variable in enumerate(variables)}
        leaves = [leaf for predicate in predicates for leaf in leaves_of(predicate)]
        self.columns = tuple(dict.fromkeys(leaf for leaf in leaves if isinstance(leaf, Column)))
        self._slots: list[list[tuple[int, Column]]] = [[] for _ in variables]
        for slot, column in enumerate(self.columns):
            self._slots[self._components[column.variable]].append((slot, column))
        self._texts = pa.array(strings_in(self._predicates), pa.large_string())
        self._strings = sorted_strings([self._texts])
        self._ranks: dict[str, int] | None = None
        self._extremes: dict[Column, tuple[int, int]] = {}
        self._safe = self._with_checks()
        self.bytecode = self._compiled()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a snapshot, without the ranks, as they follow from the strings."""
        return {**self.__dict__, "_ranks": None}

    @property
    def string_slots(self) -> list[int]:
        """The slots that hold ranks of strings."""
        return [slot for slot, column in enumerate(self.columns) if column.kind == "string"]

    def _with_checks(self) -> tuple[TypedExpression, ...]:
        def extremes(column: Column) -> tuple[int, int]:
            return self._extremes.get(column, (0, 0))

        return tuple(with_checks(predicate, extremes) for predicate in self._predicates)

    def _compiled(self) -> RunBytecode:
        places = places_in(self._texts, self._strings).tolist()
        ranks = dict(zip(self._texts.to_pylist(), places, strict=True))
        nothing: Mapping[Column, Values] = {
            column: Values(np.zeros(0, dtype=np.int64), None) for column in self.columns
        }
        first = np.zeros(len(self._components), dtype=np.int64)
        compiler = BytecodeCompiler(self._components, first, nothing, Ranks(ranks, self._strings))
        for column in self.columns:
            compiler.slot(column)
        start = [0]
        for predicate in self._safe:
            compiler.predicate(predicate)
            start.append(len(compiler.rows))
        mask = [
            sum(1 << self._components[variable] for variable in variables_of(predicate))
            for predicate in self._safe
        ]
        arrays = compiler.arrays()
        return RunBytecode(
            start=np.array(start, dtype=np.int64),
            mask=np.array(mask, dtype=np.int64),
            code=arrays["code"],
            int_constants=arrays["ints"],
            float_constants=arrays["floats"],
            component=np.array(
                [self._components[column.variable] for column in self.columns], dtype=np.int64
            ),
            real=np.array([column.kind == "float" for column in self.columns], dtype=np.bool_),
        )

    def take(self, values: Mapping[Column, Values], spans: Sequence[slice], count: int) -> Taken:
        """Take the values of new candidates.

        Parameters
        ----------
        values : mapping of Column to Values
            For each of ``columns``, one value for each new candidate of its component.
        spans : sequence of slice
            Where the candidates of each component stand among all new ones.
        count : int
            How many new candidates there are.

        Notes
        -----
        O(count), and O(s log s) of the s strings known where there are new ones.
        """
        changed = self._learn_extremes(values)
        texts = [values[column].data for column in self.columns if column.kind == "string"]
        ranks = self._learn_strings(texts)
        if changed or ranks is not None:
            self.bytecode = self._compiled()
        ints: list[Any] = []
        floats: list[Any] = []
        nulls = np.zeros((len(self.columns), count), dtype=np.bool_)
        for slot, column in enumerate(self.columns):
            new = values[column]
            here = spans[self._components[column.variable]]
            data = new.data
            if column.kind == "string":
                # The rank of a null is never looked at.
                data = np.maximum(places_in(data, self._strings), 0)
            kept = np.zeros(count, dtype=np.float64 if column.kind == "float" else np.int64)
            kept[here] = data
            (floats if column.kind == "float" else ints).append(kept)
            if new.valid is not None:
                nulls[slot, here] = ~new.valid
        taken = AttributeValues(
            np.array(ints, dtype=np.int64).reshape(len(ints), count),
            np.array(floats, dtype=np.float64).reshape(len(floats), count),
            nulls,
        )
        return Taken(taken, self.bytecode if changed or ranks is not None else None, ranks)

    @property
    def takes_events(self) -> bool:
        """Whether :meth:`take_event` may take events: the predicates read plain attributes only."""
        return all(column.computed is None and column.kind in _PLAIN for column in self.columns)

    def take_event(self, event: Mapping[str, Any], components: Sequence[int]) -> list[Cells] | None:
        """Return the values of one event as a candidate of some components.

        Parameters
        ----------
        event : mapping
            Of its attributes to their plain values, or None.
        components : sequence of int
            Those that can take it.

        Returns
        -------
        list of cells, or None
            Of each component. None, with nothing learnt, if :meth:`take` would change the bytecode or ranks.
        """
        taken: list[Cells] = []
        for component in components:
            cells: list[tuple[int, Any]] = []
            for slot, column in self._slots[component]:
                value = event.get(column.name)
                if value is not None and value == value:
                    value = self._in_slot(column, value)
                    if value is None:
                        return None
                    cells.append((slot, value))
                else:
                    cells.append((slot, None))
            taken.append(cells)
        return taken

    def _in_slot(self, column: Column, value: Any) -> Any:
        """Return a value as a slot holds it; None if the bytecode was made before such a value came."""
        if column.kind == "string":
            if self._ranks is None:
                self._ranks = {text: rank for rank, text in enumerate(self._strings.to_pylist())}
            return self._ranks.get(value)
        if column.kind != "int":
            return value
        low, high = self._extremes.get(column, (0, -1))
        return value if low <= value <= high else None

    def _learn_extremes(self, values: Mapping[Column, Values]) -> bool:
        """Widen the extremes of the integer columns; return whether that changes a predicate.

        They are widened to powers of 2, so that a column that keeps growing seldom changes them.
        """
        for column in self.columns:
            if column.kind in ("int", "time", "duration") and len(values[column].data):
                low, high = values[column].extremes
                before = self._extremes.get(column, (0, 0))
                bits = max(low, ~low, high, ~high).bit_length()
                wide = (-(2**bits) if low < 0 else 0), 2**bits - 1
                self._extremes[column] = min(wide[0], before[0]), max(wide[1], before[1])
        safe = self._with_checks()
        changed = safe != self._safe
        self._safe = safe
        return changed

    def _learn_strings(self, texts: Sequence[Any]) -> Int64 | None:
        """Learn strings; return the new ranks of those known before, if there are new ones."""
        if not texts:
            return None
        new = sorted_strings([texts_of_column.unique() for texts_of_column in texts])
        if (places_in(new, self._strings) >= 0).all():
            return None
        return self._know(sorted_strings([self._strings, new]))

    def forget_strings(self, used: Int64) -> Int64 | None:
        """Forget the strings of no rank in ``used``, (u,) int64, once most are; return the new ranks then."""
        keep = np.unique(np.concatenate((used, places_in(self._texts, self._strings))))
        if 2 * len(keep) > len(self._strings):
            return None
        ranks = self._know(self._strings.take(pa.array(keep)))
        self.bytecode = self._compiled()
        return ranks

    def _know(self, strings: Any) -> Int64:
        before, self._strings = self._strings, strings
        self._ranks = None
        # What nothing holds any more, as a null, has a rank that is never looked at.
        return np.append(np.maximum(places_in(before, self._strings), 0), 0)
