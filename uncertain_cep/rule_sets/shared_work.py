"""Explanations of what rules share on the same events, in words and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.errors import OptionError
from uncertain_cep.plan import MatchOptions
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.plurals import counted
from uncertain_cep.query.expression_text import format_expression, quote_name
from uncertain_cep.rule_sets.events_by_type import EventsByType
from uncertain_cep.rule_sets.named_rules import Rules
from uncertain_cep.rule_sets.rule_matching import plans_of
from uncertain_cep.rule_sets.shared_selection import components_in, loosest, of_some_rule
from uncertain_cep.traces.frames import event_table
from uncertain_cep.traces.spoiled_numbers import naming_spoiled_rows

__all__ = ["explain_rules"]

_SHOWN: Final = 5
"""Rules, and selections of a group, that are named."""


def explain_rules(rules: Rules, events: Any, options: MatchOptions, format: str = "text") -> str:
    """Explain what rules share on events: groups by types, and the selections that are looked for once.

    Raises
    ------
    QueryError, OptionError
        If rules cannot be asked of these events: all faults at once. If there are no events.
    """
    if events is None:
        raise OptionError("what rules share depends on the events: give these, or a part of them")
    table = with_all_bounds(event_table(events, options.names), options.names.lower)
    with naming_spoiled_rows(table):
        facts = _facts(rules, table, replace(options, takes_spans=True))
    return json.dumps(facts, indent=2) if format == "json" else _in_words(facts)


def _facts(rules: Rules, table: pa.Table, options: MatchOptions) -> dict[str, Any]:
    planned = plans_of(rules, table.schema, options)
    by_type = EventsByType(table, options.names.type)
    groups = []
    for types in dict.fromkeys(one.types for one in planned):
        group = [one for one in planned if one.types == types]
        part, _ = by_type.of(types)
        plans = [one.plan for one in group]
        left = of_some_rule(plans, part) if types is not None and len(group) > 1 else part
        selections = loosest(component for plan in plans for component in components_in(plan))
        groups.append(
            {
                "rules": [one.rule.name for one in group],
                "types": None if types is None else sorted(types),
                "events": part.num_rows,
                "looked_at": left.num_rows,
                "selections": [
                    {
                        "types": list(one.types),
                        "where": [format_expression(rule) for rule in one.predicates],
                        "components": one.components,
                    }
                    for one in selections
                ],
            }
        )
    return {"rules": len(rules), "events": table.num_rows, "groups": groups}


def _in_words(facts: Mapping[str, Any]) -> str:
    lines = [
        f"{counted(facts['rules'], 'rule')} of {counted(facts['events'], 'event')}, "
        "which are read, checked and cut by type once"
    ]
    for group in facts["groups"]:
        lines += ["", *_of_group(group)]
    return "\n".join(lines)


def _of_group(group: Mapping[str, Any]) -> list[str]:
    types = "all types" if group["types"] is None else _names(group["types"])
    lines = [f"{types}: {counted(len(group['rules']), 'rule')}, {_names(group['rules'])}"]
    looked_at = f"  {counted(group['events'], 'event')}"
    if group["looked_at"] < group["events"]:
        looked_at += f", of which {group['looked_at']:,} can matter to some rule: each looks at these"
    lines.append(looked_at)
    shared = [one for one in group["selections"] if one["components"] > 1]
    for one in sorted(shared, key=lambda one: -one["components"])[:_SHOWN]:
        where = f" WHERE {' AND '.join(one['where'])}" if one["where"] else ""
        what = "|".join(map(quote_name, one["types"])) or "ANY"
        lines.append(f"  looked for once, for {counted(one['components'], 'component')}: {what}{where}")
    if len(shared) > _SHOWN:
        lines.append(f"  and {len(shared) - _SHOWN:,} more that several components share")
    if not shared:
        lines.append("  no selection is shared")
    return lines


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
