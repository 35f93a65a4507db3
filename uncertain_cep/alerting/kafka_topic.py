"""A topic of Kafka that alerts go to."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from uncertain_cep.alerting.alert_lines import alert_keys, alert_lines
from uncertain_cep.errors import OptionError, UncertainCepError
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
        self._producer = Producer(usual | (settings or {}))

    def __call__(self, alerts: pa.Table, number: int) -> None:  # noqa: ARG002
        """Send alerts.

        Raises
        ------
        KafkaError
            If one is not acknowledged.
        """
        errors: list[str] = []

        def reported(error: Any, _message: Any) -> None:
            if error is not None:
                errors.append(str(error))

        for line, key in zip(alert_lines(alerts), alert_keys(alerts), strict=True):
            while True:
                try:
                    self._producer.produce(self._topic, line.encode(), key=key, on_delivery=reported)
                    break
                except BufferError:
                    # The queue of the producer is full until some messages are acknowledged.
                    self._producer.poll(0.1)
        if left := self._producer.flush(_SECONDS + 1):
            self._producer.purge()
            self._producer.flush(1)
            raise KafkaError(f"{self._topic}: {left} messages were not acknowledged")
        if errors:
            raise KafkaError(f"{self._topic}: {len(errors)} messages failed: {errors[0]}")
