"""XML that gmond and gmetad of Ganglia answer with: the latest value of each metric of each host."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.traces.readers.event_columns import in_batches
from uncertain_cep.traces.readers.source import Source
from uncertain_cep.traces.readers.xml_elements import number_of, parsed_elements

__all__ = ["ATTRIBUTES", "events"]

ATTRIBUTES: Final = pa.schema(
    [
        ("grid", pa.string()),
        ("cluster", pa.string()),
        ("host", pa.string()),
        ("value", pa.float64()),
        ("text", pa.string()),
        ("units", pa.string()),
    ]
)

_KEPT: Final = frozenset(("METRIC", "EXTRA_DATA"))


@in_batches(ATTRIBUTES)
def events(source: Source) -> Iterator[tuple[Any, ...]]:
    """Yield the metrics of hosts; sums over hosts are left out.

    A metric was received TN seconds before the LOCALTIME of its cluster, and is sent at least every TMAX
    seconds. So its value is of [LOCALTIME - TN - TMAX, LOCALTIME - TN].
    """
    above: dict[str, Any] = {}
    for begins, element in parsed_elements(source, "GANGLIA_XML", _KEPT):
        tag = element.tag
        if tag in ("GRID", "CLUSTER", "HOST"):
            if begins:
                above[tag] = element
            elif above.get(tag) is element:
                del above[tag]
        elif tag == "METRIC" and not begins and "HOST" in above and "CLUSTER" in above:
            upper = number_of(above["CLUSTER"], "LOCALTIME") - number_of(element, "TN")
            grid, cluster, host = (
                above[name].get("NAME") if name in above else None for name in ("GRID", "CLUSTER", "HOST")
            )
            metric, text, value = element.get("NAME"), element.get("VAL"), None
            if element.get("TYPE") != "string":
                with suppress(ValueError):
                    value = float(text)
            yield (
                *(metric, f"{cluster}/{host}/{metric}:{upper}", upper - number_of(element, "TMAX"), upper),
                *(grid, cluster, host, value, text if value is None else None, element.get("UNITS")),
                _others(element, above["HOST"]) if source.fields else {},
            )


def _others(metric: Any, host: Any) -> dict[str, str]:
    extra = {one.get("NAME"): one.get("VAL") for one in metric.iter("EXTRA_ELEMENT")}
    return {**{f"HOST.{name}": value for name, value in host.items()}, **extra, **dict(metric.items())}
