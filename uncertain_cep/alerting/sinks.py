"""Sinks: the places that alerts go to, by name; others come by entry points."""

from __future__ import annotations

import os
import re
import sys
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
from uncertain_cep.errors import OptionError, UncertainCepError
from uncertain_cep.files.atomic_output import written_aside

__all__ = ["GROUP", "Folder", "Lines", "Sink", "sink_of"]

GROUP: Final = "uncertain_cep.sinks"
"""The entry points of sinks: functions of the place, ``scheme:...``, that return a :data:`Deliver`."""

_SCHEME: Final = re.compile(r"([a-z][a-z0-9+._-]+):(.*)", re.DOTALL | re.IGNORECASE)


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
            try:
                sys.stdout.writelines(f"{line}\n" for line in alert_lines(alerts))
                sys.stdout.flush()
            except OSError as error:
                error.filename = "stdout"
                raise


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
        folder = Path(place).absolute()
        _check_folder(folder, is_new=not (checkpoint / "state.pickle").exists())
        return Folder(folder)
    deliver = _deliver_of(scheme[1].lower(), scheme[2], place)
    return BufferedDelivery(deliver, checkpoint / "undelivered.jsonl")


def _check_folder(place: Path, *, is_new: bool) -> None:
    """Refuse what is no folder, and the folder of another stream: its batches would be taken for done."""
    if place.exists() and not place.is_dir():
        raise OptionError(f"{place} is no folder: alerts go to a folder")
    if is_new and any(place.glob("batch=*")):
        raise OptionError(f"{place} has alerts of another stream: name another folder")


def _deliver_of(scheme: str, name: str, place: str) -> Deliver:
    if scheme in ("http", "https"):
        return Webhook(place)
    if scheme == "kafka":
        return KafkaTopic(place)
    if scheme == "python":
        return _function(name)
    for point in entry_points(group=GROUP, name=scheme):
        try:
            deliver = point.load()(place)
        except UncertainCepError:
            raise
        except Exception as error:
            raise OptionError(f"{place}: the plug-in {point.value} fails: {_reason(error)}") from error
        return _callable(deliver, place)
    known_schemes = sorted(
        {"http", "https", "kafka", "python", *(point.name for point in entry_points(group=GROUP))}
    )
    raise OptionError(f"{place}: no sink is called {scheme}: use a folder, -, or {', '.join(known_schemes)}")


def _function(name: str) -> Deliver:
    """Return a function of a module, which may be in the folder that the command runs in."""
    module, _, function = name.partition(":")
    if (here := os.getcwd()) not in sys.path:
        sys.path.append(here)
    try:
        deliver = getattr(import_module(module), function)
    except Exception as error:
        reason = _reason(error)
        raise OptionError(f"python:{name}: {reason}: write python:module:function") from error
    return _callable(deliver, f"python:{name}")


def _callable(deliver: Any, place: str) -> Deliver:
    if not callable(deliver):
        raise OptionError(f"{place}: {deliver!r} is no function of alerts and the number of their batch")
    made: Deliver = deliver
    return made


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
