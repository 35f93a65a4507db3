"""A topic of Kafka that alerts go to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from uncertain_cep.alerting.alert_lines import alert_keys, alert_lines
from uncertain_cep.alerting.buffered_delivery import UndeliverableError
from uncertain_cep.errors import OptionError, UncertainCepError
from uncertain_cep.plurals import counted
from uncertain_cep.running.installation import needed

__all__ = ["KafkaTopic"]

_SECONDS: Final = 10.0
"""After so long without an acknowledgement a delivery has failed."""


class KafkaError(UncertainCepError):
    """Messages that were not acknowledged, and may be if they are sent again."""


class KafkaTopic:
    """Sends each alert as a message of JSON, with the key of the alert, and waits for all acknowledgements.

    At least once, with the same key: a consumer that has seen a key has seen the alert. An alert that is sent
    again by one process within a delivery is written once, as the producer is idempotent.

    Parameters
    ----------
    place : str
        ``kafka://HOST:PORT/TOPIC``; several servers are separated by commas.
    settings : dict, optional
        Of the producer, beside the servers.
    """

    def __init__(self, place: str, settings: dict[str, Any] | None = None) -> None:
        servers, _, topic = place.removeprefix("kafka://").partition("/")
        if not servers or not topic or "/" in topic:
            raise OptionError(f"-o {place}: write kafka://HOST:PORT/TOPIC")
        needed("kafka")
        from confluent_kafka import Producer

        self._topic = topic
        usual = {
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            "message.timeout.ms": int(_SECONDS * 1000),
            "log_level": 0,
        }
        self._trouble = ""
        usual["error_cb"] = self._note_trouble
        self._producer = Producer(usual | (settings or {}))

    def _note_trouble(self, error: Any) -> None:
        self._trouble = f": {error.str()}"

    def __call__(self, alerts: pa.Table, number: int) -> None:  # noqa: ARG002
        """Send alerts.

        Raises
        ------
        UndeliverableError
            If some are too large, and the others are there.
        KafkaError
            If another one is not acknowledged.
        """
        from confluent_kafka import KafkaError as Code
        from confluent_kafka import KafkaException

        failed: dict[int, Any] = {}

        def reported(row: int) -> Callable[[Any, Any], None]:
            return lambda error, _: failed.update({row: error} if error is not None else {})

        for row, (line, key) in enumerate(zip(alert_lines(alerts), alert_keys(alerts), strict=True)):
            try:
                self._produce(line, key, reported(row))
            except KafkaException as error:
                failed[row] = error.args[0]
        if left := self._producer.flush(_SECONDS + 1):
            self._producer.purge()
            self._producer.flush(1)
            raise KafkaError(f"{self._topic}: {left} messages were not acknowledged{self._trouble}")
        too_large = [row for row, error in failed.items() if error.code() == Code.MSG_SIZE_TOO_LARGE]
        if len(too_large) < len(failed):
            first = next(error for row, error in failed.items() if row not in too_large)
            count = counted(len(failed), "message")
            raise KafkaError(f"{self._topic}: {count} failed: {first.str()}{self._trouble}")
        if too_large:
            raise UndeliverableError(f"{self._topic}: {failed[too_large[0]].str()}", sorted(too_large))

    def _produce(self, line: str, key: str, reported: Callable[[Any, Any], None]) -> None:
        """Send a message; while the queue of the producer is full, wait for acknowledgements."""
        while True:
            try:
                self._producer.produce(self._topic, line.encode(), key=key, on_delivery=reported)
                return
            except BufferError:
                self._producer.poll(0.1)
