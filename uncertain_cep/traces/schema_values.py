"""The values of a schema's keys, with a note of every one that is not what it has to be."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from uncertain_cep.errors import OptionError
from uncertain_cep.files.toml_documents import no_such_key
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS, number_unit, parse_duration
from uncertain_cep.traces.formats import COLUMN_TYPES, ColumnType
from uncertain_cep.traces.time_sums import parse_sum

__all__ = ["SchemaValues", "is_list_of_text", "joined_path"]


class SchemaValues:
    """Takes values from tables; ``faults`` are where (``events[1].time``) and what, in the order found."""

    def __init__(self) -> None:
        self.faults: list[tuple[str, str]] = []

    def fault(self, path: str, message: str) -> None:
        """Note what is wrong, and where."""
        self.faults.append((path, message))

    def unknown_keys(
        self, table: Mapping[str, Any], allowed: Collection[str], path: str, elsewhere: Collection[str] = (),
        place: str = "",
    ) -> None:  # fmt: skip
        """Note the keys that are not known; those known ``elsewhere`` with the place where they belong."""
        for key in table:
            if key in elsewhere and key not in allowed:
                self.fault(joined_path(path, key), f"there is no such key here: write it {place}")
            elif key not in allowed:
                self.fault(joined_path(path, key), no_such_key(key, allowed))

    def text(self, table: Mapping[str, Any], key: str, path: str) -> str | None:
        """Return the text of a key; None, with its fault noted, if it has none."""
        value = table.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value:
            self.fault(joined_path(path, key), f"must be a text in quotes, not {value!r}")
            return None
        return value

    def duration(self, value: str | int, path: str, *, shortest: int) -> None:
        """Note what is wrong with a length of time or a number of ticks."""
        try:
            length = value if isinstance(value, int) else parse_duration(value, what="the length")
        except OptionError as error:
            self.fault(path, str(error))
            return
        if length < shortest:
            self.fault(path, f"must be longer than 0, not {value!r}")

    def sum(self, text: str | None, path: str) -> str | None:
        """Return a sum of columns and lengths as it is; None, with its fault noted, if it cannot be read."""
        try:
            if text is not None:
                parse_sum(text)
        except OptionError as error:
            self.fault(path, str(error))
            return None
        return text

    def unit(self, unit: str | None, path: str) -> None:
        """Note a unit that there is not."""
        try:
            number_unit(unit)
        except OptionError:
            self.fault(path, f"must be one of {', '.join(UNIT_NANOSECONDS)} or tick, not {unit!r}")

    def is_true(self, table: Mapping[str, Any], key: str, path: str = "") -> bool:
        """Return whether a key says true; without it, it does not."""
        value = table.get(key, False)
        if not isinstance(value, bool):
            self.fault(joined_path(path, key), f"must be true or false, not {value!r}")
        return value is True

    def names(
        self, table: Mapping[str, Any], key: str, path: str = "", *, single: bool = False, none: bool = False
    ) -> tuple[str, ...]:
        """Return the names of a list, none twice.

        With ``single`` a text is one of them, with ``none`` the list may be empty.
        """
        value = table.get(key, [])
        if value == [] and key in table and not none:
            self.fault(joined_path(path, key), "names nothing, and has no effect: leave it out")
            return ()
        if single and isinstance(value, str):
            value = [value]
        if not is_list_of_text(value) or not all(value):
            self.fault(joined_path(path, key), 'must be a list of texts, such as ["host", "usage"]')
            return ()
        twice = sorted({name for name in value if value.count(name) > 1})
        if twice:
            self.fault(joined_path(path, key), f"names {', '.join(twice)} twice")
        return tuple(value)

    def types(self, table: object, path: str) -> tuple[tuple[str, ColumnType], ...]:
        """Return the types of columns that a table names."""
        if not isinstance(table, dict):
            self.fault(path, 'must be a table, such as [types] and then host = "string"')
            return ()
        types: list[tuple[str, ColumnType]] = []
        for column, name in table.items():
            if name in COLUMN_TYPES:
                types.append((column, name))
            else:
                self.fault(
                    joined_path(path, column), f"must be one of {', '.join(COLUMN_TYPES)}, not {name!r}"
                )
        return tuple(types)


def joined_path(path: str, key: str) -> str:
    """Return the path of a key in a table, itself at ``path`` (empty: the document)."""
    return f"{path}.{key}" if path else key


def is_list_of_text(value: object) -> bool:
    """Tell whether a value is a list of texts, or an empty one."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
