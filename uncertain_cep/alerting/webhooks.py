"""A webhook: alerts posted to a server, one request an alert."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

import pyarrow as pa

from uncertain_cep.alerting.alert_lines import alert_keys, alert_lines
from uncertain_cep.alerting.buffered_delivery import UndeliverableError
from uncertain_cep.errors import OptionError, UncertainCepError
from uncertain_cep.running.installation import VERSION

__all__ = ["Webhook"]

_SECONDS: Final = 10.0
"""After so long without a byte of an answer a request has failed."""

_AGAIN: Final = (408, 425, 429)
"""Statuses below 500 after which the same request may succeed."""


class WebhookError(UncertainCepError):
    """A request that failed, and may succeed if it is sent again."""


class Webhook:
    """Posts each alert as JSON, with the key of the alert as ``Idempotency-Key``.

    A status of 2xx means that the alert is there. Any other one below 500, redirections included, but for
    408, 425 and 429 means that it never will be. At least once: a server that answers too late, or a run that
    was killed, gets an alert again with the same key.

    Parameters
    ----------
    url : str
        It begins with http:// or https://.
    seconds : float
        After so long without a byte of an answer a request has failed.
    """

    rows_at_once = 1

    def __init__(self, url: str, seconds: float = _SECONDS) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OptionError(f"{url}: a webhook is http://HOST:PORT/PATH, or https://HOST/PATH")
        self._parts, self._seconds = parts, seconds
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def __call__(self, alerts: pa.Table, number: int) -> None:  # noqa: ARG002
        """Post alerts.

        Raises
        ------
        UndeliverableError
            If the server refuses one.
        WebhookError
            If another try may succeed.
        """
        for line, key in zip(alert_lines(alerts), alert_keys(alerts), strict=True):
            self._post(line, key)

    def _post(self, line: str, key: str) -> None:
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": key,
            "User-Agent": f"uncertain-cep/{VERSION}",
        }
        kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        host = self._parts.hostname or ""
        try:
            with closing(kind(host, self._parts.port, timeout=self._seconds)) as connection:
                connection.request("POST", self._path, line.encode(), headers)
                status = connection.getresponse().status
        except (OSError, HTTPException) as error:
            raise WebhookError(f"{host}: {str(error) or type(error).__name__}") from None
        if status >= 500 or status in _AGAIN:
            raise WebhookError(f"{host}: status {status}")
        if not 200 <= status < 300:
            raise UndeliverableError(f"{host}: status {status}: the server refuses the alert")
