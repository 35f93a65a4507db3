"""XML read element by element, in bounded memory, without entities and without the network."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from lxml import etree

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.bounded import LONGEST_LINE
from uncertain_cep.traces.readers.source import Source, shown_text

__all__ = ["number_of", "parsed_elements"]


def parsed_elements(source: Source, root: str, kept: frozenset[str]) -> Iterator[tuple[bool, Any]]:
    """Yield each element when it begins, behind True, and when it has ended, behind False.

    Names are those without a namespace. What is in an element goes with its end, unless its parent is of the
    ``kept`` names. A TraceError names the line of what is no XML, or says that the ``root`` is another one.
    """
    # libxml2 itself refuses what nests deeper than 256 elements, texts beyond 10 MB, and entities that
    # unfold to more than was read. It holds a tag, with its attributes, until that has ended.
    watched = _Watched(source.stream)
    parser = etree.iterparse(
        watched,
        events=("start", "end"),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    begun = False
    try:
        for event, element in parser:
            watched.since = 0
            if not isinstance(element.tag, str):
                continue
            if "}" in element.tag:
                element.tag = element.tag.rpartition("}")[2]
            if not begun:
                begun = True
                _check_root(element, root)
            yield event == "start", element
            parent = element.getparent()
            if event == "end" and parent is not None and parent.tag not in kept:
                element.clear()
                while (before := element.getprevious()) is not None:
                    parent.remove(before)
    except etree.XMLSyntaxError as error:
        said = shown_text(str(error).rpartition(", line")[0].encode())
        message = f"it is no XML, or cut off: {said}"
        raise TraceError(TraceFault(message, row=error.lineno)) from None


class _Watched(io.RawIOBase):
    """A stream that raises a TraceError where too much has been read since the last element."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream
        self.since = 0

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._stream.read(size)
        self.since += len(data)
        if self.since > LONGEST_LINE:
            raise TraceError(
                f"a tag with its attributes, or what stands between two tags, is longer than {LONGEST_LINE:,}"
                " bytes, the most that is read"
            )
        return data


def _check_root(element: Any, root: str) -> None:
    declared = element.getroottree().docinfo.internalDTD
    if declared is not None and any(True for _ in declared.iterentities()):
        raise TraceError("it declares entities, which are not read: write out what they stand for")
    if element.tag != root:
        raise TraceError(
            TraceFault(f"it is <{element.tag}>, where <{root}> is expected", row=element.sourceline)
        )


def number_of(element: Any, name: str, *, smallest: int = 0) -> int:
    """Return a whole number that an attribute of an element holds."""
    text = element.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 18 and int(text) >= smallest):
        message = f"<{element.tag}> needs a whole number here"
        raise TraceError(TraceFault(message, row=element.sourceline, column=name, value=repr(text[:60])))
    return int(text)
