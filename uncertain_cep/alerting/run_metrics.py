"""Figures of a run of rules or of a stream of Spark, as text for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Final

from uncertain_cep.errors import OptionError, RuntimeEnvironmentError

__all__ = ["FIGURES", "RunMetrics", "served", "text_of_metrics"]

FIGURES: Final = {
    "events": ("counter", "Events taken, late ones included."),
    "late": ("counter", "Events that came too late."),
    "duplicates": ("counter", "Copies of events, and events whose ids were in use."),
    "batches": ("counter", "Batches done."),
    "batch_seconds": ("counter", "Seconds that the batches took."),
    "last_batch_seconds": ("gauge", "Seconds that the last batch took."),
    "lag_seconds": ("gauge", "Seconds from the bound on events to come to now."),
    "undelivered": ("gauge", "Alerts in the buffer of the sink."),
    "lost": ("counter", "Alerts that the sink did not take."),
    "matches": ("counter", "Matches that became final."),
    "suppressed": ("counter", "Alerts of a rule that were counted and not told."),
    "failed": ("gauge", "Whether an error has ended a rule."),
    "held": ("gauge", "Events, candidates, runs and alerts that are held."),
    "state_bytes": ("gauge", "Bytes of the state, when it was written last."),
}
"""Of each figure its kind and what it is."""

_SECONDS: Final = 10.0
"""After so long without a byte of a request its connection is closed."""


@dataclass
class RunMetrics:
    """The figures of a run: those of the whole, those of each rule, and those looked up when read."""

    whole: dict[str, float] = field(default_factory=dict)
    rules: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    live: dict[str, Callable[[], float]] = field(default_factory=dict)

    def add(self, **more: float) -> None:
        """Add to counters."""
        for name, value in more.items():
            self.whole[name] = self.whole.get(name, 0) + value

    def values_of(self, name: str) -> list[tuple[str | None, float]]:
        """Return the values of a figure, with their rules; None: of the whole."""
        values: list[tuple[str | None, float]] = []
        if name in self.whole:
            values.append((None, self.whole[name]))
        if name in self.live:
            values.append((None, self.live[name]()))
        return values + [(rule, of_rule[name]) for rule, of_rule in self.rules.items() if name in of_rule]


def text_of_metrics(metrics: RunMetrics) -> str:
    """Return figures in the text format of Prometheus, version 0.0.4."""
    lines = []
    for name, (kind, meaning) in FIGURES.items():
        if values := metrics.values_of(name):
            full = f"uncertain_cep_{name}{'_total' if kind == 'counter' else ''}"
            lines += [f"# HELP {full} {meaning}", f"# TYPE {full} {kind}"]
            for rule, value in values:
                label = "" if rule is None else f'{{rule="{_quoted(rule)}"}}'
                lines.append(f"{full}{label} {value:.15g}")
    return "".join(f"{line}\n" for line in lines)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@contextmanager
def served(metrics: RunMetrics, address: str | None) -> Iterator[int]:
    """Serve figures at ``/metrics`` of an address while the context lasts, and yield the port.

    ``address`` is a port of this machine alone (the loopback interface), or HOST:PORT; None: no server.

    Raises
    ------
    OptionError, RuntimeEnvironmentError
        If it is no address, or one that cannot be listened at.
    """
    if address is None:
        yield 0
        return
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise OptionError(f"--metrics {address}: write a port, or HOST:PORT")

    class Handler(BaseHTTPRequestHandler):
        timeout = _SECONDS

        def do_GET(self) -> None:
            is_there = self.path.partition("?")[0] in ("/metrics", "/")
            body = text_of_metrics(metrics).encode() if is_there else b""
            self.send_response(200 if is_there else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):
                # The reader may be gone.
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing of each request."""

    try:
        server = ThreadingHTTPServer((host.strip("[]") or "127.0.0.1", int(port)), Handler)
    except OSError as error:
        raise RuntimeEnvironmentError(f"--metrics {address}: {error.strerror or error}") from None
    with server:
        thread = Thread(target=server.serve_forever, name="uncertain-cep metrics", daemon=True)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()
