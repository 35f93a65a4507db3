"""Rules that change where a stream in batches goes on: what its state says of them, and when others begin.

Nothing here imports pyspark. Each part of the state has a note of its rule. The tick at which rules change is
behind all events of the first batch after the change, as far as a new rule looks back: so new rules need no
event from before, that batch tells what it would have told without the change, and every part reckons the
same tick, as all have the same clock.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa

from confidence.config import EVER, NEVER
from uncertain_cep.errors import OptionError
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.query import query_of
from uncertain_cep.query.parameters import plain_values, values_of_plain
from uncertain_cep.rule_sets.named_rules import Rule, Suppression
from uncertain_cep.rule_sets.rule_pieces import LATE_BUCKET, SpreadRule
from uncertain_cep.streaming.batch_clock import BatchClock
from uncertain_cep.streaming.held_slices import Store, index_of
from uncertain_cep.streaming.recent_events import reach_back

__all__ = [
    "Change",
    "HeldRule",
    "HeldRules",
    "PartNote",
    "changed_names",
    "columns_as_text",
    "columns_of_text",
    "cut_column",
    "definition_of",
    "text_of",
    "texts_of",
]


def cut_column(plan: EvaluationPlan) -> str | None:
    """Return the column by whose ticks an answer can be cut in two; None if it has no times."""
    names = plan.output_schema.names
    return next((name for name in ("bucket", "range_upper") if name in names), None)


def text_of(rule: Rule) -> str:
    """Return all that decides which alerts a rule tells."""
    return f"{rule.query.text_with_values}, suppress {rule.suppress}"


@dataclass(frozen=True)
class PartNote:
    """The note that a part of the state has beside its events.

    Attributes
    ----------
    changes : int
        How often rules had changed when a batch came last.
    since, until : int
        Only alerts whose ``range_upper``, or buckets whose begin, is at ``since`` or later and before
        ``until``, ticks, are of its rule. In the part of late events ``since`` is the last change.
    about : mapping of str to any
        The rule; in the part of late events the texts of all rules, by their names.
    columns : str
        In the part of late events the columns of all rows so far, see :func:`columns_as_text`.
    """

    changes: int
    since: int
    until: int
    about: Mapping[str, Any]
    columns: str = ""

    @classmethod
    def of(cls, index: Mapping[str, Any]) -> PartNote:
        """Return the note in the index of a part."""
        if "note" not in index:
            raise OptionError(
                "the checkpoint is not one of a stream of rules, or it is of an older version, which did not "
                "write down its rules: begin with a new checkpoint folder and a new output folder"
            )
        return cls(**index["note"])


@dataclass(frozen=True)
class Change:
    """The difference between the rules of a stream and those that its checkpoint has.

    Attributes
    ----------
    number : int
        How often they have changed since the stream began.
    clock : BatchClock or None
        The clock of the checkpoint, where they change now.
    reach : int
        How many ticks new rules look back, beside the longest interval.
    earliest : int
        They change at this tick, or later.
    before : mapping of str to str
        The texts of the rules that the checkpoint has, by their names.
    """

    number: int = 0
    clock: BatchClock | None = None
    reach: int = 0
    earliest: int = NEVER
    before: Mapping[str, str] = field(default_factory=dict)

    def tick(self, clock: BatchClock) -> int:
        """Return the tick from which new rules hold, by the clock behind the first batch.

        All events until then begin at ``now`` at the latest, and end by the longest interval later. So has
        all that was told, but for buckets, which are before the bound. An event matters to an alert that
        ends at T or later only if it ends ``reach`` and the longest interval before T or later.
        """
        behind = clock.now + 2 * clock.largest + 1 + self.reach
        return min(max(behind, clock.safe, *clock.of_type.values(), self.earliest), EVER)

    def note_of(self, index: Mapping[str, Any] | None) -> PartNote | None:
        """Return the note in the index of a part; None if the part is new.

        Raises
        ------
        OptionError
            If the checkpoint is not the one that the rules were compared with.
        """
        if index is None:
            return None
        note = PartNote.of(index)
        if note.changes > self.number:
            raise OptionError(
                "the rules of this checkpoint have changed: match(..., checkpoint=...) reads which it has"
            )
        if note.changes < self.number and BatchClock.read(index["clock"]) != self.clock:
            raise OptionError(
                "the stream of this checkpoint has gone on since match() read it, as where a kill kept the "
                "last batch uncommitted, or it is another one: call match() again and start what it "
                "returns, with the folder of checkpointLocation as checkpoint="
            )
        return note

    def check_rules(self, note: PartNote | None, texts: Mapping[str, str]) -> None:
        """Raise OptionError if the part of late events knows other rules than the stream goes on from."""
        if note is None and self.before:
            raise OptionError(
                "checkpointLocation is not the folder that match(..., checkpoint=...) has read: name the "
                "same one at both places"
            )
        if note is not None:
            before = texts if note.changes == self.number else self.before
            if dict(note.about) != dict(before):
                names = changed_names(note.about, before)
                raise OptionError(f"the checkpoint is of another stream: its rules are others: {names}")

    def begun(self, store: Store, about: Mapping[str, Any], columns: str = "") -> PartNote:
        """Write the note of a part behind the first batch with these rules."""
        return self._written(store, PartNote(self.number, self._tick_behind(store), EVER, about, columns))

    def gone_on(self, store: Store, note: PartNote, *, leaves: bool) -> PartNote:
        """Write the note of a part of a rule that has one, if rules have changed since then."""
        if note.changes == self.number:
            return note
        until = self._tick_behind(store) if leaves and note.until == EVER else note.until
        return self._written(store, replace(note, changes=self.number, until=until))

    def _tick_behind(self, store: Store) -> int:
        index = index_of(store) or {}
        return NEVER if self.clock is None else self.tick(BatchClock.read(index["clock"]))

    @staticmethod
    def _written(store: Store, note: PartNote) -> PartNote:
        index = index_of(store) or {}
        store.write_index(json.dumps(index | {"note": asdict(note)}))
        return note


def definition_of(rule: Rule, first: int) -> dict[str, Any]:
    """Return a rule, and its first bucket, as values that JSON can hold."""
    query, suppress = rule.query, rule.suppress
    return {
        "name": rule.name,
        "query": query.text,
        "values": plain_values(query.values),
        "suppress": None if suppress is None else [suppress.length, *suppress.by],
        "first": first,
    }


@dataclass(frozen=True)
class HeldRule:
    """A rule of a stream, with the state that it has; None where it has none.

    Attributes
    ----------
    rule : Rule
    first : int or None
        The first of its buckets.
    fingerprint : mapping of str to any
        That of the layout of its events; empty where it has no state.
    leaves : bool
        Whether it is followed by other rules, and tells what ends before these hold.
    """

    rule: Rule
    first: int | None = None
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    leaves: bool = False

    @property
    def buckets(self) -> int | None:
        """How many buckets it has."""
        return self.fingerprint.get("buckets")

    @property
    def length(self) -> int | None:
        """The length of its slices, ticks."""
        return self.fingerprint.get("slice_length")

    @classmethod
    def of(cls, index: Mapping[str, Any]) -> HeldRule:
        """Return the rule in the index of a part, see :func:`definition_of`."""
        note = PartNote.of(index)
        about = note.about
        length, *by = about["suppress"] or (None,)
        suppress = None if length is None else Suppression(length, tuple(by))
        query = query_of(about["query"], values_of_plain(about["values"]))
        rule = Rule(about["name"], query, suppress=suppress)
        return cls(rule, about["first"], index["fingerprint"], note.until != EVER)


@dataclass(frozen=True)
class HeldRules:
    """The rules that a checkpoint has.

    Attributes
    ----------
    rules : tuple of HeldRule
    late : mapping of str to any
        The index of the part of late events; empty if no batch is in the checkpoint yet.
    earliest : int
        The latest tick at which one of these rules begins or ends.
    """

    rules: tuple[HeldRule, ...] = ()
    late: Mapping[str, Any] = field(default_factory=dict)
    earliest: int = NEVER

    @classmethod
    def of(cls, indices: Mapping[int, str]) -> HeldRules:
        """Return the rules of a state, by the texts of the indices of its parts."""
        parts = {bucket: json.loads(text) for bucket, text in indices.items()}
        if not parts:
            return cls()
        late = parts.pop(LATE_BUCKET, {})
        for part in (late, *parts.values()):
            PartNote.of(part)
        rules = {part["note"]["about"]["first"]: part for part in parts.values()}
        ticks = [part["note"][end] for part in parts.values() for end in ("since", "until")]
        earliest = max([tick for tick in ticks if tick != EVER], default=NEVER)
        return cls(tuple(HeldRule.of(rules[first]) for first in sorted(rules)), late, earliest)

    @property
    def columns(self) -> pa.Schema:
        """The columns of all rows so far."""
        return columns_of_text(PartNote.of(self.late).columns) if self.late else pa.schema([])

    def followed_by(self, rules: Iterable[Rule]) -> list[HeldRule]:
        """Return the rules that a stream goes on with, and behind them those that leave."""
        staying = {(one.rule.name, text_of(one.rule)): one for one in self.rules if not one.leaves}
        current = []
        for rule in rules:
            held = staying.pop((rule.name, text_of(rule)), HeldRule(rule))
            current.append(replace(held, rule=rule))
        leaving = [one for one in self.rules if one.leaves or one in staying.values()]
        return [*current, *(replace(one, leaves=True) for one in leaving)]

    def placed(self, rules: Sequence[SpreadRule], places: Sequence[HeldRule]) -> list[SpreadRule]:
        """Return the rules that `followed_by` has returned in their buckets, new ones behind all others."""
        free = max([LATE_BUCKET, *((one.first or 0) + (one.buckets or 0) - 1 for one in self.rules)]) + 1
        placed = []
        for rule, place in zip(rules, places, strict=True):
            first, free = (free, free + rule.layout.buckets) if place.first is None else (place.first, free)
            placed.append(replace(rule, first=first, leaves=place.leaves))
        return placed

    def change_to(self, rules: Sequence[SpreadRule]) -> Change:
        """Return the change to rules with which a stream goes on.

        Raises
        ------
        OptionError
            If the stream was closed, or an answer that changes has no times to cut it by.
        """
        if not self.late:
            return Change()
        note, clock = PartNote.of(self.late), BatchClock.read(self.late["clock"])
        if texts_of(rules) == note.about:
            return Change(note.changes, before=note.about)
        if clock.safe == EVER:
            raise OptionError("this stream was closed: begin another one with other rules")
        places = {one.first for one in self.rules}
        new = [one for one in rules if one.first not in places]
        for one in rules:
            if (one.leaves or one in new) and cut_column(one.layout.plan) is None:
                raise OptionError(f"rule {one.rule.name!r}: its answer has no times to change it at")
        reach = max((reach_back(one.layout.plan) for one in new), default=0)
        return Change(note.changes + 1, clock, reach, self.earliest, note.about)


def changed_names(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return the names of rules that come and go, given all texts by name; one that changes does both."""
    new, gone = (
        [name for name, text in one.items() if other.get(name) != text]
        for one, other in ((after, before), (before, after))
    )
    return f"new {', '.join(new) or 'none'}; gone {', '.join(gone) or 'none'}"


def columns_as_text(columns: pa.Schema) -> str:
    """Return columns as a text that JSON can hold."""
    return b64encode(columns.serialize().to_pybytes()).decode()


def columns_of_text(text: str) -> pa.Schema:
    """Return the columns that :func:`columns_as_text` has written; none of an empty text."""
    return pa.ipc.read_schema(pa.py_buffer(b64decode(text))) if text else pa.schema([])


def texts_of(rules: Iterable[SpreadRule]) -> dict[str, str]:
    """Return the texts of rules by their names, but for those that leave."""
    return {one.rule.name: text_of(one.rule) for one in rules if not one.leaves}
