"""Delivery beside the stream: a bounded buffer, a bounded number of tries, and a file of what was lost."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Condition, Thread
from time import sleep
from typing import Final

import pyarrow as pa

from uncertain_cep.alerting.alert_lines import alert_lines
from uncertain_cep.errors import UncertainCepError

__all__ = ["BUFFERED_ALERTS", "BufferedDelivery", "Deliver", "UndeliverableError"]

Deliver = Callable[[pa.Table, int], None]
"""Delivers the alerts of a batch, given its number; it returns when they are there, or raises an error."""

BUFFERED_ALERTS: Final = 10_000
"""Alerts that wait for delivery before the stream waits for it."""

_TRIES: Final = 5
_FIRST_PAUSE: Final = 0.1
"""Seconds between two tries; twice as long after each."""

_log: Final = logging.getLogger("uncertain_cep.alerts")


class UndeliverableError(UncertainCepError):
    """Alerts that no further try will deliver, as they were refused."""


class BufferedDelivery:
    """Delivers alerts in a thread of its own, in order, each at least once or not at all.

    The stream waits only while ``limit`` alerts are in the buffer. Delivery is tried five times, 0.1, 0.2,
    0.4 and 0.8 seconds apart. What is not delivered then is written to the file ``lost``, a line of JSON an
    alert, and logged as an error.

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
        self._closing = False
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
            self._changed.wait_for(lambda: not self._queue or self.waiting + alerts.num_rows <= self._limit)
            self._queue.append((number, alerts))
            self._changed.notify_all()

    def close(self) -> None:
        """Wait until all alerts are delivered or lost."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        at_once = getattr(self._deliver, "rows_at_once", None)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closing)
                if not self._queue:
                    return
                number, alerts = self._queue[0]
            part = alerts if at_once is None else alerts.slice(0, at_once)
            is_there = self._delivered(part, number)
            with self._changed:
                # It leaves the buffer when it is there, or in the file of what is lost.
                self._queue.popleft()
                if part.num_rows < alerts.num_rows:
                    self._queue.appendleft((number, alerts.slice(part.num_rows)))
                self.delivered += part.num_rows if is_there else 0
                self.lost_count += 0 if is_there else part.num_rows
                self._changed.notify_all()

    def _delivered(self, alerts: pa.Table, number: int) -> bool:
        """Try to deliver alerts; write them down as lost if it does not succeed."""
        pause = _FIRST_PAUSE
        for attempt in range(1, _TRIES + 1):
            try:
                self._deliver(alerts, number)
            except UndeliverableError as error:
                _log.error("%s", error)
                break
            except Exception as error:
                # Whatever a function of a user raises must not end the thread.
                _log.warning("alerts of batch %d, try %d of %d: %s", number, attempt, _TRIES, error)
                if attempt < _TRIES:
                    sleep(pause)
                    pause *= 2
            else:
                return True
        _log.error(
            "%d alerts of batch %d were not delivered; they are in %s", alerts.num_rows, number, self._lost
        )
        with self._lost.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in alert_lines(alerts))
        return False
