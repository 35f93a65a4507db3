"""Reads the document of a schema and notes every mistake in it, with what to write instead."""

from __future__ import annotations

import codecs
import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.errors import OptionError, QueryError, QuerySyntaxError
from uncertain_cep.timeline.domain import EVENT_COLUMNS
from uncertain_cep.timeline.zones import known_zone
from uncertain_cep.traces.constraints import Constraint, all_before, causal, encloses
from uncertain_cep.traces.events_schema import KINDS, READ_EVENTS, Argument, EventsSchema, UncertaintySpec
from uncertain_cep.traces.extracting import extraction_groups
from uncertain_cep.traces.formats import FILE_FORMATS, FileOptions
from uncertain_cep.traces.joined_stamps import joined_name
from uncertain_cep.traces.log_presets import Preset
from uncertain_cep.traces.message_templates import Templates, template_fault
from uncertain_cep.traces.program_presets import PRESETS
from uncertain_cep.traces.ragged import RaggedColumns
from uncertain_cep.traces.readers import READERS
from uncertain_cep.traces.schema_values import SchemaValues, is_list_of_text, joined_path
from uncertain_cep.traces.text_lines import CONTINUATION
from uncertain_cep.traces.time_formats import EPOCHS, TimeFormat, base_fault, format_groups, told_with
from uncertain_cep.traces.time_sums import added_to, named_column, stamps_in

__all__ = ["SchemaReader"]

_TOP: Final = (
    "format", "tick", "zone", "delimiter", "nulls", "types", "extract", "events", "columns", "columns_by",
    "explode", "file_column", "folder_column", "continuation", "deduplicate", "constraints", "record_begin",
    "templates", "encoding", "skip_rows",
)  # fmt: skip
_ENDS: Final = ("begin", "end", "duration")
"""Keys of events that last."""
_EVENTS: Final = (
    "files", "type", "type_column", "id", "time", "unit", "where", "attributes", "uncertainty",
    "uncertainty_by", "missing", "time_format", "year", "date", "time_zone", "value_columns", "types",
    "probability", "sequence", "source", "ordered", "fixed_date", "optional", "spans", *_ENDS,
)  # fmt: skip
_CONSTRAINTS: Final[dict[str, tuple[Callable[..., Constraint], int, tuple[str, ...]]]] = {
    "causal": (causal, 1, ("delay",)),
    "encloses": (encloses, 2, ("by",)),
    "all_before": (all_before, 2, ("by", "delay")),
}
"""Kinds of constraints: what makes one, how many values stand at its key, and its other keys."""

_EXAMPLE: Final = 'such as { kind = "plus_minus", by = "500ms" }'


_OF_ONE_TIME: Final = ("columns", "histogram", "period")
"""Kinds that tell all of one time, or of one period."""
_LENGTHS: Final = ("exact", "plus_minus", "granularity", "window")
"""Kinds of which any number add up."""


