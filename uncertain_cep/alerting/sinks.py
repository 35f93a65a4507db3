"""Sinks: the places that alerts go to, by name; others come by entry points."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from uncertain_cep.alerting.alert_lines import alert_lines
from uncertain_cep.alerting.buffered_delivery import BufferedDelivery, Deliver
from uncertain_cep.alerting.kafka_topic import KafkaTopic
from uncertain_cep.alerting.webhooks import Webhook
from uncertain_cep.errors import OptionError
from uncertain_cep.files.atomic_output import written_aside

__all__ = ["GROUP", "Folder", "Lines", "Sink", "sink_of"]

GROUP: Final = "uncertain_cep.sinks"
"""The entry points of sinks: functions of the place, ``scheme:...``, that return a :data:`Deliver`."""

_SCHEME: Final = re.compile(r"([a-z][a-z0-9+._-]+):(.*)", re.DOTALL)


class Sink(Protocol):
    """A place that alerts go to."""

    @property
    def pending(self) -> list[tuple[int, pa.Table]]:
        """The alerts that may not be there yet, with the numbers of their batches."""

    def write(self, number: int, alerts: pa.Table) -> None:
        """Take the alerts of a batch; the same batch may come again after a kill."""

    def close(self) -> None:
        """Wait for the last alerts."""


class _AtOnce:
    """The common part of sinks whose alerts are there when they are written."""

    pending: list[tuple[int, pa.Table]] = []  # noqa: RUF012

    def close(self) -> None:
        """Do nothing: all is there."""


class Lines(_AtOnce):
    """Writes a line of JSON an alert to stdout, and flushes it; at least once."""

    def write(self, number: int, alerts: pa.Table) -> None:  # noqa: ARG002
        """Write alerts."""
        if alerts.num_rows:
            sys.stdout.writelines(f"{line}\n" for line in alert_lines(alerts))
            sys.stdout.flush()


class Folder(_AtOnce):
    """Writes the alerts of a batch as a folder ``batch=N`` of Parquet, by one rename; each exactly once."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def write(self, number: int, alerts: pa.Table) -> None:
        """Write alerts, unless the batch is there."""
        out = self._place / f"batch={number}"
        if alerts.num_rows and not out.exists():
            with written_aside(out, lambda _: True) as made:
                made.mkdir()
                pq.write_table(alerts, made / "alerts.parquet")


def sink_of(place: str, checkpoint: Path) -> Sink:
    """Return the sink that a name stands for.

    ``-`` is stdout, ``http://`` and ``https://`` are webhooks, ``kafka://`` is a topic,
    ``python:module:function`` is a function of the alerts and the number of their batch, another scheme is an
    entry point of :data:`GROUP`, and anything else a folder. What a buffered sink could not deliver goes to a
    file in the checkpoint.

    Raises
    ------
    OptionError
        If there is no such sink.
    """
    if place == "-":
        return Lines()
    scheme = _SCHEME.fullmatch(place)
    if scheme is None or os.path.exists(place):
        return Folder(Path(place).absolute())
    return BufferedDelivery(_deliver_of(scheme[1], scheme[2], place), checkpoint / "undelivered.jsonl")


def _deliver_of(scheme: str, name: str, place: str) -> Deliver:
    if scheme in ("http", "https"):
        return Webhook(place)
    if scheme == "kafka":
        return KafkaTopic(place)
    if scheme == "python":
        return _function(name)
    for point in entry_points(group=GROUP, name=scheme):
        make: Callable[[str], Any] = point.load()
        deliver: Deliver = make(place)
        return deliver
    known_schemes = sorted(
        {"http", "https", "kafka", "python", *(point.name for point in entry_points(group=GROUP))}
    )
    raise OptionError(f"{place}: no sink is called {scheme}: use a folder, -, or {', '.join(known_schemes)}")


def _function(name: str) -> Deliver:
    module, _, function = name.partition(":")
    try:
        deliver: Any = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise OptionError(f"python:{name}: {error}: write python:module:function") from None
    if not callable(deliver):
        raise OptionError(f"python:{name}: it is no function")
    made: Deliver = deliver
    return made
