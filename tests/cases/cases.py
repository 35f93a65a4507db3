"""Random small traces, each with a query both as text and as the oracle's pattern, from one description."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

from tests import oracle
from tests.cases.expressions import Apply, Attribute, Expression, Kind, conditions, conjuncts, values_of
from tests.cases.sampling import sampled_from
from uncertain_cep.testing.model import (
    Component,
    Event,
    Identifier,
    Match,
    Mention,
    Predicate,
    Query,
    Seq,
    Value,
)

_VARIABLES = ("a", "b", "c", "d", "E", "first", "limit_", "v2")
ATTRIBUTES: dict[str, Kind] = {"x": "int", "y": "float", "s": "string", "f": "bool"}
_KEYS = ("k", "g")
_ARROW: dict[Kind, tuple[pa.DataType, ...]] = {
    "int": (pa.int64(), pa.int64(), pa.int32(), pa.int8()),
    "float": (pa.float64(), pa.float64(), pa.float32()),
    "string": (pa.string(), pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())),
    "bool": (pa.bool_(),),
}


@dataclass(frozen=True, slots=True)
class Trace:
    """Events, and the Arrow types of their attributes, types (``type``) and ids (``id``)."""

    events: tuple[Event, ...]
    types: Mapping[str, pa.DataType]

    def table(
        self,
        *,
        shift: int = 0,
        rename: Callable[[Identifier], Identifier] = lambda id: id,
        with_pmf: bool | None = None,
    ) -> pa.Table:
        """Return the trace as an engine takes it; int64 ticks, moved by ``shift``, ids renamed."""
        events = self.events
        columns: dict[str, pa.Array] = {
            "type": pa.array([event.type for event in events], self.types.get("type", pa.string())),
            "id": self._ids([rename(event.id) for event in events]),
            "lower": pa.array([event.lower + shift for event in events], pa.int64()),
            "upper": pa.array([event.upper + shift for event in events], pa.int64()),
        }
        if with_pmf if with_pmf is not None else any(event.pmf is not None for event in events):
            columns["pmf"] = pa.array(
                [None if event.pmf is None else [float(p) for p in event.pmf] for event in events],
                pa.list_(pa.float64()),
            )
        clocks = list(dict.fromkeys(event.clock for event in events if event.clock is not None))
        if clocks:
            event_clocks = [event.clock for event in events]
            columns["source"] = pa.array(
                [None if clock is None else f"h{clocks.index(clock)}" for clock in event_clocks]
            )
            columns["offset_lower"] = pa.array([clock and clock.lower for clock in event_clocks], pa.int64())
            columns["offset_upper"] = pa.array([clock and clock.upper for clock in event_clocks], pa.int64())
            if any(clock.pmf for clock in clocks):
                laws = [clock and clock.pmf and [float(part) for part in clock.pmf] for clock in event_clocks]
                columns["offset_pmf"] = pa.array(laws, pa.list_(pa.float64()))
        if any(event.sequence is not None for event in events):
            columns["sequence"] = pa.array([event.sequence for event in events], pa.int64())
        if any(event.probability != 1 for event in events):
            # Null, or written out, is certain.
            columns["probability"] = pa.array(
                [
                    None if event.probability == 1 and number % 2 else float(event.probability)
                    for number, event in enumerate(events)
                ],
                pa.float64(),
            )
        for name, type_ in self.types.items():
            if name not in columns:
                columns[name] = pa.array([event[name] for event in events], type_)
        return pa.table(columns)

    def _ids(self, ids: list[Identifier]) -> pa.Array:
        dtype = self.types.get("id", pa.int64())
        text = any(isinstance(id, str) for id in ids)
        # Renaming may have changed their kind.
        if ids and text == pa.types.is_integer(dtype):
            dtype = pa.string() if text else pa.int64()
        return pa.array(ids, dtype)


@dataclass(frozen=True, slots=True)
class Case:
    """A trace and a query.

    Attributes
    ----------
    trace : Trace
    components : tuple of Component
    conditions : tuple of Expression
        The conjuncts of WHERE.
    agree : tuple of str
        The attributes of ``[attr]``.
    window : int
    block : bool
        Written as ``WHERE skip_till_any_match(...) { ... }``.
    returns : tuple of (str, Expression)
        The RETURN expressions, each with its alias.
    """

    trace: Trace
    components: tuple[Component, ...]
    conditions: tuple[Expression, ...] = ()
    agree: tuple[str, ...] = ()
    window: int = 10
    block: bool = False
    returns: tuple[tuple[str, Expression], ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables in pattern order."""
        return tuple(component.variable for component in self.components)

    def text(self, having: str = "", tail: str = "", within: str | None = None) -> str:
        """Return the query in the query language.

        Parameters
        ----------
        having, tail : str
            Clauses before and after RETURN.
        within : str or None
            Length of the window with a unit, instead of its ticks.
        """
        items = ", ".join(
            f"{_types_text(component.types)} {component.variable}" for component in self.components
        )
        conditions_texts = [f"[{name}]" for name in self.agree]
        for condition in self.conditions:
            text = condition.text()
            conditions_texts.append(
                f"({text})" if isinstance(condition, Apply) and condition.operator == "or" else text
            )
        strategy = f"skip_till_any_match({', '.join(self.variables)})"
        if self.block:
            where = f"WHERE {strategy} {{ {' AND '.join(conditions_texts)} }}"
        else:
            where = f"WHERE {' and '.join(conditions_texts)}" if conditions_texts else ""
        returns = ", ".join(f"{expression.text()} AS {alias}" for alias, expression in self.returns)
        return "\n".join(
            part
            for part in (
                f"PATTERN SEQ({items})",
                where,
                f"WITHIN {self.window if within is None else within}",
                having,
                f"RETURN {returns}" if returns else "",
                tail,
            )
            if part
        )

    @property
    def chained(self) -> tuple[str, ...]:
        """Attributes equated across all components by chains of equalities, one name of each chain."""
        classes: list[set[tuple[str, str]]] = [
            {(variable, name) for variable in self.variables} for name in self.agree
        ]
        for condition in (part for whole in self.conditions for part in conjuncts(whole)):
            link = self._link(condition)
            if link is not None:
                touched = [chain for chain in classes if chain & link]
                classes = [chain for chain in classes if not chain & link]
                classes.append(link.union(*touched))
        names = []
        for chain in classes:
            by_variable = [
                {name for owner, name in chain if owner == variable} for variable in self.variables
            ]
            common = set.intersection(*by_variable)
            if common and not common & set(self.agree):
                names.append(min(common))
        return tuple(sorted(names))

    def _link(self, condition: Expression) -> set[tuple[str, str]] | None:
        """Return the two attributes that a condition equates, if it does just that between two variables."""
        if isinstance(condition, Apply) and condition.operator == "=":
            left, right = condition.operands
            if (
                isinstance(left, Attribute)
                and isinstance(right, Attribute)
                and left.variable != right.variable
                and self.kind(left.name) == self.kind(right.name)
            ):
                return {(left.variable, left.name), (right.variable, right.name)}
        return None

    def kind(self, name: str) -> str:
        """Return the kind of an attribute."""
        type_ = self.trace.types.get(name, pa.int64())
        if pa.types.is_integer(type_):
            return "int"
        if pa.types.is_floating(type_):
            return "float"
        if pa.types.is_null(type_):
            return "null"
        return "bool" if pa.types.is_boolean(type_) else "string"

    def query(self) -> Query:
        """Return the query as the oracle takes it."""
        return Query(
            Seq(self.components),
            self.window,
            tuple(_predicate(part) for whole in self.conditions for part in conjuncts(whole)),
            agree=self.agree,
            chained=self.chained,
        )

    def answer(self) -> list[Match]:
        """Return the oracle's answer, without output controls."""
        return oracle.answer(self.query(), self.trace.events)

    def script(self, having: str = "", tail: str = "") -> str:
        """Return a program that shows the engine's answer, to paste into a report."""
        table = self.trace.table()
        types = ", ".join(
            f"({name!r}, pa.{_type_text(table.schema.field(name).type)})" for name in table.column_names
        )
        return (
            "import pyarrow as pa, uncertain_cep as uc\n"
            f"table = pa.table({table.to_pydict()!r}, schema=pa.schema([{types}]))\n"
            f'print(uc.match(table, """{self.text(having, tail)}""").to_pylist())'
        )


