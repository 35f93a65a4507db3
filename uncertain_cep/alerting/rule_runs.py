"""Rules that run all day: files of a folder in, alerts to a sink, state in a checkpoint."""

from __future__ import annotations

import json
import logging
import pickle
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter, sleep, time
from typing import Any, Final

import numpy as np
import pyarrow as pa

from uncertain_cep.alerting.run_metrics import RunMetrics
from uncertain_cep.alerting.sinks import Sink, sink_of
from uncertain_cep.errors import OptionError, TraceError, UncertainCepError, UncertainCepWarning
from uncertain_cep.files.atomic_output import written_aside
from uncertain_cep.plan.known_until import undecided_text
from uncertain_cep.plan.lengths import ticks_in
from uncertain_cep.plurals import counted
from uncertain_cep.rule_sets.named_rules import Rules
from uncertain_cep.rule_sets.rule_files import rules as read_rules
from uncertain_cep.rule_sets.rule_streams import RuleMatcher
from uncertain_cep.running.installation import VERSION
from uncertain_cep.timeline.domain import TimeDomain
from uncertain_cep.timeline.durations import Duration, parse_duration
from uncertain_cep.traces.reading import load_traces
from uncertain_cep.traces.schema import TraceSchema

__all__ = ["RuleRun", "RunOptions"]

_log: Final = logging.getLogger("uncertain_cep.alerts")

_STATE_SECONDS: Final = 10.0
"""How often the state is written, which may be large; behind a kill the batches since are done again."""


_SHOWN_FILES: Final = 3
"""Most files that a message names."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run, beside its rules.

    Attributes
    ----------
    source : pathlib.Path
        The folder that files are put into, by renaming.
    schema : TraceSchema or None
    tick : str or None
    largest_interval : str or int
    checkpoint : pathlib.Path
    out : str
        See :func:`uncertain_cep.alerting.sinks.sink_of`.
    batch_limit : int or None
        Most files of a batch.
    duplicates : {"error", "drop"}
    reload : bool
        Whether rules that change on disk are asked from then on.
    when : {"final", "certain"}
        When an alert is told, as for :class:`uncertain_cep.RuleMatcher`.
    """

    source: Path
    schema: TraceSchema | None
    tick: str | None
    largest_interval: Duration | int
    checkpoint: Path
    out: str
    batch_limit: int | None = None
    duplicates: str = "error"
    reload: bool = False
    when: str = "final"


@dataclass
class _Kept:
    """The content of a checkpoint."""

    version: str
    rules: Rules
    schema: pa.Schema
    tick: str | None
    largest: int
    snapshot: bytes
    options: tuple[Any, ...]
    number: int = 0
    files: set[str] = field(default_factory=set)
    pending: list[tuple[int, pa.Table]] = field(default_factory=list)
    is_closed: bool = False


