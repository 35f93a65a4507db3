"""Checks that Spark can be reached, before it fails with a Java stack trace."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Final

from uncertain_cep.errors import OptionError, RuntimeEnvironmentError
from uncertain_cep.running.installation import needed

if sys.platform != "win32":
    import pwd

__all__ = ["check_home", "check_master", "check_server", "check_user"]

_NUMBER: Final = r"\s*[0-9]+\s*"
_MASTER: Final = re.compile(
    rf"local|local\[(?:\*|{_NUMBER})(?:,{_NUMBER})?\]|local-cluster\[{_NUMBER},{_NUMBER},{_NUMBER}\]"
    r"|yarn|(?:spark|k8s|sc)://.+"
)

CONNECT_SECONDS: Final = 15.0
"""Longest time that a Spark Connect server may take to answer."""


def check_master(master: str) -> None:
    """Raise OptionError for a text that is no master of Spark."""
    if _MASTER.fullmatch(master) is None:
        raise OptionError(
            f"master={master!r} is no master of Spark: write local[4], local[*], spark://HOST:PORT, yarn, "
            "k8s://HOST:PORT or, for Spark Connect, sc://HOST:PORT"
        )


def check_home() -> None:
    """Raise RuntimeEnvironmentError if SPARK_HOME holds no Spark; if it is unset, pyspark's own is used."""
    home = os.environ.get("SPARK_HOME")
    if home and not (Path(home) / "bin").is_dir():
        raise RuntimeEnvironmentError(
            f"SPARK_HOME={home} holds no Spark: name the folder of one, or unset it to use that of pyspark"
        )


def check_user() -> None:
    """Raise RuntimeEnvironmentError if the system has no name for the user, which Java asks for."""
    if sys.platform == "win32":
        return
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        raise RuntimeEnvironmentError(
            f"Spark needs a name of the user {os.getuid()}, and /etc/passwd has none: add a line there (a "
            "container is often started with the number of a user alone), or use the in-process engine"
        ) from None


def check_server(url: str) -> None:
    """Raise RuntimeEnvironmentError if no Spark Connect server answers at an address."""
    needed("connect")
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    builder = DefaultChannelBuilder(url)
    channel = builder.toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=CONNECT_SECONDS)
    except grpc.FutureTimeoutError:
        raise RuntimeEnvironmentError(
            f"no Spark Connect server answers at {builder.endpoint} within {CONNECT_SECONDS:g} s: check the "
            "address, and that the server runs"
        ) from None
    finally:
        channel.close()
