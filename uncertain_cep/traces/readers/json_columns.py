"""Blocks of JSON objects as columns of the values at some paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from confidence.parsing import json_trees
from confidence.parsing.json_rows import ABSENT, ESCAPED, NULL, TEXT, WHOLE
from confidence.parsing.json_trees import LEAF, LIST, NUMERAL, OBJECT, ONE, Cells, Shape
from uncertain_cep.running.compiling import compiled_for_reading
from uncertain_cep.traces.cells import cells_of, with_nulls

__all__ = ["Leaf", "Many", "Object", "One", "Paths", "Tree", "compile_trees"]

_OPEN: Final = ord("{")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value of a column."""

    column: str
    numeral: bool = False
    """Whether a text that is a whole number is one."""


@dataclass(frozen=True, slots=True)
class Object:
    """An object whose other members are passed over."""

    members: Mapping[str, Node]
    nullable: bool = False
    column: str | None = None
    """A column that is `NESTED` where there is such an object."""


@dataclass(frozen=True, slots=True)
class One:
    """An object of one member, whose name is a value of a column."""

    column: str
    value: Node


@dataclass(frozen=True, slots=True)
class Many:
    """A list of objects, which make the rows of a level."""

    level: str
    item: Object


Node = Leaf | Object | One | Many


class Paths:
    """The paths of the values to read, in the form of the kernel."""

    def __init__(self, root: Object) -> None:
        self.columns: dict[str, int] = {}
        self.levels: dict[str, int] = {"": 0}
        self._nodes: list[list[int]] = []
        self._names: list[bytes] = []
        self._targets: list[int] = []
        self._column_levels: list[int] = []
        self._outer = [0]
        self._add(root, 0)
        self.shape = Shape(
            np.frombuffer(b"".join(self._names), np.uint8),
            np.cumsum([0, *map(len, self._names)]).astype(np.int64),
            np.array(self._targets, np.int64),
            np.array(self._nodes, np.int64).reshape(-1, 5),
            np.array(self._column_levels, np.int64),
            np.array(self._outer, np.int64),
        )
        self.depth = len(self._nodes)

    def _column(self, name: str, level: int) -> int:
        self._column_levels.append(level)
        return self.columns.setdefault(name, len(self.columns))

    def _add(self, node: Node, level: int) -> int:
        """Add a node of a level, and those within; return its number."""
        number = len(self._nodes)
        row = [0] * 5
        self._nodes.append(row)
        match node:
            case Leaf(column, numeral):
                row[:2] = NUMERAL if numeral else LEAF, self._column(column, level)
            case One(column, value):
                row[:2] = ONE, self._column(column, level)
                row[2] = self._add(value, level)
            case Many(name, item):
                self._outer.append(level)
                inner = self.levels.setdefault(name, len(self.levels))
                row[:2] = LIST, inner
                row[2] = self._add(item, inner)
            case Object(members, nullable, column):
                begin = len(self._targets)
                self._names += [b'"%s"' % name.encode() for name in members]
                self._targets += [0] * len(members)
                place = -1 if column is None else self._column(column, level)
                row[:] = OBJECT, place, begin, begin + len(members), nullable
                for place, member in enumerate(members.values(), begin):
                    self._targets[place] = self._add(member, level)
        return number

    def read(self, block: bytes, *, breaks: bool = False) -> Tree | None:
        """Return the values of objects; None if they have to be read one by one.

        ``breaks`` tells whether there may be line breaks within objects. O(bytes).
        """
        if not compiled_for_reading():
            return None
        if not block.isascii():
            try:
                block.decode()
            except UnicodeDecodeError:
                return None
        letters = np.frombuffer(block, np.uint8)
        room = int(np.count_nonzero(letters == _OPEN))
        columns, levels = len(self.columns), len(self.levels)
        cells = Cells(
            np.zeros((columns, room), np.uint8),
            np.empty((columns, room), np.int64),
            np.empty((columns, room), np.int64),
            np.zeros(columns, np.int64),
            np.zeros(levels, np.int64),
            np.empty((levels, room), np.int64),
            np.empty(room, np.int64),
        )
        frames = np.zeros((3, self.depth), np.int64)
        whole = json_trees.read_trees(letters, breaks, self.shape, cells, frames)
        return Tree(self, block, letters, cells) if whole else None