class RuleRun:
    """A run of rules over the files of a folder, which goes on from its checkpoint.

    A batch is some files, in the order in which they were last changed, each read once. Their events are
    taken by ``lower``, so that only what earlier batches have seen makes them late. Before a batch is read a
    note in the checkpoint says which files it has, and every ten seconds the state is written, by one rename.
    So a run that was killed does the same batches again, and tells the same alerts, with the same keys.

    Attributes
    ----------
    metrics : RunMetrics

    Raises
    ------
    OptionError
        If the checkpoint is of other rules, and these are not to be reloaded, or of another stream.
    """

    def __init__(self, sources: Sequence[str], options: RunOptions) -> None:
        if any(events.id is None for events in (options.schema.events if options.schema else ())):
            raise OptionError("a stream needs ids: name a column in [[events]], as files come one by one")
        self._sources, self._options = list(sources), options
        self.metrics = RunMetrics()
        self._rules = read_rules(self._sources)
        self._stamp = self._stamp_of_rules()
        self._kept = self._read()
        self._matcher: RuleMatcher | None = None
        self._before: dict[str, dict[str, float]] = {}
        self._number = 0 if self._kept is None else self._kept.number
        self._done = set() if self._kept is None else self._kept.files
        self._kept_at = perf_counter()
        options.checkpoint.mkdir(parents=True, exist_ok=True)
        self._sink: Sink = sink_of(options.out, options.checkpoint)
        self.metrics.add(**dict.fromkeys(("events", "late", "duplicates", "batches", "batch_seconds"), 0))
        for name, attribute in (("undelivered", "waiting"), ("lost", "lost_count")):
            if hasattr(self._sink, attribute):
                self.metrics.live[name] = partial(getattr, self._sink, attribute)
        if self._kept is not None:
            self._go_on(self._kept)

    def run(self, trigger: float | None, *, close: bool = False) -> None:
        """Do batches: for ever, ``trigger`` seconds apart at least, or (None) until all files are read.

        Then alerts are told that no event to come can change.
        """
        while not self._noted_as("close"):
            began = perf_counter()
            if self._options.reload and self._noted is None:
                self._reload()
            files = self._next_files()
            if self._noted_as("release"):
                # A kill may have cut it off.
                self._release()
            elif files:
                self._batch(files, began)
            elif trigger is None:
                break
            if trigger is not None:
                sleep(max(0.0, trigger - (perf_counter() - began)))
        if self._matcher is not None and not close and not self._noted_as("close"):
            self._note([], release=True)
            self._release()
        elif self._matcher is not None:
            self._note([], close=True)
            kept, matcher = self._state
            self._send_last(matcher.close())
            kept.is_closed = True
            self._keep()
        self._sink.close()
        if self._kept is not None:
            self._keep()

    @property
    def _state(self) -> tuple[_Kept, RuleMatcher]:
        assert self._kept is not None
        assert self._matcher is not None
        return self._kept, self._matcher

    def _batch(self, files: list[Path], began: float) -> None:
        """Read files, and tell the alerts that become final."""
        try:
            table = self._events_of(files)
            if self._matcher is None:
                self._begin(table)
            _, matcher = self._state
            late, refused = matcher.late_count, matcher.duplicate_count
            alerts = self._push(table, files)
        except (TraceError, OptionError) as error:
            # None of its alerts is told, and its files may be mended, or taken away.
            self._note(None)
            raise type(error)(_of_files(files, str(error))) from error
        self._sink.write(self._number, alerts)
        late = matcher.late_count - late
        matcher.take_late()
        refused = matcher.duplicate_count - refused
        number = self._number
        self._number, self._done = number + 1, self._done | {file.name for file in files}
        if perf_counter() - self._kept_at >= _STATE_SECONDS:
            self._keep()
        seconds = perf_counter() - began
        self.metrics.add(
            events=table.num_rows, late=late, duplicates=refused, batches=1, batch_seconds=seconds
        )
        self._measure(seconds)
        parts = [
            f"batch {number}: {counted(table.num_rows, 'event')}, {counted(alerts.num_rows, 'alert')}, "
            f"{late:,} late"
        ]
        parts += [f"{refused:,} duplicates"] if refused else []
        _log.info("%s; state %s, %.2f s", ", ".join(parts), f"{matcher.state_size:,}", seconds)

    def _release(self) -> None:
        """Tell the alerts that no event to come can change."""
        _, matcher = self._state
        self._send_last(matcher.release())
        self._number += 1
        if count := matcher.undecided_count:
            _log.warning("%s", undecided_text(count, matcher.time_of(matcher.safe)))

    def _send_last(self, alerts: pa.RecordBatch) -> None:
        """Tell alerts that are no longer held at the end of a run."""
        self._sink.write(self._number, _table(alerts))
        self._note_counts()
        if alerts.num_rows:
            _log.info("at the end: %s", counted(alerts.num_rows, "alert"))

    def _note_counts(self) -> None:
        """Note the figures of the rules; their counters begin at zero, as all of a process."""
        _, matcher = self._state
        figures = matcher.counts
        for rule, before in self._before.items():
            since = figures.get(rule, {})
            for name in ("matches", "suppressed"):
                if since.get(name, -1) >= before[name]:
                    figures[rule][name] -= before[name]
        self.metrics.rules = figures

    def _push(self, table: pa.Table, files: list[Path]) -> pa.Table:
        """Push events, and log the rules that fail with them, and the events that are refused."""
        _, matcher = self._state
        failures, refused = matcher.failures, matcher.duplicate_count
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "rule .* has failed", UncertainCepWarning)
            try:
                batch = matcher.push(table)
            except TraceError as error:
                if matcher.duplicate_count == refused:
                    raise
                if self._options.duplicates == "error":
                    raise TraceError(f"{error}. The run ends: --duplicates drop goes on") from error
                _log.error("%s", _of_files(files, str(error)))
                batch = matcher.push(table.slice(0, 0))
        _say_failures({name: why for name, why in matcher.failures.items() if name not in failures})
        return _table(batch)

    def _measure(self, seconds: float) -> None:
        """Note the figures that hold now."""
        _, matcher = self._state
        self.metrics.whole["last_batch_seconds"] = seconds
        if (safe := matcher.safe_seconds) is not None:
            self.metrics.live["lag_seconds"] = lambda: time() - safe
        self._note_counts()

    def _events_of(self, files: list[Path]) -> pa.Table:
        """Return the events of files, by ``lower``."""
        options = self._options
        loaded = load_traces([str(file) for file in files], options.schema, tick=options.tick)
        table = loaded.sound()
        if self._kept is None:
            self._tick = loaded.tick
        order = np.argsort(np.asarray(table.column("lower").cast(pa.int64())), kind="stable")
        return table.take(pa.array(order))

    def _begin(self, table: pa.Table) -> None:
        """Make the matcher, now that the first events tell which columns there are."""
        options = self._options
        domain = TimeDomain.of(table.schema, tick=self._tick)
        largest = ticks_in(options.largest_interval, domain, "--largest-interval")
        kept_to = _kept_to(options)
        self._kept = _Kept(VERSION, self._rules, table.schema, self._tick, largest, b"", kept_to)
        self._matcher = self._made(self._kept)
        self._keep()

    def _made(self, kept: _Kept) -> RuleMatcher:
        return RuleMatcher(
            kept.rules,
            kept.schema,
            tick=kept.tick,
            largest_interval=kept.largest,
            duplicates=self._options.duplicates,
            when=self._options.when,
        )

    def _go_on(self, kept: _Kept) -> None:
        """Go on from a checkpoint."""
        if kept.is_closed:
            raise OptionError(f"{self._options.checkpoint}: this stream was closed: begin another one")
        if kept.options != _kept_to(self._options):
            raise OptionError(
                f"{self._options.checkpoint}: the stream was begun with another --schema, --tick or "
                "--largest-interval: name those, or begin another checkpoint"
            )
        self._matcher = self._made(kept)
        self._matcher.restore(kept.snapshot)
        self._before = self._matcher.counts
        self._note_counts()
        _say_failures(self._matcher.failures)
        for number, alerts in kept.pending:
            self._sink.write(number, alerts)
        if _text_of(kept.rules) != _text_of(self._rules):
            if not self._options.reload:
                raise OptionError(
                    f"{self._options.checkpoint}: the rules have changed since: --reload asks the new ones "
                    "from now on"
                )
            # They are changed behind the batch that a kill has cut off, if there is one.
            self._stamp = []

    def _reload(self) -> None:
        """Ask the rules as they are on disk, if they have changed; log what keeps them from being asked."""
        stamp = self._stamp_of_rules()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            rules = read_rules(self._sources)
            if self._matcher is None:
                self._rules = rules
            elif _text_of(rules) != _text_of(self._matcher.rules):
                self._change(rules)
        except UncertainCepError as error:
            _log.error("the rules are not reloaded, and those before go on: %s", error)

    def _change(self, rules: Rules) -> None:
        kept, matcher = self._state
        tick = matcher.update(rules)
        kept.rules = self._rules = rules
        self._keep()
        shown = matcher.time_of(tick)
        _log.info("%s from %s on: %s", counted(len(rules), "rule"), shown, ", ".join(rules.names[:5]))

    def _next_files(self) -> list[Path]:
        """Return the files of the next batch, which a note in the checkpoint names from then on."""
        options = self._options
        if self._noted is not None:
            begun = [options.source / name for name in self._noted["files"]]
            for file in begun:
                if not file.exists():
                    raise OptionError(
                        f"{file}: a run has begun a batch with this file, so it is read again: put it back"
                    )
            return begun
        new = [
            (file.stat().st_mtime_ns, file.name, file)
            for file in options.source.iterdir()
            if file.name not in self._done and not file.name.startswith((".", "_")) and file.is_file()
        ]
        files = [file for *_, file in sorted(new)][: options.batch_limit]
        if files:
            self._note([file.name for file in files])
        return files

    @property
    def _notes(self) -> list[dict[str, Any]]:
        """The batches that were begun since the state was written, in order."""
        place = self._options.checkpoint / "batches.json"
        notes: list[dict[str, Any]] = []
        if place.exists():
            with _readable(place):
                notes = json.loads(place.read_text(encoding="utf-8"))
        first = 0 if self._kept is None else self._kept.number
        return [note for note in notes if note["number"] >= first]

    @property
    def _noted(self) -> dict[str, Any] | None:
        """The note of the next batch, if it was begun before."""
        return next((note for note in self._notes if note["number"] == self._number), None)

    def _noted_as(self, what: str) -> bool:
        """Return whether a run began to close the stream, or to release alerts, with the next batch."""
        noted = self._noted
        return noted is not None and bool(noted.get(what))

    def _note(self, files: list[str] | None, **what: bool) -> None:
        """Note the files of the next batch, before any of it is told; None: it is not begun after all."""
        notes = [note for note in self._notes if note["number"] < self._number]
        if files is not None:
            notes.append({"number": self._number, "files": files, **what})
        with written_aside(self._options.checkpoint / "batches.json", lambda _: True) as made:
            made.write_text(json.dumps(notes), encoding="utf-8")

    def _stamp_of_rules(self) -> list[tuple[str, int, int]]:
        """Return names, times and sizes of the files that rules, and queries that they name, may be in."""
        places = [Path(source) for source in self._sources]
        files = [file for place in places if place.is_dir() for file in place.rglob("*")]
        files += [file for place in places if place.is_file() for file in place.absolute().parent.iterdir()]
        stamps = []
        for file in sorted(files):
            try:
                status = file.stat()
            except FileNotFoundError:
                continue
            stamps.append((str(file), status.st_mtime_ns, status.st_size))
        return stamps

    def _read(self) -> _Kept | None:
        """Return the checkpoint, if there is one."""
        place = self._options.checkpoint / "state.pickle"
        if not place.exists():
            return None
        with _readable(place):
            kept: _Kept = pickle.loads(place.read_bytes())
        if kept.version != VERSION:
            raise OptionError(f"{place} was written by version {kept.version}: go on with that one")
        return kept

    def _keep(self) -> None:
        """Write the state behind the batches that are done."""
        kept, matcher = self._state
        there = {file.name for file in self._options.source.iterdir()}
        self._done &= there
        kept.number, kept.files = self._number, set(self._done)
        kept.snapshot = b"" if kept.is_closed else matcher.snapshot()
        kept.pending = self._sink.pending
        self._write()
        self._kept_at = perf_counter()

    def _write(self) -> None:
        place = self._options.checkpoint / "state.pickle"
        with written_aside(place, lambda _: True) as made:
            content = pickle.dumps(self._kept, protocol=5)
            made.write_bytes(content)
        self.metrics.whole["state_bytes"] = len(content)


def _table(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


def _text_of(rules: Rules) -> Any:
    return [(rule.name, rule.query.text_with_values, rule.suppress) for rule in rules]


def _say_failures(failures: Mapping[str, str]) -> None:
    for name, failure in failures.items():
        _log.error(
            "rule %r has failed, and tells nothing until it is changed; the others go on: %s", name, failure
        )


def _of_files(files: list[Path], message: str) -> str:
    """Return a message with the files that it is about."""
    if any(str(file) in message for file in files):
        return message
    more = ", ..." if len(files) > _SHOWN_FILES else ""
    return f"{', '.join(map(str, files[:_SHOWN_FILES]))}{more}: {message}"


def _kept_to(options: RunOptions) -> tuple[Any, ...]:
    """Return the options that a stream keeps to, whatever they are written like."""
    lengths = (options.tick, options.largest_interval)
    return options.schema, *(parse_duration(one) if isinstance(one, str) else one for one in lengths)


@contextmanager
def _readable(place: Path) -> Iterator[None]:
    """Name the file of a checkpoint that is broken."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OptionError(
            f"{place} is broken ({type(error).__name__}): restore it, or begin another checkpoint"
        ) from error
