"""Types of events for logs that tell none: templates of their messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.timeline.domain import is_text
from uncertain_cep.traces.alike_files import Group
from uncertain_cep.traces.message_groups import MessageGroup, message_groups
from uncertain_cep.traces.message_templates import OTHER, TEMPLATE, VARYING, template_columns, with_templates
from uncertain_cep.traces.toml_texts import key, literal

__all__ = ["ProposedTypes", "with_types_of_messages"]

_MESSAGES: Final = ("message", "msg", "MESSAGE", "log")
_TELLING: Final = frozenset(("type", "kind", "event", "eventtype", "activity", "action", "eventname"))
_SHOWN: Final = 20
"""Templates whose counts and examples stand in comments, the commonest."""
_LONGEST_EXAMPLE: Final = 90


@dataclass(frozen=True, slots=True)
class ProposedTypes:
    """Templates of the texts of a column, and how many texts have each."""

    column: str
    groups: tuple[MessageGroup, ...]
    other: int

    def lines(self) -> list[str]:
        """Return the lines of a schema."""
        shown = {group.name for group in sorted(self.groups, key=lambda group: -group.count)[:_SHOWN]}
        text = [
            "",
            f"[templates.{key(self.column)}]",
            f"# Types of events by the words of {self.column}: rename, join or leave out what you know "
            f"better. {VARYING} stands for what varies; these parts are p1, p2 and so on. The first template "
            f"that fits counts. Of no template: {self.other:,}, of type {OTHER}.",
        ]
        for group in self.groups:
            if group.name in shown:
                example = re.sub(r"\s+", " ", group.example)[:_LONGEST_EXAMPLE]
                text.append(f"# {group.count:,} such as: {example}")
            text.append(f"{key(group.name)} = {literal(group.template)}")
        return text


def with_types_of_messages(groups: Sequence[Group]) -> tuple[list[Group], ProposedTypes | None]:
    """Return groups of files with a column of the templates of their messages, and these templates.

    Files that have a column of types, and tables, keep what they have.
    """
    columns = [_message_column(group) for group in groups]
    column = next((name for name in _MESSAGES if name in columns), None)
    if column is None:
        return list(groups), None
    chosen = [group for group, name in zip(groups, columns, strict=True) if name == column]
    texts = [chunk for group in chosen for chunk in group.table.column(column).cast(pa.string()).chunks]
    found_groups = message_groups(pa.chunked_array(texts, pa.string()))
    if not found_groups:
        return list(groups), None
    templates = (column, tuple((group.name, group.template) for group in found_groups))
    if any({*group.table.column_names} & {*template_columns(templates)} for group in chosen):
        return list(groups), None
    typed = [
        replace(group, tables=tuple(with_templates(table, templates, "") for table in group.tables))
        if name == column
        else group
        for group, name in zip(groups, columns, strict=True)
    ]
    names = [group.table.column(TEMPLATE) for group in typed if TEMPLATE in group.table.column_names]
    counts: dict[str, int] = {}
    for each in names:
        for pair in pc.value_counts(each.combine_chunks()).to_pylist():
            counts[pair["values"]] = counts.get(pair["values"], 0) + pair["counts"]
    counted = tuple(
        replace(group, count=counts[group.name]) for group in found_groups if group.name in counts
    )
    return typed, ProposedTypes(column, counted, counts.get(OTHER, 0))


def _message_column(group: Group) -> str | None:
    """Return the column of messages of logs without a column of types."""
    table = group.table
    plain = {re.sub(r"[^a-z]", "", name.lower()) for name in table.column_names}
    if plain & _TELLING:
        return None
    for name in _MESSAGES:
        if name in table.column_names and is_text(table.schema.field(name).type):
            return name
    return None
