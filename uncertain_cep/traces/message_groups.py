"""Templates for messages of a log: texts that differ in numbers, or in some of their words, are of one.

The way of Drain (He, Zhu, Zheng, Lyu: Drain, an online log parsing approach with fixed depth tree, ICWS 2017)
without its order of arrival: distinct texts, the commonest first, join the group of as many words, with the
same first word, that shares most words with them, if that is at least half of them. O(n) for the texts, and
O(u g) for the u distinct ones among them and the g groups that begin like them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.traces.message_templates import ANYTHING, MOST_PARTS, OTHER, VARYING, parts_in

__all__ = ["MessageGroup", "message_groups"]

_VALUE: Final = r"[^\s=:,;|()\[\]{}\"'<>]*[0-9][^\s=,;|()\[\]{}\"'<>]*"
"""A part of a text with a digit in it: a number, an address, an id."""
_PAIR: Final = r"\b([A-Za-z_][\w.-]*)=[^\s,;|()\[\]{}\"'<>]+"
"""A name and its value, which varies though it is a word."""
_LONGEST: Final = 400
_MOST_WORDS: Final = 40
_MOST_TEXTS: Final = 5_000
"""Distinct texts that are grouped, the commonest."""
_MOST_GROUPS: Final = 100
_ALIKE: Final = 0.5
_NAMING_WORDS: Final = 4
_LONGEST_NAME: Final = 40


@dataclass(frozen=True, slots=True)
class MessageGroup:
    """A template, its name, how many texts have it, and the first of the commonest of these."""

    name: str
    template: str
    count: int
    example: str


@dataclass(slots=True)
class _Group:
    words: list[str]
    count: int
    example: str
    members: list[Sequence[str]] = field(default_factory=list)


def message_groups(messages: pa.ChunkedArray) -> list[MessageGroup]:
    """Return templates for the first lines of texts, the commoner first; none if no text has words."""
    texts = messages.cast(pa.string()).drop_null()
    first = pc.struct_field(pc.extract_regex(texts, r"^(?P<line>[^\n]*)"), "line")
    lines = pc.utf8_slice_codeunits(pc.ascii_trim_whitespace(first), 0, _LONGEST)
    masked = pc.replace_substring_regex(lines, _PAIR, rf"\1={VARYING}")
    masked = pc.replace_substring_regex(masked, _VALUE, VARYING)
    table = pa.table({"masked": masked, "line": lines}).group_by("masked", use_threads=False)
    counted = table.aggregate([("line", "count"), ("line", "min")])
    rows = zip(
        *(counted.column(name).to_pylist() for name in ("masked", "line_count", "line_min")), strict=True
    )
    distinct = sorted(rows, key=lambda row: (-row[1], row[0]))[:_MOST_TEXTS]
    groups = sorted(_grouped(distinct), key=lambda group: -group.count)[:_MOST_GROUPS]
    worded = [group for group in groups if re.search(r"[^\W\d_]", " ".join(group.words))]
    # A template of any first word would take the texts of others.
    return _named(sorted(worded, key=lambda group: group.words[0].startswith(VARYING)))


def _grouped(texts: Iterable[tuple[str, int, str]]) -> list[_Group]:
    """Return the groups of distinct texts, each with its count and an example."""
    groups: dict[tuple[int, str], list[_Group]] = {}
    for masked, count, example in texts:
        words = [word.replace(ANYTHING, VARYING) for word in re.split(r"[ \t\r\f\v]+", masked) if word]
        if not words:
            continue
        if len(words) > _MOST_WORDS or len(example) == _LONGEST:
            # The last word may be cut.
            words = [*words[:-1][: _MOST_WORDS // 2], ANYTHING]
        begin = words[0] if VARYING not in words[0] else VARYING
        alike = groups.setdefault((len(words), begin), [])
        best, shared = None, 0
        for group in alike:
            same = sum(one == other for one, other in zip(group.words, words, strict=True))
            if same > shared:
                best, shared = group, same
        if best is None or shared < _ALIKE * len(words):
            alike.append(_Group(words, count, example))
            continue
        best.words = [_merged(one, other) for one, other in zip(best.words, words, strict=True)]
        best.count += count
    return [group for alike in groups.values() for group in alike]


_EDGE: Final = re.compile(r"^(?:[^\W\d]\w*[=:])?[(\[{\"'<]*")


def _merged(one: str, other: str) -> str:
    """Return a word in which the parts that differ vary: a name before ``=``, and brackets, stay."""
    if one == other:
        return one
    if ANYTHING in (one, other):
        return ANYTHING
    begin, end = _EDGE.match(one), re.search(r"[)\]}\"'>,;:.]*$", one)
    head = begin[0] if begin is not None and other.startswith(begin[0]) else ""
    tail = end[0] if end is not None and other.endswith(end[0]) else ""
    if len(head) + len(tail) >= min(len(one), len(other)):
        head = tail = ""
    return f"{head}{VARYING}{tail}"


def _named(groups: Sequence[_Group]) -> list[MessageGroup]:
    names: set[str] = {OTHER}
    named = []
    templates: set[str] = set()
    for group in groups:
        template = _shortened(" ".join(group.words))
        if template in templates:
            continue
        templates.add(template)
        plain = _name(template)
        name, number = plain, 1
        while name in names:
            number += 1
            name = f"{plain}{number}"
        names.add(name)
        named.append(MessageGroup(name, template, group.count, group.example))
    return named


def _shortened(template: str) -> str:
    """Return a template with no more parts than become columns, whose parts stand apart."""
    template = re.sub(r"(?:<\*>)+", VARYING, template)
    while parts_in(template) == MOST_PARTS and template.count(VARYING) > MOST_PARTS - 1:
        template = template[: template.rindex(VARYING)].rstrip() + " " + ANYTHING
    return template


def _name(template: str) -> str:
    """Return the first words of a template as one."""
    words = re.findall(r"[^\W\d_]+", re.sub(r"<\*\*?>", " ", template))
    name = ""
    for word in words[:_NAMING_WORDS]:
        if len(name) + len(word) <= _LONGEST_NAME:
            name += word[:1].upper() + word[1:]
    return name or (words[0][:_LONGEST_NAME].capitalize() if words else "Message")
