"""Places that hold no file: URLs, and pipes, devices and the like, which may keep a reader waiting."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from uncertain_cep.errors import OptionError

__all__ = [
    "DOWNLOAD",
    "check_written_here",
    "is_of_web",
    "is_url",
    "special_kind",
]

DOWNLOAD: Final = "it is a URL, and files of this machine are read: download it first"
"""What to say of a URL that names an input."""

_WEB: Final = re.compile(r"(?i)(?:https?|ftp):/")

# As a path two slashes are one.
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")

_KINDS: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def is_url(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is a URL, such as ``s3://bucket/x``."""
    return _URL.match(os.fspath(path)) is not None


def is_of_web(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is a URL of the web, which Spark does not read, either."""
    return _WEB.match(os.fspath(path)) is not None


def check_written_here(place: str | os.PathLike[str], *, by_spark: bool = False) -> None:
    """Refuse, by an OptionError, to write to a URL; Spark itself writes to those that are not of the web."""
    if is_of_web(place) if by_spark else is_url(place):
        raise OptionError(
            f"{place} is a URL, and results are written to files of this machine: name one, and upload it"
        )


_KERNEL: Final = frozenset(
    (
        "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "efivarfs", "proc", "pstore", "securityfs",
        "selinuxfs", "sysfs", "tracefs",
    )
)  # fmt: skip
"""File systems of Linux whose files are made as they are read, and may not end, or wait for something."""


def special_kind(path: str | Path) -> str | None:
    """Return the kind of special file or URL at a path, links followed; None if it is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return "a URL" if is_url(path) else None
    kind = next((kind for is_kind, kind in _KINDS if is_kind(status.st_mode)), None)
    if kind is None and status.st_dev in _devices_of_the_kernel():
        return "a folder of the kernel" if stat.S_ISDIR(status.st_mode) else "a file of the kernel"
    return kind


@cache
def _devices_of_the_kernel() -> frozenset[int]:
    """Return the device numbers of the kernel's mounted file systems."""
    devices = set()
    with suppress(OSError):
        for line in Path("/proc/self/mounts").read_bytes().splitlines():
            _, place, kind, *_ = line.split(b" ")
            if kind.decode() in _KERNEL:
                # Spaces and the like are octal there.
                path = re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), place)
                with suppress(OSError):
                    devices.add(os.stat(path).st_dev)
    return frozenset(devices)
