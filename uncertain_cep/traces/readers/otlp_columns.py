"""Spans in OTLP as JSON as columns: many requests at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from confidence.parsing.json_rows import ABSENT, ESCAPED, FALSE, NULL, TEXT, TRUE, WHOLE
from uncertain_cep.traces.readers.event_columns import guessed, wanted_names
from uncertain_cep.traces.readers.json_columns import Leaf, Many, Object, One, Paths, Tree
from uncertain_cep.traces.readers.spans import Within

__all__ = ["PATHS", "SPAN_KINDS", "spans_of"]

SPAN_KINDS: Final = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")

Plain = Callable[[dict[str, Any]], Any]
"""The value of an attribute, such as ``{"stringValue": "x"}``."""


def _pairs(level: str) -> Many:
    value = One(f"{level} form", Leaf(f"{level} value"))
    return Many(level, Object({"key": Leaf(f"{level} key"), "value": value}))


_SPAN: Final = Object(
    {
        "traceId": Leaf("trace"),
        "spanId": Leaf("span"),
        "parentSpanId": Leaf("parent"),
        "name": Leaf("name"),
        "kind": Leaf("kind"),
        "startTimeUnixNano": Leaf("start", numeral=True),
        "endTimeUnixNano": Leaf("end", numeral=True),
        "attributes": _pairs("pair"),
        "events": Many(
            "event",
            Object({"timeUnixNano": Leaf("event time", numeral=True), "name": Leaf("event name")}),
        ),
    }
)
_RESOURCE: Final = Object(
    {
        "resource": Object({"attributes": _pairs("about")}),
        "scopeSpans": Many("scope", Object({"spans": Many("span", _SPAN)})),
        "instrumentationLibrarySpans": Leaf("old"),
    }
)
PATHS: Final = Paths(
    Object(
        {
            "resourceSpans": Many("resource", _RESOURCE),
            "resourceMetrics": Leaf("metrics"),
            "resourceLogs": Leaf("logs"),
        }
    )
)
_TEXTS: Final = (TEXT, ESCAPED)
_SAID: Final = (*_TEXTS, NULL)
_INTEGER: Final = "^-?[0-9]{1,18}$"
_NOTHING: Final = pa.scalar(None, pa.string())


def spans_of(tree: Tree, further: frozenset[str] | None, plain: Plain) -> Any:
    """Return the arguments of `span_batch` for some requests; None if they have to be read one by one.

    ``further`` are the attributes asked for (None: all).
    """
    if not _is_usual(tree):
        return None
    count = tree.count("span")
    resource_of = tree.parents("scope")[tree.parents("span")]
    about = _attributes(tree, "about", tree.count("resource"), plain)
    attributes = _attributes(tree, "pair", count, plain)
    names = {f"resource.{name}" for name in about}
    service = about.get("service.name", pa.nulls(tree.count("resource"), pa.string()))
    if names.intersection(attributes) or service.type not in (pa.string(), pa.null()):
        return None
    taken = pa.array(resource_of)
    columns = []
    for name in wanted_names(names.union(attributes), further):
        is_about = name in names
        column = about[name.removeprefix("resource.")].take(taken) if is_about else attributes[name]
        columns.append((name, column))
    parent = tree.texts("parent")
    end = tree.wholes("end")
    return (
        [
            tree.texts("trace"),
            tree.texts("span"),
            pc.if_else(pc.not_equal(parent, ""), parent, _NOTHING),
            service.cast(pa.string()).take(taken),
            tree.texts("name"),
            _kinds(tree),
        ],
        tree.wholes("start"),
        # 0 for one that has not ended.
        np.where(end == 0, -1, end),
        _within(tree),
        dict(columns),
    )


def _is_usual(tree: Tree) -> bool:
    """Tell whether all requests have a form of which columns are made."""
    empty = np.ones(tree.count(), np.bool_)
    empty[tree.parents("resource")] = False
    stamps = (("start", tree.count("span")), ("end", tree.count("span")), ("event time", tree.count("event")))
    return (
        all(tree.has_only(column, *_TEXTS) for column in ("trace", "span", "pair key", "about key"))
        and not any(
            (tree.kinds(column) == ABSENT).any() for column in ("trace", "span", "pair key", "about key")
        )
        and all(tree.has_only(column, *_SAID) for column in ("parent", "name", "event name"))
        and tree.has_only("kind", *_SAID, WHOLE)
        and all(
            tree.has_all(column, WHOLE) and (not size or int(tree.wholes(column).min()) >= 0)
            for column, size in stamps
        )
        and tree.has_only("old")
        # A request without spans has something else.
        and not (empty & (tree.kinds("metrics") <= NULL) & (tree.kinds("logs") <= NULL)).any()
    )


def _kinds(tree: Tree) -> pa.Array:
    """Return the kinds of spans, which are numbers or names."""
    names = pc.replace_substring_regex(tree.texts("kind"), "^SPAN_KIND_", "")
    if tree.has_only("kind", *_SAID):
        return names
    kinds = tree.integers("kind").dictionary_encode()
    texts = [
        SPAN_KINDS[kind] if 0 <= kind < len(SPAN_KINDS) else str(kind)
        for kind in kinds.dictionary.to_pylist()
    ]
    return pc.coalesce(pa.array(texts, pa.string()).take(kinds.indices), names)


def _within(tree: Tree) -> Within:
    """Return the events within spans."""
    spans = tree.parents("event")
    first = np.searchsorted(spans, spans)
    return Within(spans, np.arange(len(spans)) - first, tree.wholes("event time"), tree.texts("event name"))


def _attributes(tree: Tree, level: str, count: int, plain: Plain) -> Mapping[str, pa.Array]:
    """Return the attributes of so many objects by their names; of equal names the last one counts."""
    keys = tree.texts(f"{level} key").dictionary_encode()
    codes = np.asarray(keys.indices)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(keys.dictionary) + 1))
    owners = tree.parents(level)
    columns = {}
    for code, name in enumerate(keys.dictionary.to_pylist()):
        rows = order[bounds[code] : bounds[code + 1]]
        values = _values(tree, level, rows, plain)
        places = np.full(count, -1, np.int64)
        places[owners[rows]] = np.arange(len(rows))
        columns[name] = values.take(pa.array(places, mask=places < 0))
    return columns


def _values(tree: Tree, level: str, rows: Any, plain: Plain) -> pa.Array:
    """Return the values of some attributes."""
    column = f"{level} value"
    forms = tree.texts(f"{level} form", rows).unique()
    kinds = tree.kinds(column)[rows]
    if len(forms) == 1:
        texts = np.isin(kinds, _TEXTS).all()
        match forms[0].as_py():
            case "stringValue" if texts:
                return tree.texts(column, rows)
            case "intValue" if texts:
                numbers = tree.texts(column, rows)
                if pc.all(pc.match_substring_regex(numbers, _INTEGER)).as_py():
                    return numbers.cast(pa.int64())
            case "boolValue" if ((kinds == TRUE) | (kinds == FALSE)).all():
                return pa.array(kinds == TRUE)
    pairs = zip(tree.texts(f"{level} form", rows).to_pylist(), tree.values(column, rows), strict=True)
    return guessed([None if form is None else plain({form: value}) for form, value in pairs])
