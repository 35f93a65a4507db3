"""Tables of the offsets of clocks among the files that a schema is proposed for."""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa

from uncertain_cep.traces.alike_files import Group, host_column
from uncertain_cep.traces.toml_texts import quoted

__all__ = ["offset_table"]

_LOWER: Final = re.compile(r"(?i)(?:^|_)(?:lo|low|lower|min)(?:_|$)")
_UPPER: Final = re.compile(r"(?i)(?:^|_)(?:hi|high|upper|max)(?:_|$)")
_UNIT: Final = re.compile(r"_(ns|us|ms|s|min|h)$")


def offset_table(group: Group) -> list[str]:
    """Return comments that offer a table of hosts with bounds of offsets as an uncertainty; none of others.

    ``{host}`` stands for the column of the events that names the host.
    """
    table = group.table
    host = host_column(table)
    numbers = [
        field.name
        for field in table.schema
        if pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
    ]
    lower = [name for name in numbers if _LOWER.search(name)]
    upper = [name for name in numbers if _UPPER.search(name)]
    if host is None or len(lower) != 1 or len(upper) != 1 or len(group.files) != 1:
        return []
    unit = _UNIT.search(lower[0])
    file = group.files[0].path
    parts = [
        'kind = "clock_offset"',
        f"table = {quoted(str(file))}",
        "key = {host}",
        f"host = {quoted(host)}",
        f"lower = {quoted(lower[0])}",
        f"upper = {quoted(upper[0])}",
        *([f"unit = {quoted(unit[1])}"] if unit is not None else []),
    ]
    return [
        f"# {file.name} looks like bounds of the offsets of clocks, by {host}. If they are of these clocks:",
        f"# uncertainty = {{ {', '.join(parts)} }}",
    ]
