"""The environment of a figure: the machine and the versions."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

__all__ = ["facts"]

_PACKAGES: Final = (
    "uncertain-cep", "numba", "numpy", "pyarrow", "pandas", "pyspark", "duckdb", "polars",
)  # fmt: skip


def facts() -> dict[str, Any]:
    """Return when, where and with what the figures are measured."""
    return {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_gibibytes": _memory(),
            "system": platform.platform(),
            "load_at_start": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        },
        "versions": {"python": platform.python_version(), **_versions()},
        "commit": _commit(),
        "command": sys.argv,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _versions() -> dict[str, str | None]:
    versions: dict[str, str | None] = {}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return versions


def _commit() -> str | None:
    here = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40"],
            cwd=here, capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
