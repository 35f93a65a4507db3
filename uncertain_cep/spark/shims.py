"""Small scripts in place of a program, which start it in another way than Spark would."""

from __future__ import annotations

import atexit
import hashlib
import os
import shlex
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from uncertain_cep.files.cache_folder import cache_folder

__all__ = ["HAS_SHELL", "python_of_workers", "shim"]

HAS_SHELL: Final = os.name == "posix"

_PYTHON: Final = """\
#!/bin/sh
# Spark puts its own pyspark first, a zip without compiled code, which each process would compile for seconds.
kept=
set -f
IFS=:
for place in $PYTHONPATH; do
  case $place in
    */pyspark.zip | */py4j-*-src.zip) ;;
    *) kept=${{kept:+$kept:}}$place ;;
  esac
done
PYTHONPATH=$kept
export PYTHONPATH
# The worker that begins a query with state prints its steps; it talks to Spark by a socket.
case $2 in
  pyspark.sql.streaming.transform_with_state_driver_worker) exec {python} "$@" >/dev/null ;;
esac
exec {python} "$@"
"""


def python_of_workers() -> str:
    """Return the command of this Python for Spark's workers, with pyspark as it is installed here."""
    spec = find_spec("pyspark")
    installed = spec is not None and spec.origin is not None and Path(spec.origin).is_file()
    # Another Spark has its own pyspark.
    if not HAS_SHELL or not installed or os.environ.get("SPARK_HOME"):
        return sys.executable
    script = _PYTHON.format(python=shlex.quote(sys.executable))
    return str(shim("python", "python3", script) / "python3")


def shim(folder: str, place: str, script: str) -> Path:
    """Return a folder of the user's own, in one of this name, with a script at a place in it."""
    name = hashlib.sha256(script.encode()).hexdigest()[:16]
    try:
        return _written(cache_folder() / folder / name, place, script)
    except OSError:
        # A read-only home, as in many containers.
        made = Path(tempfile.mkdtemp(prefix=f"uncertain-cep-{folder}-"))
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        return _written(made, place, script)


def _written(folder: Path, place: str, script: str) -> Path:
    program = folder / place
    if (
        not program.is_file()
        or program.read_text(encoding="utf-8") != script
        or not os.access(program, os.X_OK)
    ):
        program.parent.mkdir(parents=True, exist_ok=True)
        # Written aside, then moved: another process may start the program at the same time.
        with tempfile.NamedTemporaryFile("w", dir=program.parent, delete=False, encoding="utf-8") as stream:
            stream.write(script)
        Path(stream.name).chmod(0o755)
        Path(stream.name).replace(program)
    return folder
