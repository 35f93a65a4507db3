"""Predicates across components for runs: compiled once, while the values they work on keep coming.

The batch join knows all values before it compiles. Over a stream two things change as events come in: whether
integer arithmetic could leave int64 (:func:`uncertain_cep.expressions.vectorised.within_int64`), and the rank
of a string among all strings, which is how strings are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.pools import AttributeValues
from eventbased.incremental.candidate_pool import RunBytecode
from uncertain_cep.expressions.bytecode import BytecodeCompiler, leaves_of
from uncertain_cep.expressions.vectorised import Values, within_int64
from uncertain_cep.query.typed import Column, Constant, TypedExpression, variables_of

__all__ = ["RunPredicates", "Taken"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Taken:
    """What new values bring about.

    Attributes
    ----------
    values : AttributeValues
        For the candidate pool.
    bytecode : RunBytecode or None
        To be used from now on, if it changed.
    ranks : (r,) int64 or None
        The new rank of each string known before, if ranks changed.
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
        texts = [leaf.value for leaf in leaves if isinstance(leaf, Constant) and isinstance(leaf.value, str)]
        self._texts = list(dict.fromkeys(texts))
        self._strings = _sorted(pa.array(self._texts, pa.large_string()))
        self._extremes: dict[Column, tuple[int, int]] = {}
        self._safe = self._within_int64()
        self.bytecode = self._compiled()

    @property
    def string_slots(self) -> list[int]:
        """The slots that hold ranks of strings."""
        return [slot for slot, column in enumerate(self.columns) if column.kind == "string"]

    def _within_int64(self) -> tuple[TypedExpression, ...]:
        def extremes(column: Column) -> tuple[int, int]:
            return self._extremes.get(column, (0, 0))

        return tuple(within_int64(predicate, extremes) for predicate in self._predicates)

    def _compiled(self) -> RunBytecode:
        ranks = dict(zip(self._texts, _ranks(self._texts, self._strings).tolist(), strict=True))
        nothing: Mapping[Column, Values] = {
            column: Values(np.zeros(0, dtype=np.int64), None) for column in self.columns
        }
        first = np.zeros(len(self._components), dtype=np.int64)
        compiler = BytecodeCompiler(self._components, first, nothing, ranks)
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
        return RunBytecode(
            start=np.array(start, dtype=np.int64),
            mask=np.array(mask, dtype=np.int64),
            code=np.array(compiler.rows, dtype=np.int64).reshape(-1, 2),
            int_constants=np.concatenate([np.zeros(0, dtype=np.int64), *compiler.ints]),
            float_constants=np.concatenate([np.zeros(0), *compiler.floats]),
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
            column_values = values[column]
            here = spans[self._components[column.variable]]
            data = (
                _ranks(column_values.data, self._strings) if column.kind == "string" else column_values.data
            )
            kept = np.zeros(count, dtype=np.float64 if column.kind == "float" else np.int64)
            kept[here] = data
            (floats if column.kind == "float" else ints).append(kept)
            if column_values.valid is not None:
                nulls[slot, here] = ~column_values.valid
        taken = AttributeValues(
            np.array(ints, dtype=np.int64).reshape(len(ints), count),
            np.array(floats, dtype=np.float64).reshape(len(floats), count),
            nulls,
        )
        return Taken(taken, self.bytecode if changed or ranks is not None else None, ranks)

    def _learn_extremes(self, values: Mapping[Column, Values]) -> bool:
        """Widen the extremes of the integer columns; return whether that changes a predicate."""
        for column in self.columns:
            data = values[column].data
            if column.kind == "int" and len(data):
                low, high = int(data.min()), int(data.max())
                before = self._extremes.get(column, (low, high))
                self._extremes[column] = min(low, before[0]), max(high, before[1])
        safe = self._within_int64()
        changed = safe != self._safe
        self._safe = safe
        return changed

    def _learn_strings(self, texts: Sequence[Any]) -> Int64 | None:
        """Learn strings; return the new ranks of those known before, if there are new ones."""
        if not texts:
            return None
        new = (
            pa.chunked_array([strings.unique() for strings in texts], pa.large_string()).unique().drop_null()
        )
        new = new.filter(pc.invert(pc.is_in(new, self._strings)))
        return self._know(pa.concat_arrays([self._strings, new])) if len(new) else None

    def forget_strings(self, used: Int64) -> Int64 | None:
        """Forget the strings that nothing holds, once most are; return the new ranks then.

        Parameters
        ----------
        used : (u,) int64
            The ranks that are held.
        """
        keep = np.unique(np.concatenate((used, _ranks(self._texts, self._strings))))
        if 2 * len(keep) > len(self._strings):
            return None
        ranks = self._know(self._strings.take(pa.array(keep)))
        self.bytecode = self._compiled()
        return ranks

    def _know(self, strings: Any) -> Int64:
        before, self._strings = self._strings, _sorted(strings)
        # The rank that a null has is never looked at, but has to stand for something.
        return np.append(_ranks(before, self._strings), 0)


def _sorted(strings: Any) -> Any:
    return strings.take(pc.sort_indices(strings))


def _ranks(strings: Any, known: Any) -> Int64:
    """Return the index of each string among the known ones; 0 for those that are not."""
    index = pc.index_in(pa.array(strings, pa.large_string()), known).fill_null(0)
    return np.asarray(index.to_numpy(zero_copy_only=False)).astype(np.int64)
