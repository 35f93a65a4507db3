"""Figures of a run for OpenTelemetry: instruments of the meter provider that the process has.

The API alone does nothing; a program that sets up an SDK, such as ``opentelemetry-instrument``, reads them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib import import_module
from typing import Any

from uncertain_cep.alerting.run_metrics import FIGURES, RunMetrics
from uncertain_cep.running.installation import VERSION

__all__ = ["observe_run"]


def observe_run(metrics: RunMetrics) -> bool:
    """Let OpenTelemetry read the figures of a run; return whether its API is installed.

    They have the names, kinds and meanings of ``--metrics``: ``uncertain_cep.events``, and so on. Those of a
    rule have the attribute ``rule``.
    """
    try:
        api: Any = import_module("opentelemetry.metrics")
    except ImportError:
        return False
    meter = api.get_meter("uncertain_cep", VERSION)

    def observations(name: str, _options: Any) -> Iterable[Any]:
        for rule, value in metrics.values_of(name):
            yield api.Observation(value, None if rule is None else {"rule": rule})

    for name, (kind, meaning) in FIGURES.items():
        is_counter = kind == "counter"
        create = meter.create_observable_counter if is_counter else meter.create_observable_gauge
        unit = "s" if name.endswith("_seconds") else "1"
        create(f"uncertain_cep.{name}", [partial(observations, name)], unit=unit, description=meaning)
    return True
