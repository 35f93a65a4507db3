"""From lark's parse tree to the values of :mod:`uncertain_cep.query.syntax`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, Literal

from lark import ParseTree, Token, v_args
from lark.exceptions import VisitError
from lark.tree import Meta

from uncertain_cep.query import syntax
from uncertain_cep.query.expression_builder import (
    MAX_DEPTH,
    MOST_INDEX,
    ExpressionBuilder,
    OpenDuration,
    StrategyCall,
    name_in,
    place_of,
)
from uncertain_cep.query.syntax import Expression, Position
from uncertain_cep.query.until import Until, without_until
from uncertain_cep.query.walks import components_of, conjuncts_of, is_confidence

__all__ = ["build"]

# White space and comments between words; what is quoted is kept as it is (group 1).
_GAP: Final = re.compile(r"""('[^'\n]*'|"[^"\n]*"|`[^`\n]*`)|(?:\s|--[^\n]*\n)+""")


@dataclass(frozen=True, slots=True)
class _NegatedGroup:
    """The components of ``!SEQ(N n, M m)``, items of the SEQ around it."""

    parts: tuple[syntax.Component, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class _Clause:
    keyword: str
    position: Position
    fields: dict[str, Any]


def _least_confidence(condition: Expression) -> syntax.Literal | syntax.Parameter | None:
    """Return the bound of a condition ``CONFIDENCE >= number``, or None if it is another."""
    match condition:
        case syntax.Binary(">=", left, syntax.Parameter() as bound) if is_confidence(left):
            return bound
        case syntax.Binary(">=", left, syntax.Literal(value=int() | float() as value) as bound) if (
            is_confidence(left) and not isinstance(value, bool)
        ):
            return bound
    return None


def _is_of_gaps(call: StrategyCall, pattern: syntax.Pattern) -> bool:
    """Return whether a strategy names neighbours of a pattern, and not all that it takes."""
    taken = [component.variable for component in components_of(pattern) if not component.negated]
    listed = [variable.name for variable in call.variables]
    length = len(listed)
    return 1 < length < len(taken) and any(
        taken[k : k + length] == listed for k in range(len(taken) - length + 1)
    )


def build(tree: ParseTree, text: str) -> syntax.Query | Expression:
    """Return the value of a parse tree: a query or an expression, as its start rule says.

    ``text`` is what was parsed, for excerpts in errors and for output names as written. A QuerySyntaxError
    tells what the grammar cannot say, such as a number out of range or nesting out of bounds.
    """
    try:
        return _Builder(text).transform(tree)  # type: ignore[no-any-return]
    except VisitError as error:
        raise error.orig_exc from None


class _Builder(ExpressionBuilder):
    """The rules of patterns and clauses, too."""

    # Starting points

    def query(self, clauses: list[_Clause]) -> syntax.Query:
        fields: dict[str, Any] = {
            "where": (), "strategy": "skip_till_any_match", "strategy_position": None, "window": None,
            "min_confidence": None, "returns": (), "expected_count": None, "order_by_confidence": False,
            "having": None, "order_by": (), "limit": None, "non_overlapping": False,
        }  # fmt: skip
        opened: list[syntax.OpenClause] = []
        for clause in clauses:
            fields |= clause.fields
            opened += fields.pop("open_clauses", ())
        calls: list[StrategyCall] = fields.pop("calls", [])
        if len(calls) > 1 or any(_is_of_gaps(call, fields["pattern"]) for call in calls):
            fields["gap_strategies"] = tuple(
                syntax.GapStrategy(call.strategy, call.variables, call.position) for call in calls
            )
        elif calls:
            fields |= {
                "strategy": calls[0].strategy,
                "strategy_position": calls[0].position,
                "strategy_variables": calls[0].variables,
            }
        if until := fields.pop("until"):
            if fields.get("gap_strategies", ()):
                message = (
                    "UNTIL is answered for one strategy of all gaps, not for several: write it as "
                    "skip_till_next_match(...) of all variables, or write negations in the gaps"
                )
                self._refuse(message, until[0].negated.position)
            added = (condition for spoiler in until for condition in spoiler.of_this(fields["where"]))
            fields["where"] = (*fields["where"], *added)
        positions = tuple((clause.keyword, clause.position) for clause in clauses)
        return syntax.Query(**fields, text=self._text, clause_positions=positions, open_clauses=tuple(opened))

    def row_condition(self, children: list[Expression]) -> Expression:
        self._check_expression(children[0])
        return children[0]

    # PATTERN

    def pattern_clause(self, children: list[Any]) -> _Clause:
        pattern: syntax.Pattern = children[1]
        level: list[syntax.Pattern] = [pattern]
        for _ in range(MAX_DEPTH):
            level = [item for node in level if not isinstance(node, syntax.Component) for item in node.items]
        if level:
            self._refuse(f"the pattern is nested more than {MAX_DEPTH} levels deep", level[0].position)
        pattern, spoilers = without_until(pattern, self._refuse)
        return _Clause("PATTERN", place_of(children[0]), {"pattern": pattern, "until": spoilers})

    def until(self, children: list[Any]) -> Until:
        item, *spoiler = children
        types = tuple(name_in(token) for token in spoiler[:-1] if token.type in ("WORD", "QUOTED"))
        position = place_of(spoiler[-1])
        negated = syntax.Component(types, str(spoiler[-1]), kleene=False, negated=True, position=position)
        return Until((item,), negated, position)

    compound_until = until

    def sequence(self, children: list[Any]) -> syntax.Sequence:
        items: list[syntax.Pattern] = []
        for item in children[1:]:
            items.extend(item.parts if isinstance(item, _NegatedGroup) else [item])
        return syntax.Sequence(tuple(items), place_of(children[0]))

    def conjunction(self, children: list[Any]) -> syntax.Conjunction:
        return syntax.Conjunction(self._items(children), place_of(children[0]))

    def any_of(self, children: list[Any]) -> syntax.Disjunction:
        return syntax.Disjunction(self._items(children), place_of(children[0]))

    def _items(self, children: list[Any]) -> tuple[syntax.Pattern, ...]:
        """Return the items of AND or OR, where no negated group stands."""
        for item in children[1:]:
            if isinstance(item, _NegatedGroup):
                self._refuse(
                    "a negated group stands in a SEQ(...), in whose gap its events are not to be",
                    item.position,
                )
        return tuple(children[1:])

    def group_option(self, children: list[Any]) -> syntax.Option:
        group = children[0]
        if isinstance(group, syntax.Conjunction):
            self._refuse("AND(...) takes no ?: write SEQ(AND(...))?, or OR(...)?", group.position)
        return syntax.Option((group,), group.position)

    def group_repeated(self, children: list[Any]) -> syntax.Repeated:
        group, times = children
        if isinstance(group, syntax.Conjunction):
            self._refuse("AND(...) is not repeated: write SEQ(AND(...))+ or the like", group.position)
        if isinstance(times, Token):
            times = (1 if times.type == "PLUS" else 0), None
        return syntax.Repeated((group,), group.position, *times)

    def negated_group(self, children: list[Any]) -> _NegatedGroup:
        group: syntax.Sequence | syntax.Conjunction | syntax.Disjunction = children[1]
        parts: list[syntax.Component] = []
        for part in group.items:
            if not isinstance(part, syntax.Component) or part.negated or part.kleene or not part.least:
                self._refuse(
                    "a negated group has single events alone, such as !SEQ(N n, M m): write !, ?, +, *, {} "
                    "and groups in it as negations of their own",
                    part.position,
                )
            parts.append(replace(part, negated=True))
        if not isinstance(group, syntax.Sequence):
            each = ", ".join(f"!{part.types[0] if part.types else 'ANY'} {part.variable}" for part in parts)
            what = "of events in any order" if isinstance(group, syntax.Conjunction) else "of alternatives"
            self._refuse(
                f"a negated group is a SEQ(...); {what}: write {each} for none of them", group.position
            )
        # One alone forbids alone.
        joint = parts[0].variable if len(parts) > 1 else ""
        return _NegatedGroup(tuple(replace(part, joint=joint) for part in parts), group.position)

    def kleene(self, children: list[Any]) -> syntax.Component:
        return self.component(children, kleene=True, most=None)

    def optional(self, children: list[Any]) -> syntax.Component:
        return self.component(children, least=0)

    def listed_component(self, children: list[Any]) -> syntax.Component:
        return replace(self.component(children, kleene=True), by_iteration=True)

    def listed_optional(self, children: list[Any]) -> syntax.Component:
        return replace(self.optional(children), kleene=True, by_iteration=True)

    def repeated(self, children: list[Any]) -> syntax.Component:
        times = children[-2]
        least, most = times if isinstance(times, tuple) else (0, None)
        taken = [child for child in children if child is not times]
        return self.component(taken, kleene=True, least=least, most=most)

    def times(self, children: list[Token]) -> tuple[int, int | None]:
        numbers = [self._number(token) for token in children if token.type == "NUMBER"]
        least, most = numbers[0], numbers[-1] if len(numbers) == len(children) // 2 + 1 else None
        if isinstance(least, float) or isinstance(most, float) or (most or least) > MOST_INDEX:
            self._refuse(f"events are counted by whole numbers up to {MOST_INDEX}", place_of(children[0]))
        if most is not None and (most < 1 or least > most):
            self._refuse(
                f"from {least} to {most} events are none: write {{1,2}} or the like", place_of(children[0])
            )
        return least, most

    def component(
        self, children: list[Any], *, kleene: bool = False, least: int = 1, most: int | None = 1
    ) -> syntax.Component:
        return syntax.Component(
            types=tuple(name_in(token) for token in children if token.type in ("WORD", "QUOTED")),
            variable=str(children[-1]),
            kleene=kleene,
            negated=children[0].type == "NEGATION",
            position=place_of(children[-1]),
            least=least,
            most=most,
        )

    # The other clauses

    def where_clause(self, children: list[Any]) -> _Clause:
        conditions: list[Any] = list(conjuncts_of(children[1]))
        calls = [condition for condition in conditions if isinstance(condition, StrategyCall)]
        predicates = [condition for condition in conditions if not isinstance(condition, StrategyCall)]
        return self._where(children[0], calls, predicates)

    def where_block(self, children: list[Any]) -> _Clause:
        predicates = list(conjuncts_of(children[2])) if len(children) > 2 else []
        return self._where(children[0], [children[1]], predicates)

    def _where(self, keyword: Token, calls: list[StrategyCall], predicates: list[Expression]) -> _Clause:
        for predicate in predicates:
            self._check_expression(predicate)
        return _Clause("WHERE", place_of(keyword), {"where": tuple(predicates), "calls": calls})

    def within_clause(self, children: list[Any]) -> _Clause:
        return self._valued("WITHIN", children[0], "window", children[1])

    def _valued(
        self, clause: Literal["WITHIN", "HAVING", "LIMIT"], keyword: Token, field: str, value: Any
    ) -> _Clause:
        """Return a clause of one value, which may be a parameter."""
        if isinstance(value, syntax.Parameter):
            value = OpenDuration(value, None)
        if not isinstance(value, OpenDuration):
            return _Clause(clause, place_of(keyword), {field: value})
        opened = syntax.OpenClause(clause, value.parameter, value.unit)
        return _Clause(clause, place_of(keyword), {"open_clauses": (opened,)})

    def having_clause(self, children: list[Any]) -> _Clause:
        expression, text, position = children[1]
        thresholds: list[float] = []
        opened: list[syntax.OpenClause] = []
        conditions: list[Expression] = []
        for condition in conjuncts_of(expression):
            value = _least_confidence(condition)
            if isinstance(value, syntax.Parameter) and not opened:
                opened.append(syntax.OpenClause("HAVING", value))
            elif isinstance(value, syntax.Literal):
                thresholds.append(float(value.value or 0))
            else:
                conditions.append(condition)
        fields: dict[str, Any] = {
            "min_confidence": max(thresholds, default=None),
            "open_clauses": tuple(opened),
        }
        if conditions:
            fields["having"] = syntax.Having(tuple(conditions), text, position)
        return _Clause("HAVING", place_of(children[0]), fields)

    def return_clause(self, children: list[Any]) -> _Clause:
        return _Clause("RETURN", place_of(children[0]), {"returns": tuple(children[1:])})

    def return_item(self, children: list[Any]) -> syntax.ReturnItem:
        expression, written, position = children[0]
        name = name_in(children[2]) if len(children) > 1 else written
        return syntax.ReturnItem(expression, name, position)

    def all_attributes(self, children: list[Token]) -> syntax.ReturnItem:
        variable, position = str(children[0]), place_of(children[0])
        return syntax.ReturnItem(syntax.AllAttributes(variable, position), f"{variable}.*", position)

    @v_args(meta=True)
    def written(self, meta: Meta, children: list[Expression]) -> tuple[Expression, str, Position]:
        self._check_expression(children[0])
        text = _GAP.sub(lambda gap: gap[1] or " ", self._text[meta.start_pos : meta.end_pos])
        return children[0], text, Position(meta.line, meta.column)

    def expected_clause(self, children: list[Any]) -> _Clause:
        tokens = [child for child in children if isinstance(child, Token)]
        by = tuple(name_in(token) for token in tokens if token.type in ("WORD", "QUOTED"))
        last = children[-1]
        every = last if isinstance(last, syntax.Duration) else None
        fields: dict[str, Any] = {"expected_count": syntax.ExpectedCount(by, every, place_of(children[1]))}
        if isinstance(last, OpenDuration):
            fields["open_clauses"] = (syntax.OpenClause("EVERY", last.parameter, last.unit),)
        return _Clause("RETURN", place_of(children[0]), fields)

    def probability_clause(self, children: list[Any]) -> _Clause:
        at_least, name, every = 1, "probability", None
        opened: tuple[syntax.OpenClause, ...] = ()
        for before, child in pairwise(children):
            if isinstance(child, syntax.Duration):
                every = child
            elif isinstance(child, OpenDuration):
                opened = (syntax.OpenClause("EVERY", child.parameter, child.unit),)
            elif isinstance(child, Token) and child.type == "NUMBER":
                number = self._number(child)
                if not isinstance(number, int):
                    self._refuse("OF AT LEAST takes a whole number of matches", place_of(child))
                at_least = int(number)
            elif isinstance(before, Token) and before.type == "AS":
                name = name_in(child)
        by = tuple(child for child in children if isinstance(child, syntax.GroupName))
        clause = syntax.Probability(at_least, name, by, every, place_of(children[1]))
        fields: dict[str, Any] = {"probability": clause, "open_clauses": opened}
        return _Clause("RETURN", place_of(children[0]), fields)

    def group(self, children: list[Token]) -> syntax.GroupName:
        *variable, name = map(name_in, children)
        return syntax.GroupName(variable[0] if variable else None, name, place_of(children[0]))

    def output_clause(self, children: list[Token]) -> _Clause:
        return _Clause("OUTPUT", place_of(children[0]), {"non_overlapping": True})

    def order_clause(self, children: list[Any]) -> _Clause:
        items: tuple[syntax.OrderItem, ...] = tuple(children[2:])
        if len(items) == 1 and items[0].descending and is_confidence(items[0].expression):
            return _Clause("ORDER BY", place_of(children[0]), {"order_by_confidence": True})
        return _Clause("ORDER BY", place_of(children[0]), {"order_by": items})

    def order_item(self, children: list[Any]) -> syntax.OrderItem:
        expression, text, position = children[0]
        descending = len(children) > 1 and children[1].type == "DESC"
        return syntax.OrderItem(expression, descending, text, position)

    def limit_clause(self, children: list[Any]) -> _Clause:
        limit = children[1] if isinstance(children[1], syntax.Parameter) else self._number(children[1])
        if isinstance(limit, float):
            self._refuse("LIMIT takes a whole number", place_of(children[1]))
        return self._valued("LIMIT", children[0], "limit", limit)