@dataclass(frozen=True, slots=True)
class Tree:
    """The values of some objects."""

    paths: Paths
    block: bytes
    letters: Any
    cells: Cells

    def count(self, level: str = "") -> int:
        """Return how many objects a level has."""
        return int(self.cells.counts[self.paths.levels[level]])

    def parents(self, level: str) -> Any:
        """Return the object around each one of a level, (n,) int64."""
        return self.cells.parents[self.paths.levels[level], : self.count(level)]

    def text(self, row: int) -> bytes:
        """Return the text of an outermost object."""
        return self.block[self.cells.parents[0, row] : self.cells.ends[row]]

    def breaks_before(self, row: int) -> int:
        """Return how many lines end before an outermost object. O(bytes)."""
        return self.block.count(b"\n", 0, int(self.cells.parents[0, row]))

    def kinds(self, column: str) -> Any:
        """Return the kinds of the values of a column, (n,) uint8."""
        place = self.paths.columns[column]
        return self.cells.kinds[place, : self.cells.counts[self.paths.shape.levels[place]]]

    def has_only(self, column: str, *kinds: int) -> bool:
        """Tell whether the values of a column that are there have these kinds."""
        return not int(self.cells.seen[self.paths.columns[column]]) & ~sum(1 << kind for kind in kinds)

    def has_all(self, column: str, kind: int, rows: Any = slice(None)) -> bool:
        """Tell whether rows of a column all have values of a kind."""
        return bool((self.kinds(column)[rows] == kind).all())

    def wholes(self, column: str, rows: Any = slice(None)) -> Any:
        """Return whole numbers, (n,) int64; what is none has no meaning."""
        kinds = self.kinds(column)
        return self.cells.firsts[self.paths.columns[column], : len(kinds)][rows]

    def integers(self, column: str, rows: Any = slice(None)) -> pa.Array:
        """Return whole numbers, the others null."""
        return with_nulls(
            pa.array(np.ascontiguousarray(self.wholes(column, rows))), self.kinds(column)[rows] == WHOLE
        )

    def texts(self, column: str, rows: Any = slice(None)) -> pa.Array:
        """Return texts; values of other kinds are null."""
        kinds = self.kinds(column)[rows]
        if self.has_only(column, NULL):
            return pa.nulls(len(kinds), pa.string())
        place = self.paths.columns[column]
        count = len(self.kinds(column))
        escaped = kinds == ESCAPED
        valid = (kinds == TEXT) | escaped
        begins = np.where(valid, self.cells.firsts[place, :count][rows], -1)
        texts = cells_of(self.letters, begins, self.cells.lasts[place, :count][rows], valid)
        if not escaped.any():
            return texts
        mask = pa.array(escaped)
        quoted = pc.binary_join_element_wise('"', texts.filter(mask), '"', "")
        plain = [msgspec.json.decode(text) for text in quoted.to_pylist()]
        return pc.replace_with_mask(texts, mask, pa.array(plain, pa.string()))

    def values(self, column: str, rows: Any) -> list[Any]:
        """Return the values of some rows, (k,) int64, as Python has them."""
        place = self.paths.columns[column]
        values: list[Any] = []
        for row in rows.tolist():
            kind, first, last = (
                int(array[place, row]) for array in (self.cells.kinds, self.cells.firsts, self.cells.lasts)
            )
            if kind in (ABSENT, NULL):
                values.append(None)
            elif kind == WHOLE:
                values.append(first)
            else:
                quotes = kind in (TEXT, ESCAPED)
                values.append(msgspec.json.decode(self.block[first - quotes : last + quotes]))
        return values


def compile_trees() -> None:
    """Read an object by the kernel that reads many."""
    Paths(Object({"a": Leaf("a")})).read(b'{"a":"b","c":1}\n')
