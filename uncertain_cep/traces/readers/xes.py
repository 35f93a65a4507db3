"""Process logs in XES (IEEE 1849): traces of events with attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.readers.event_columns import in_batches
from uncertain_cep.traces.readers.source import Source
from uncertain_cep.traces.readers.xml_elements import parsed_elements

__all__ = ["ATTRIBUTES", "events"]

ATTRIBUTES: Final = pa.schema([("case", pa.string()), ("lifecycle", pa.string()), ("resource", pa.string())])

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OWN: Final = ("concept:name", "time:timestamp", "lifecycle:transition", "org:resource")


def _stamp(text: str) -> int:
    """Return ms since 1970; without a time zone it is UTC."""
    time = datetime.fromisoformat(text)
    since = (time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


_VALUES: Final[dict[str, Callable[[str], Any]]] = {
    "string": str, "id": str, "date": _stamp, "int": int, "float": float,
    "boolean": lambda text: text == "true",
}  # fmt: skip


@in_batches(ATTRIBUTES)
def events(source: Source) -> Iterator[tuple[Any, ...]]:
    """Yield the events, of the type that their ``concept:name`` says, by their ``time:timestamp``.

    Further attributes have the names of their keys, those of the trace with ``case:`` before. Dates among
    them are ms since 1970.
    """
    case: dict[str, Any] = {}
    attributes: dict[str, Any] = {}
    traces = number = 0
    path: list[str] = []
    for begins, element in parsed_elements(source, "log", frozenset()):
        if begins:
            path.append(element.tag)
            if path[1:] == ["trace"]:
                case, number, traces = {}, 0, traces + 1
            elif element.tag == "event":
                attributes = {}
            continue
        match path[1:]:
            case ["trace", "event"]:
                number += 1
                name = case.get("concept:name")
                time = attributes.get("time:timestamp")
                further = {key: value for key, value in attributes.items() if key not in _OWN}
                further |= {f"case:{key}": value for key, value in case.items() if key != "concept:name"}
                place = f"{name or f'#{traces}'}:{number}"
                yield (
                    *(_text(attributes.get("concept:name")), place, time, time, _text(name)),
                    *(
                        _text(attributes.get("lifecycle:transition")),
                        _text(attributes.get("org:resource")),
                        further,
                    ),
                )
            case ["trace", "event", kind] if kind in _VALUES:
                attributes[element.get("key", "")] = _value(element)
            case ["trace", kind] if kind in _VALUES:
                case[element.get("key", "")] = _value(element)
        path.pop()


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _value(element: Any) -> Any:
    text = element.get("value", "")
    try:
        return _VALUES[element.tag](text)
    except (ValueError, OverflowError):
        message = f"it is no {element.tag}"
        raise TraceError(
            TraceFault(message, row=element.sourceline, column=element.get("key"), value=repr(text[:60]))
        ) from None