class SchemaReader(SchemaValues):
    """One reading of a document."""

    def __init__(self) -> None:
        super().__init__()
        self._presets: list[Preset] = []
        self._has_events = False
        self.zone: str | None = None
        """The time zone of all stamps that tell none, and of queries."""

    def read(self, document: Mapping[str, Any]) -> tuple[str | None, tuple[EventsSchema, ...], FileOptions]:
        """Return the tick, the kinds of events and how files are read; of use only without faults."""
        self.unknown_keys(document, _TOP, "", _EVENTS, "under [[events]]")
        tick = self.text(document, "tick", "")
        if tick is not None:
            self.duration(tick, "tick", shortest=1)
        self.zone = self._zone(document, "zone", "")
        delimiter = self.text(document, "delimiter", "")
        if delimiter is not None and len(delimiter) != 1:
            self.fault("delimiter", 'must be one character, such as ";"')
        nulls = document.get("nulls", [])
        if not is_list_of_text(nulls) or ("nulls" in document and not nulls):
            self.fault("nulls", 'must be a list of texts, such as ["NA", "-"]')
            nulls = []
        file_format = self.text(document, "format", "")
        if file_format is not None and file_format not in FILE_FORMATS and file_format not in READERS:
            formats = ", ".join((*FILE_FORMATS, *READERS))
            self.fault("format", f"must be one of {formats}, or a plug-in, not {file_format!r}")
            file_format = None
        extract = document.get("extract", {})
        presets = [PRESETS[name] for _, name in _pairs(extract) if name in PRESETS]
        types = dict(cast(Any, [pair for preset in presets for pair in preset.types]))
        types |= dict(self.types(document.get("types", {}), "types"))
        options = FileOptions(
            tuple(types.items()),
            tuple(nulls),
            delimiter,
            self._extract(extract),
            file_format,
            columns=self.names(document, "columns"),
            columns_by=self._columns_by(document),
            explode=self.names(document, "explode", single=True),
            file_column=self.text(document, "file_column", ""),
            folder_column=self.text(document, "folder_column", ""),
            continuation=self._continuation(document.get("continuation", CONTINUATION)),
            encoding=self._encoding(document),
            skip_rows=self._skip_rows(document),
            templates=self._templates(document),
            record_begin=self._record_begin(document, presets),
            parts=any(preset.parts for preset in presets),
            deduplicate=self.is_true(document, "deduplicate"),
        )
        self._presets = presets
        self._has_events = file_format in READERS
        if self._has_events and "events" not in document:
            return tick, (READ_EVENTS,), options
        tables = document.get("events", [])
        if not isinstance(tables, list) or not tables or not all(isinstance(t, dict) for t in tables):
            self.fault("events", "write one or more tables [[events]], one for each event a row stands for")
            return tick, (), options
        read = [self._events(table, f"events[{number}]") for number, table in enumerate(tables, 1)]
        events = tuple(spec for spec in read if spec is not None)
        joined = {
            stamps_in(spec.time)[0]: spec.time_parts for spec in events if spec.time and spec.time_parts
        }
        return tick, events, replace(options, joined=tuple(joined.items()))

    def constraints(self, tables: object) -> tuple[Constraint, ...]:
        """Return the constraints of ``[[constraints]]``; of use only without faults."""
        if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
            self.fault("constraints", "write a table [[constraints]] for each of them")
            return ()
        constraints = []
        for number, table in enumerate(tables, 1):
            path = f"constraints[{number}]"
            kinds = [kind for kind in _CONSTRAINTS if kind in table]
            if len(kinds) != 1:
                self.fault(path, f"say one of {', '.join(_CONSTRAINTS)}")
                continue
            (kind,) = kinds
            make, positional, keys = _CONSTRAINTS[kind]
            if kind == "encloses" and "by" not in table:
                self.fault(
                    joined_path(path, "by"), "is missing: encloses needs the columns that tell parents"
                )
                continue
            self.unknown_keys(table, (kind, *keys), path)
            value = table[kind]
            if positional > 1 and not (isinstance(value, list) and len(value) == positional):
                self.fault(joined_path(path, kind), f"must be a list of {positional}")
                continue
            try:
                constraints.append(
                    make(
                        *(value if positional > 1 else (value,)),
                        **{key: table[key] for key in keys if key in table},
                    )
                )
            except (OptionError, QueryError, TypeError) as error:
                self.fault(path, str(error))
        return tuple(constraints)

    def _columns_by(self, document: Mapping[str, Any]) -> RaggedColumns | None:
        table = document.get("columns_by")
        if table is None:
            return None
        tables = list(table.values()) if isinstance(table, dict) else []
        if len(tables) != 1 or not isinstance(tables[0], dict):
            self.fault(
                "columns_by",
                "must be a table for one of the columns, with further ones for each of its values, such as "
                '[columns_by.kind] and then CPU = ["host", "usage"]',
            )
            return None
        ((column, values),) = table.items()
        path = joined_path("columns_by", column)
        common = document.get("columns", [])
        if not is_list_of_text(common) or column not in common:
            self.fault(path, "must be one of columns, which names those that all rows have")
        names_of_values = [(value, self.names(values, value, path, none=True)) for value in values]
        for value, names in names_of_values:
            again = [name for name in names if name in common]
            if again:
                self.fault(joined_path(path, value), f"names {', '.join(again)}, which stands in columns")
        return column, tuple(names_of_values)

    def _continuation(self, value: object) -> str | None:
        if value is False:
            return None
        try:
            if isinstance(value, str) and value:
                pc.match_substring_regex(pa.array([""]), value)
                return value
            said = f"must be a regular expression, or false, not {value!r}"
        except pa.ArrowInvalid as error:
            said = f"is no regular expression that can be used: {error}"
        self.fault("continuation", said)
        return None

    def _encoding(self, document: Mapping[str, Any]) -> str | None:
        name = self.text(document, "encoding", "")
        if name is None:
            return None
        try:
            # Some codecs are not of text.
            "a".encode(name)
            return codecs.lookup(name).name
        except (LookupError, ValueError):
            self.fault("encoding", f"is unknown: {name!r}; write one such as latin-1, cp1252 or utf-16")
            return None

    def _skip_rows(self, document: Mapping[str, Any]) -> int:
        value = document.get("skip_rows", 0)
        if (
            isinstance(value, int)
            and not isinstance(value, bool)
            and (value > 0 or "skip_rows" not in document)
        ):
            return value
        self.fault("skip_rows", f"must be a number of lines, such as 3, not {value!r}")
        return 0

    def _templates(self, document: Mapping[str, Any]) -> Templates | None:
        table = document.get("templates")
        if table is None:
            return None
        named = next(iter(table.values())) if isinstance(table, dict) and len(table) == 1 else None
        if not isinstance(named, dict) or not named or not all(isinstance(t, str) for t in named.values()):
            message = (
                "must be a table for one column, with names and templates of its texts, such as "
                "[templates.message] and then Login = 'user <*> logged in'"
            )
            self.fault("templates", message)
            return None
        (column,) = table
        for name, template in named.items():
            if (fault := template_fault(template)) is not None:
                self.fault(joined_path(joined_path("templates", column), name), fault)
        return column, tuple(named.items())

    def _record_begin(self, document: Mapping[str, Any], presets: Sequence[Preset]) -> str | None:
        begin = self.text(document, "record_begin", "")
        if begin is None:
            # Forms of several logs need not agree.
            begins = {preset.begins for preset in presets}
            return begins.pop() if len(begins) == 1 and "continuation" not in document else None
        if "continuation" in document:
            self.fault("record_begin", "tells which lines go on, as continuation does: leave one of them out")
        try:
            pc.match_substring_regex(pa.array([""]), begin)
        except pa.ArrowInvalid as error:
            self.fault("record_begin", f"is no regular expression that can be used: {error}")
        return begin

    def _time_format(
        self, table: Mapping[str, Any], path: str
    ) -> tuple[tuple[str, ...], str | None, str | None, str | None]:
        """Return the formats of stamps, what they lack of a date, their zone, and the unit of numbers."""
        forms = self.names(table, "time_format", path, single=True)
        year, day = table.get("year"), table.get("date")
        base = None if year is None and day is None else str(day if year is None else year)
        if year is not None and day is not None:
            self.fault(joined_path(path, "year"), "is told by date, too: leave one of them out")
        elif base is not None and (
            fault := base_fault(base) if isinstance(year, int) or day is not None else "must be a number"
        ):
            self.fault(joined_path(path, "year" if day is None else "date"), f"{fault}, not {base!r}")
        if self.is_true(table, "fixed_date", path) and base is None:
            self.fault(joined_path(path, "fixed_date"), "goes with date or year, which it holds for all rows")
        zone = self._zone(table, "time_zone", path)
        of_preset = not forms and bool(self._presets) and table.get("time") == "time"
        if of_preset:
            # Each log has one of the forms, whose times those of the others do not fit.
            forms = tuple(dict.fromkeys(form for preset in self._presets for form in preset.time_format))
        lacks: dict[str, str] = {}
        for form in forms:
            if form in EPOCHS or form == "iso":
                continue
            try:
                groups = format_groups(form)
            except ValueError as error:
                epochs = ", ".join(EPOCHS)
                message = f"{form!r} cannot be read: {error}; formats are as of strptime, or {epochs}, iso"
                self.fault(joined_path(path, "time_format"), message)
                continue
            if not groups & {"d", "j"}:
                lacks[form] = 'date = "2015-10-17"'
            elif not groups & {"Y", "y"}:
                lacks[form] = "year = 2015"
        if not lacks and base is not None:
            teller = "time_format" if forms else "ISO 8601"
            key = "year" if day is None else "date"
            self.fault(
                joined_path(path, key),
                f"has no effect, as {teller} tells it: leave it out, or name the time_format of such stamps",
            )
        lacks = {form: key for form, key in lacks.items() if not told_with([form], base)}
        if lacks and of_preset and len(lacks) < len(forms):
            forms = tuple(form for form in forms if form not in lacks)
        elif lacks:
            form, key = next(iter(lacks.items()))
            self.fault(
                joined_path(path, "time_format"), f"{form!r} tells no {key.partition(' ')[0]}: add {key}"
            )
        numbers = table.get("unit") is not None or (forms and EPOCHS.keys() >= {*forms})
        if numbers and zone is not None:
            message = "has no effect on numbers since 1970, which are in UTC: leave it out"
            self.fault(joined_path(path, "time_zone"), message)
        if zone is None and not numbers:
            zone = self.zone
        unit = TimeFormat(forms).unit
        if unit is not None and table.get("unit") is not None:
            self.fault(joined_path(path, "unit"), "is told by time_format, too: leave one of them out")
        return forms, base, zone, unit

    def _zone(self, table: Mapping[str, Any], key: str, path: str) -> str | None:
        zone = self.text(table, key, path)
        if zone is not None and not known_zone(zone):
            message = f"there is no time zone {zone!r}: write a name such as Europe/Berlin, or +02:00"
            self.fault(joined_path(path, key), message)
        return zone

    def _extract(self, expressions: object) -> tuple[tuple[str, str], ...]:
        example = "such as [extract] and then attempt_id = '_(?P<attempt>[0-9]+)$'"
        if not isinstance(expressions, dict) or not all(
            isinstance(expression, str) or (is_list_of_text(expression) and expression)
            for expression in expressions.values()
        ):
            message = f"must be a table of columns and regular expressions, or lists of these, {example}"
            self.fault("extract", message)
            return ()
        patterns: list[tuple[str, str]] = []
        for column, name in _pairs(expressions):
            patterns += [
                (column, pattern) for pattern in (PRESETS[name].patterns if name in PRESETS else (name,))
            ]
        for column, pattern in patterns:
            try:
                groups = extraction_groups(pattern)
            except ValueError as error:
                self.fault(
                    joined_path("extract", column), f"is no regular expression that can be used: {error}"
                )
                continue
            if not groups:
                presets = ", ".join(PRESETS)
                message = f"names no group for the new column, {example}, and is none of {presets}"
                self.fault(joined_path("extract", column), message)
        return tuple(patterns)

    def _events(self, table: Mapping[str, Any], path: str) -> EventsSchema | None:
        before = len(self.faults)
        # TOML takes all that follows a table as its own.
        self.unknown_keys(table, _EVENTS, path, _TOP, "above all tables, at the top of the schema")
        if self._has_events:
            table = _with_defaults(table)
        keys = (
            "files", "type", "type_column", "id", "unit", "where", "missing", "probability", "sequence",
            "source", *_ENDS,
        )  # fmt: skip
        numbered = table.get("id") is False
        texts = {key: None if key == "id" and numbered else self.text(table, key, path) for key in keys}
        switches = {key: self.is_true(table, key, path) for key in ("ordered", "optional", "spans")}
        ordered = switches["ordered"]
        if texts["source"] is not None and texts["sequence"] is None and not ordered:
            self.fault(
                joined_path(path, "source"), "goes with sequence or ordered: say in which order events are"
            )
        if ("type" in table) == ("type_column" in table):
            column = "a column"
            if "value_columns" in table:
                column = 'variable", which holds the name of the column of each value, or "a column'
            self.fault(path, f'say the type of these events, either type = "CPU" or type_column = "{column}"')
        time, parts = self._time(table, path)
        self.unit(texts["unit"], joined_path(path, "unit"))
        forms, base, zone, unit = self._time_format(table, path)
        missing = texts["missing"] or "error"
        if missing not in ("error", "drop"):
            self.fault(joined_path(path, "missing"), f'must be "error" or "drop", not {missing!r}')
        if texts["where"] is not None:
            self._condition(texts["where"], joined_path(path, "where"))
        attributes = self._attributes(table.get("attributes"), joined_path(path, "attributes"))
        values = self._attributes(table.get("value_columns"), joined_path(path, "value_columns")) or ()
        if table.get("value_columns") in ([], {}):
            self.fault(joined_path(path, "value_columns"), "names nothing, and has no effect: leave it out")
        types = self.types(table.get("types", {}), joined_path(path, "types"))
        uncertainty = self._declared(table, path)
        lasts = self._ends(table, uncertainty, path)
        if uncertainty is not None and "time" not in table and not lasts and _needs_time(uncertainty):
            message = 'is missing: name the column of the stamps, such as time = "timestamp"'
            self.fault(joined_path(path, "time"), message)
        if len(self.faults) > before or uncertainty is None:
            return None
        fields: dict[str, Any] = {
            **texts,
            **switches,
            "missing": missing,
            "unit": texts["unit"] or unit,
            "time": time,
        }
        return EventsSchema(
            uncertainty=uncertainty,
            attributes=attributes,
            time_format=forms,
            base=base,
            time_zone=zone,
            value_columns=values,
            types=types,
            fixed_date=table.get("fixed_date") is True,
            time_parts=parts,
            numbered=numbered,
            **fields,
        )

    def _ends(self, table: Mapping[str, Any], spec: UncertaintySpec | None, path: str) -> bool:
        """Return whether events last; note what is wrong with the columns of their ends and lengths."""
        keys = [key for key in _ENDS if table.get(key) is not None]
        for key in keys:
            if key != "duration" and isinstance(table[key], str):
                self.sum(table[key], joined_path(path, key))
        if len(keys) == 1:
            lacking = " or ".join(key for key in _ENDS if key not in keys)
            self.fault(
                joined_path(path, keys[0]), f"tells too little: an event that lasts needs {lacking}, too"
            )
        if keys and table.get("spans") is True:
            message = "ties the begins and ends of a format: leave it out, or begin, end and duration"
            self.fault(joined_path(path, "spans"), message)
        if keys and "time" in table:
            message = "an event that lasts has no single time: leave time out, or begin, end and duration"
            self.fault(joined_path(path, "time"), message)
        for kind in _OF_ONE_TIME if keys and spec is not None else ():
            if spec is not None and kind in spec.kinds:
                message = f"{kind} is for single stamps: say how uncertain the stamps of begin and end are"
                self.fault(joined_path(path, "uncertainty"), message)
        return bool(keys)

    def _time(self, table: Mapping[str, Any], path: str) -> tuple[str | None, tuple[str, ...]]:
        """Return the column of stamps, and the columns that it is put together of, if there are several."""
        if not isinstance(table.get("time"), list):
            time = self.text(table, "time", path)
            return self.sum(time, joined_path(path, "time")), ()
        parts = self.names(table, "time", path, none=True)
        if not parts:
            if not any(where == joined_path(path, "time") for where, _ in self.faults):
                self.fault(
                    joined_path(path, "time"), 'names no column: write one, or such as ["Date", "Time"]'
                )
            return None, ()
        # What is added to the last one is added to the stamp.
        last = self.sum(parts[-1], joined_path(path, "time"))
        if len(parts) == 1 or last is None:
            return last, ()
        if table.get("unit") is not None:
            message = "is for numbers, and time puts texts together: say time_format"
            self.fault(joined_path(path, "unit"), message)
        parts = (*parts[:-1], stamps_in(last)[0])
        return named_column(joined_name(parts)) + added_to(last), parts

    def _condition(self, text: str, path: str) -> None:
        from uncertain_cep.query import parse_row_condition

        try:
            parse_row_condition(text)
        except (QuerySyntaxError, QueryError) as error:
            self.fault(path, str(error))

    def _attributes(self, value: object, path: str) -> tuple[tuple[str, str], ...] | None:
        if value is None:
            return None
        if is_list_of_text(value):
            pairs = tuple((name, name) for name in cast(list[str], value))
        elif isinstance(value, dict) and all(isinstance(old, str) for old in value.values()):
            pairs = tuple(value.items())
        else:
            self.fault(path, 'must be a list ["host"] or a table { new_name = "column" }')
            return None
        for new, _ in pairs:
            if new in EVENT_COLUMNS:
                self.fault(
                    path, f'no attribute can be called {new!r}: rename it, as in {{ raw_{new} = "{new}" }}'
                )
        twice = sorted({new for new, _ in pairs if [name for name, _ in pairs].count(new) > 1})
        if twice:
            self.fault(path, f"names {', '.join(twice)} twice")
        return pairs

    def _declared(self, table: Mapping[str, Any], path: str) -> UncertaintySpec | None:
        single, by = table.get("uncertainty"), table.get("uncertainty_by")
        if (single is None) == (by is None):
            self.fault(
                joined_path(path, "uncertainty"),
                f'say how uncertain the times are, {_EXAMPLE}, or {{ kind = "exact" }}; or, by the values of '
                "a column, in a table uncertainty_by.<column>; one of the two",
            )
            return None
        if single is not None:
            return self.uncertainty(single, joined_path(path, "uncertainty"))
        path = joined_path(path, "uncertainty_by")
        tables = list(by.values()) if isinstance(by, dict) else []
        if not isinstance(by, dict) or len(by) != 1 or not all(isinstance(v, dict) and v for v in tables):
            self.fault(
                path,
                "must be a table for one column with an uncertainty for each of its values, such as "
                '[events.uncertainty_by.source] and then ganglia = { kind = "window", length = "15s" }',
            )
            return None
        ((column, values),) = by.items()
        specs_of_values = [
            (value, self.uncertainty(rule, joined_path(joined_path(path, column), value)))
            for value, rule in values.items()
        ]
        specs = tuple((value, spec) for value, spec in specs_of_values if spec is not None)
        return UncertaintySpec("by_value", column=column, values=specs)

    def uncertainty(self, table: object, path: str) -> UncertaintySpec | None:
        """Return the uncertainty that a table declares; None, with its faults noted, if it is none.

        Those of a list of tables add up.
        """
        if isinstance(table, list):
            return self._sum_of_rules(table, path)
        if not isinstance(table, dict):
            self.fault(path, f"must be a table, {_EXAMPLE}")
            return None
        name = table.get("kind")
        kind = KINDS.get(name) if isinstance(name, str) else None
        if kind is None or not isinstance(name, str):
            near = difflib.get_close_matches(str(name), KINDS, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            self.fault(joined_path(path, "kind"), f"must be one of {', '.join(KINDS)}, not {name!r}{hint}")
            return None
        before = len(self.faults)
        self.unknown_keys(table, ("kind", *kind.arguments), path)
        arguments: list[tuple[str, Argument]] = []
        for key in kind.arguments:
            value = table.get(key)
            if value is None:
                if key in kind.required:
                    self.fault(
                        joined_path(path, key), f"is missing: {name} needs {' and '.join(kind.required)}"
                    )
            elif key in kind.rules:
                rule = self.uncertainty(value, joined_path(path, key))
                if rule is not None:
                    arguments.append((key, rule))
            elif key in kind.switches and isinstance(value, bool):
                arguments.append((key, value))
            elif key in kind.switches:
                self.fault(joined_path(path, key), f"must be true or false, not {value!r}")
            elif key in kind.pairs and is_list_of_text(value) and len(value) == 2:
                arguments.append((key, tuple(value)))
            elif key in kind.pairs:
                self.fault(joined_path(path, key), f"must be a list of two columns, not {value!r}")
            elif key in kind.durations and isinstance(value, int) and not isinstance(value, bool):
                arguments.append((key, value))
            else:
                text = self.text(table, key, path)
                if text is not None:
                    arguments.append((key, text))
        for key, value in arguments:
            if key in kind.durations and isinstance(value, str | int):
                self.duration(
                    value, joined_path(path, key), shortest=0 if name in ("plus_minus", "clock_offset") else 1
                )
            if key == "unit":
                self.unit(str(value), joined_path(path, key))
            if key in kind.sums:
                self.sum(str(value), joined_path(path, key))
        return None if len(self.faults) > before else UncertaintySpec(name, tuple(arguments))

    def _sum_of_rules(self, tables: list[object], path: str) -> UncertaintySpec | None:
        """Return an uncertainty of several that add up."""
        specs = [self.uncertainty(table, f"{path}[{number}]") for number, table in enumerate(tables, 1)]
        parts = tuple(spec for spec in specs if spec is not None)
        single = [
            spec.kind for spec in parts if spec.kind not in _LENGTHS or "source" in dict(spec.arguments)
        ]
        if not tables:
            self.fault(path, f"names no uncertainty: write one, or several that add up, {_EXAMPLE}")
        if len(single) > 1:
            lengths = ", ".join(_LENGTHS)
            self.fault(path, f"cannot add {' and '.join(single)}: besides {lengths} there can be one other")
        return UncertaintySpec("sum", parts=parts) if len(parts) == len(tables) and len(single) < 2 else None


def _pairs(extract: Any) -> list[tuple[str, str]]:
    """Return the columns and expressions of a table, of which each may have several."""
    pairs = extract.items() if isinstance(extract, dict) else ()
    return [
        (column, each)
        for column, patterns in pairs
        for each in (patterns if isinstance(patterns, list) else [patterns])
        if isinstance(each, str)
    ]


def _with_defaults(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a table with defaults for rows that are events already, which stay as they are."""
    defaults: dict[str, object] = (
        {} if "type" in table or "type_column" in table else {"type_column": "type", "id": "id"}
    )
    if not table.keys() & {"time", "uncertainty", "uncertainty_by"}:
        defaults["uncertainty"] = {"kind": "columns", "lower": "lower", "upper": "upper"}
    elif not table.keys() & {"time", *_ENDS}:
        defaults["time"] = "lower"
    return {**defaults, **table}


def _needs_time(spec: UncertaintySpec) -> bool:
    if spec.column is not None:
        return any(_needs_time(inner) for _, inner in spec.values)
    if spec.parts:
        # Lengths need stamps where nothing else tells the times.
        single = [part for part in spec.parts if part.kind not in _LENGTHS]
        return any(map(_needs_time, single or spec.parts))
    if spec.kind == "histogram":
        return "lower" not in dict(spec.arguments)
    return spec.kind != "columns"
