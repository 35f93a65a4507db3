"""The log of a command that runs all day, and who else reads its figures."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uncertain_cep.alerting.run_metrics import RunMetrics

__all__ = ["begin_log", "read_by_others"]


@contextmanager
def read_by_others(metrics: RunMetrics, address: str | None) -> Iterator[None]:
    """Let OpenTelemetry read figures, and Prometheus at an address, if there is one."""
    from uncertain_cep.alerting.run_metrics import served
    from uncertain_cep.alerting.telemetry import observe_run

    observe_run(metrics)
    with served(metrics, address) as port:
        if port:
            logging.getLogger("uncertain_cep").info("figures at port %d, /metrics", port)
        yield


def begin_log(*, verbose: bool, quiet: bool) -> None:
    """Have the logger of the package write to stderr."""
    log = logging.getLogger("uncertain_cep")
    log.setLevel(logging.WARNING if quiet else logging.DEBUG if verbose else logging.INFO)
    for handler in list(log.handlers):
        log.removeHandler(handler)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        logging.Formatter("%(message)s" if not verbose else "%(asctime)s %(levelname)s %(message)s")
    )
    log.addHandler(handler)
    log.propagate = False