def _type_text(type_: pa.DataType) -> str:
    if pa.types.is_list(type_):
        return "list_(pa.float64())"
    if pa.types.is_dictionary(type_):
        return "dictionary(pa.int32(), pa.string())"
    return {"double": "float64", "float": "float32", "bool": "bool_"}.get(str(type_), str(type_)) + "()"


def _types_text(types: tuple[str, ...]) -> str:
    if not types:
        return "ANY"
    return types[0] if len(types) == 1 else f"({'|'.join(types)})"


def _predicate(condition: Expression) -> Predicate:
    names = sorted(condition.variables())

    def test(*events: Event) -> bool | None:
        value = condition.value(dict(zip(names, events, strict=True)))
        return value if isinstance(value, bool) else None

    return Predicate(tuple(Mention.read(name) for name in names), test)


@cache
def _weights(length: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 3), min_size=length, max_size=length).filter(any)


@st.composite
def _pmf(draw: st.DrawFn, length: int) -> tuple[Fraction, ...]:
    weights = draw(_weights(length))
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


@st.composite
def traces(
    draw: st.DrawFn,
    *,
    max_size: int = 7,
    max_length: int = 5,
    reach: int = 9,
    partition: tuple[str, ...] = (),
    key_kind: Kind = "string",
    id_kind: Kind = "int",
) -> Trace:
    """Draw a trace: ties, touching intervals, certain times, zeros in pmfs, nulls, negative times.

    Now and then an attribute is null for every event, as a column of its type or of Arrow's type null. Ids
    repeat from one partition to the next where the query has partitions.
    """
    types: dict[str, pa.DataType] = {
        name: draw(sampled_from(_ARROW[kind])) for name, kind in ATTRIBUTES.items()
    }
    types |= {"k": draw(sampled_from(_ARROW[key_kind])), "g": pa.int64()}
    types |= {"type": draw(sampled_from(_ARROW["string"])), "id": draw(sampled_from(_ARROW[id_kind]))}
    absent = draw(sampled_from([*[None] * 5, *sorted(ATTRIBUTES)]))
    if absent is not None and draw(st.booleans()):
        types[absent] = pa.null()
    # Few keys, so that events meet.
    keys: list[Value] = draw(sampled_from([["u"], ["u", "v"], ["u", "u", "u", "v", "v", "", None]]))
    if key_kind == "int":
        # Some are values of x, so that a.k = b.x can hold.
        keys = [None if key is None else 2 * len(str(key)) + (key == "v") for key in keys]
    certain = draw(sampled_from([False, False, False, True]))
    uniform = draw(st.booleans())
    start = draw(sampled_from([-3, 0, 0, 100]))
    used: dict[tuple[Value, ...], int] = {}
    events = []
    for number in range(draw(sampled_from([max_size] * 6 + list(range(max_size))))):
        lower = start + draw(st.integers(0, reach))
        length = 1 if certain else draw(st.integers(1, max_length))
        attributes: dict[str, Value] = {
            "x": draw(sampled_from([0, 1, 2, 3, 5, 10, -4, None])),
            "y": draw(sampled_from([0.0, 0.5, 1.5, 2.75, -0.25, 3.0, None])),
            "s": draw(sampled_from(["u", "v", "w", "", "it's", None])),
            "f": draw(sampled_from([True, False, None])),
            "k": draw(sampled_from(keys)),
            "g": draw(sampled_from([1, 1, 1, 1, 1, 2, 2, None])),
        }
        if absent is not None:
            attributes[absent] = None
        group = tuple(attributes[name] for name in partition)
        if partition and None not in group:
            used[group] = used.get(group, 100) + 1
            id = used[group]
        else:
            id = number
        events.append(
            Event(
                draw(sampled_from(["A", "A", "B", "B", "C"])),
                f"e{id}" if id_kind == "string" else id,
                lower,
                lower + length - 1,
                None if uniform or draw(st.booleans()) else draw(_pmf(length)),
                attributes,
            )
        )
    return Trace(tuple(draw(st.permutations(events))), types)


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    max_components: int = 4,
    clocks: bool = True,
    ids: bool = True,
    returns: bool = False,
) -> Case:
    """Draw a case.

    Parameters
    ----------
    max_components : int
    clocks, ids : bool
        Whether predicates may speak of the time columns and of the id.
    returns : bool
        Whether to draw RETURN expressions.
    """
    count = draw(sampled_from([n for n in (1, 2, 2, 2, 3, 3, 3, 4) if n <= max_components]))
    variables = tuple(draw(st.permutations(_VARIABLES)))[:count]
    components = tuple(
        Component(variable, draw(sampled_from([("A",), ("B",), ("A", "B"), ("B", "A", "D"), (), (), ()])))
        for variable in variables
    )
    agree: tuple[str, ...] = ()
    chain: list[Expression] = []
    equating = draw(st.integers(0, 7))
    if equating <= 1:
        agree = ("k",)
    elif equating == 2:
        agree = ("k", "g")
    elif equating <= 4 and count > 1:
        chain = draw(_equality_chain("k", variables))
        agree = draw(sampled_from([(), ("g",)]))
    # A chain that leaves a variable out makes no partition.
    partition = (*agree, *(("k",) if 0 < count - 1 == len(chain) else ()))
    columns = dict(ATTRIBUTES)
    if clocks:
        columns |= {"lower": "clock", "upper": "clock"}
    kinds: list[Kind] = ["int", "string"]
    key_kind, id_kind = draw(sampled_from(kinds)), draw(sampled_from(kinds))
    trace = draw(traces(partition=partition, key_kind=key_kind, id_kind=id_kind))
    if count > 1 and not chain and draw(st.integers(0, 5)) == 0:
        chain = draw(_mixed_chain(variables, {**ATTRIBUTES, "k": key_kind, "g": "int"}))
    if ids:
        columns["id"] = id_kind
    columns |= {"type": "string", "k": key_kind, "g": "int"}
    conditions_drawn = [
        *chain,
        *draw(st.lists(conditions(variables, columns), max_size=draw(st.integers(0, 2)))),
    ]
    items: list[tuple[str, Expression]] = []
    if returns:
        kinds += ["float", "bool"]
        for number in range(draw(st.integers(1, 3))):
            kind = draw(sampled_from(kinds))
            items.append((f"r{number}", draw(values_of(kind, variables, columns, 2))))
    case = Case(
        trace,
        components,
        tuple(draw(st.permutations(conditions_drawn))),
        agree,
        max(1, count - 1 + draw(sampled_from([0, 1, 2, 3, 3, 4, 4, 5, 6, 8, 11, 20, 1000]))),
        draw(st.booleans()),
        returns=tuple(items),
    )
    # A condition such as a.k = b.g can make one key of two, and ids were drawn for both.
    keys = (*agree, *case.chained)
    assume(not partition or set(partition) <= set(keys) or _unique_ids(trace, keys))
    return case


