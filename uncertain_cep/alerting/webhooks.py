"""A webhook: alerts posted to a server, one request an alert."""

from __future__ import annotations

import re
from base64 import b64encode
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import unquote, urlsplit

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

_FORM: Final = (
    "a webhook is http://HOST:PORT/PATH, or https://HOST/PATH, in ASCII: write %20 for a space, and so on"
)

_PATH: Final = re.compile(r"[!-~]+")


class WebhookError(UncertainCepError):
    """A request that failed, and may succeed if it is sent again, ``retry_after`` seconds later."""

    retry_after = 0.0


class Webhook:
    """Posts each alert as JSON, with the key of the alert as ``Idempotency-Key``.

    A status of 2xx means that the alert is there. Any other one below 500, redirections included, but for
    408, 425 and 429 means that it never will be. At least once: a server that answers too late, or a run that
    was killed, gets an alert again with the same key. A server that answers with ``Retry-After`` is left
    alone for so long, up to a minute.

    Parameters
    ----------
    url : str
        It begins with http:// or https://. A ``USER:PASSWORD@`` before the host is sent as Basic.
    seconds : float
        After so long without a byte of an answer a request has failed.
    """

    rows_at_once = 1

    def __init__(self, url: str, seconds: float = _SECONDS) -> None:
        try:
            parts = urlsplit(url)
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError:
            raise OptionError(f"{url}: {_FORM}") from None
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if parts.scheme not in ("http", "https") or not self._host or not _PATH.fullmatch(self._path):
            raise OptionError(f"{url}: {_FORM}")
        self._kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._seconds = seconds
        self._headers = {"Content-Type": "application/json", "User-Agent": f"uncertain-cep/{VERSION}"}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"

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
        headers = {**self._headers, "Idempotency-Key": key}
        try:
            with closing(self._kind(self._host, self._port, timeout=self._seconds)) as connection:
                connection.request("POST", self._path, line.encode(), headers)
                with connection.getresponse() as answer:
                    status, after = answer.status, answer.getheader("Retry-After", "")
        except (OSError, HTTPException) as error:
            raise WebhookError(f"{self._host}: {str(error) or type(error).__name__}") from None
        if status >= 500 or status in _AGAIN:
            failure = WebhookError(f"{self._host}: status {status}")
            failure.retry_after = float(after) if after.isdecimal() else 0.0
            raise failure
        if not 200 <= status < 300:
            raise UndeliverableError(f"{self._host}: status {status}: the server refuses the alert")
