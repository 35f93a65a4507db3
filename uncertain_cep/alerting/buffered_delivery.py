"""Delivery beside the stream: a bounded buffer, a bounded number of tries, and a file of what was lost."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Condition, Thread
from time import sleep
from typing import Final

import pyarrow as pa

from uncertain_cep.alerting.alert_lines import alert_lines
from uncertain_cep.errors import RuntimeEnvironmentError, UncertainCepError
from uncertain_cep.plurals import counted

__all__ = ["BUFFERED_ALERTS", "BufferedDelivery", "Deliver", "UndeliverableError"]

Deliver = Callable[[pa.Table, int], None]
"""Delivers the alerts of a batch, given its number; it returns when they are there, or raises an error."""

BUFFERED_ALERTS: Final = 10_000
"""Alerts that wait for delivery before the stream waits for it."""

_TRIES: Final = 10
_FIRST_PAUSE: Final = 0.1
"""Seconds between two tries; twice as long after each, so that ten tries take a minute."""

_LONGEST_PAUSE: Final = 60.0
"""Most seconds that a server may ask for before the next try."""

_log: Final = logging.getLogger("uncertain_cep.alerts")


class UndeliverableError(UncertainCepError):
    """Alerts that no further try will deliver, as they were refused.

    Parameters
    ----------
    message : str
    rows : sequence of int, optional
        Those that were refused; the others are there. Default: all.
    """

    def __init__(self, message: str, rows: Sequence[int] | None = None) -> None:
        super().__init__(message)
        self.rows = rows


class BufferedDelivery:
    """Delivers alerts in a thread of its own, in order, each at least once or not at all.

    The stream waits only while ``limit`` alerts are in the buffer. Delivery is tried ten times within a
    minute, 0.1, 0.2, 0.4 ... seconds apart, or as an error with ``retry_after`` asks. What is not delivered
    then is written to the file ``lost``, a line of JSON an alert, and logged as an error. From then on alerts
    are tried once each, until one is delivered, so that they wait a minute only once.

    If that file cannot be written, the error is raised in the stream, and the alerts stay in the buffer.

    Parameters
    ----------
    deliver : callable
        See :data:`Deliver`. If it has an attribute ``rows_at_once``, it gets at most so many alerts.
    lost : pathlib.Path
    limit : int

    Attributes
    ----------
    delivered, lost_count : int
        Alerts.
    """

    def __init__(self, deliver: Deliver, lost: Path, limit: int = BUFFERED_ALERTS) -> None:
        self._deliver, self._lost, self._limit = deliver, lost, limit
        self._queue: deque[tuple[int, pa.Table]] = deque()
        self._changed = Condition()
        self._closing = self._is_down = False
        self._failure: OSError | None = None
        self.delivered = self.lost_count = 0
        self._thread = Thread(target=self._run, name="uncertain-cep alerts", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many alerts are in the buffer."""
        with self._changed:
            return sum(alerts.num_rows for _, alerts in self._queue)

    @property
    def pending(self) -> list[tuple[int, pa.Table]]:
        """The alerts that may not have been delivered yet, with the numbers of their batches."""
        with self._changed:
            return list(self._queue)

    def write(self, number: int, alerts: pa.Table) -> None:
        """Take the alerts of a batch; wait while the buffer is full."""
        if not alerts.num_rows:
            return
        with self._changed:
            self._changed.wait_for(
                lambda: self._failure or not self._queue or self.waiting + alerts.num_rows <= self._limit
            )
            self._check()
            self._queue.append((number, alerts))
            self._changed.notify_all()

    def close(self) -> None:
        """Wait until all alerts are delivered or lost."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        self._check()

    def _check(self) -> None:
        if self._failure is not None:
            reason = self._failure.strerror or str(self._failure)
            raise RuntimeEnvironmentError(f"{self._lost}, for alerts that were not delivered: {reason}")

    def _run(self) -> None:
        at_once = getattr(self._deliver, "rows_at_once", None)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closing)
                if not self._queue:
                    return
                number, alerts = self._queue[0]
            part = alerts if at_once is None else alerts.slice(0, at_once)
            lost = self._lost_of(part, number)
            try:
                self._keep(lost)
            except OSError as error:
                with self._changed:
                    self._failure = error
                    self._changed.notify_all()
                return
            with self._changed:
                # It leaves the buffer when it is there, or in the file of what is lost.
                self._queue.popleft()
                if part.num_rows < alerts.num_rows:
                    self._queue.appendleft((number, alerts.slice(part.num_rows)))
                self.delivered += part.num_rows - lost.num_rows
                self.lost_count += lost.num_rows
                self._changed.notify_all()

    def _lost_of(self, alerts: pa.Table, number: int) -> pa.Table:
        """Try to deliver alerts; return those that are not delivered."""
        pause, tries = _FIRST_PAUSE, 1 if self._is_down else _TRIES
        for attempt in range(1, tries + 1):
            try:
                self._deliver(alerts, number)
            except UndeliverableError as error:
                lost = alerts if error.rows is None else alerts.take(error.rows)
                self._say(lost, number, error)
                return lost
            except BaseException as error:
                # Whatever a function of a user raises, sys.exit() included, must not end the thread.
                if attempt == tries:
                    self._is_down = True
                    self._say(alerts, number, error)
                    return alerts
                level = logging.WARNING if attempt == 1 else logging.DEBUG
                reason = _reason(error)
                _log.log(level, "alerts of batch %d, try %d of %d: %s", number, attempt, tries, reason)
                sleep(max(pause, min(getattr(error, "retry_after", 0.0), _LONGEST_PAUSE)))
                pause *= 2
            else:
                break
        self._is_down = False
        return alerts.slice(0, 0)

    def _say(self, lost: pa.Table, number: int, error: BaseException) -> None:
        were = counted(lost.num_rows, "alert of batch %d was", "alerts of batch %d were")
        _log.error(f"{were} not delivered, see %s: %s", number, self._lost, _reason(error))

    def _keep(self, lost: pa.Table) -> None:
        """Write down alerts that were not delivered."""
        if lost.num_rows:
            with self._lost.open("a", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in alert_lines(lost))


def _reason(error: BaseException) -> str:
    """Return the message of an error, on one line."""
    return " ".join(str(error).split()) or type(error).__name__