def _unique_ids(trace: Trace, partition: tuple[str, ...]) -> bool:
    ids = {(event.id, *(event[name] for name in partition)) for event in trace.events}
    return len(ids) == len(trace.events)


@st.composite
def _equality_chain(draw: st.DrawFn, name: str, variables: tuple[str, ...]) -> list[Expression]:
    """Draw equalities that connect all variables, or all but the last: then they make no partition."""
    order = draw(st.permutations(variables))
    if len(order) > 2 and draw(st.integers(0, 4)) == 0:
        order = order[:-1]
    links: list[Expression] = []
    for earlier, later in pairwise(order):
        pair = (Attribute(earlier, name), Attribute(later, name))
        if draw(st.booleans()):
            pair = (pair[1], pair[0])
        links.append(Apply("=", pair, draw(sampled_from(["=", "=="]))))
    return links


@st.composite
def _mixed_chain(
    draw: st.DrawFn, variables: tuple[str, ...], columns: Mapping[str, Kind]
) -> list[Expression]:
    """Draw equalities that connect all variables by attributes of different names, such as ``a.k = b.s``."""
    kind: Kind = draw(sampled_from(["int", "string"]))
    names = sorted(name for name, column_kind in columns.items() if column_kind == kind)
    ends = {variable: draw(sampled_from(names)) for variable in variables}
    pairs = [
        (Attribute(earlier, ends[earlier]), Attribute(later, ends[later]))
        for earlier, later in pairwise(draw(st.permutations(variables)))
    ]
    return [Apply("=", pair, "=") for pair in pairs]
