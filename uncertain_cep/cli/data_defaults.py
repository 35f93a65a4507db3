"""``uncertain-cep.toml``: defaults of options, in a file beside the traces."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from uncertain_cep.cli.progress import note
from uncertain_cep.errors import OptionError
from uncertain_cep.files.special_files import is_url
from uncertain_cep.files.toml_documents import no_such_key, toml_document

__all__ = ["FILE", "KEYS", "defaults_beside"]

FILE: Final = "uncertain-cep.toml"

KEYS: Final[Mapping[str, type]] = {
    "schema": str, "input-format": str, "tick": str, "zone": str, "engine": str, "master": str,
    "threads": int, "time-limit": str, "memory-limit": str,
}  # fmt: skip
"""The options that the file may set, and what their values are."""

_INSTEAD_OF_SCHEMA: Final = (
    "type", "type_column", "id", "time", "unit", "tick", "uncertainty", "zone", "missing",
)  # fmt: skip
"""Options that exclude a schema: where one is given, that of the file is left out."""


def defaults_beside(
    traces: Sequence[str], parameters: Collection[str], named: Collection[str]
) -> dict[str, Any]:
    """Return the defaults of options in the file beside the first trace, by the names of parameters.

    Parameters
    ----------
    traces : sequence of str
    parameters : collection of str
        Those that the command has.
    named : collection of str
        Those whose values are on the command line.

    Raises
    ------
    TraceError
        If the file is no TOML.
    OptionError
        If it has a key or a value that means nothing.

    Notes
    -----
    A line on stderr says which defaults are taken. The path of a schema is relative to the file.
    """
    file = _file_of(traces)
    if file is None:
        return {}
    document = toml_document(str(file), "configuration")
    for key, value in document.items():
        if key not in KEYS:
            raise OptionError(f"{file}: {key}: {no_such_key(key, KEYS)}")
        if not isinstance(value, KEYS[key]) or isinstance(value, bool):
            kind = "a whole number" if KEYS[key] is int else "text in quotes"
            raise OptionError(f"{file}: {key} = {value!r}: it must be {kind}")
    values = {key.replace("-", "_"): value for key, value in document.items()}
    if "schema" in named:
        values = {name: value for name, value in values.items() if name not in _INSTEAD_OF_SCHEMA}
    elif not set(_INSTEAD_OF_SCHEMA).isdisjoint(named):
        values.pop("schema", None)
    values = {name: value for name, value in values.items() if name in parameters and name not in named}
    if "schema" in values:
        values["schema"] = os.path.join(file.parent, values["schema"])
    if values:
        shown = ", ".join(f"--{name.replace('_', '-')} {value}" for name, value in values.items())
        note(f"{file}: {shown}")
    return values


def _file_of(traces: Sequence[str]) -> Path | None:
    """Return the file beside the first of the traces that is on this machine, or in it if it is a folder."""
    for trace in traces:
        if not is_url(trace) and os.path.exists(trace):
            folder = Path(trace) if os.path.isdir(trace) else Path(trace).parent
            file = folder / FILE
            return file if file.is_file() else None
    return None
