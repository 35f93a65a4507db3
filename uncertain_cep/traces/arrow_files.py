"""Files of Python's that threads of Arrow read."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import pyarrow as pa

__all__ = ["python_file"]

_latest: Final[deque[pa.PythonFile]] = deque(maxlen=8)


def python_file(stream: Any) -> pa.PythonFile:
    """Return a stream of Python's as a file of Arrow, of which the latest few stay.

    A reader of Arrow may be destroyed by a thread of its pool, after its result has been returned. If that
    let go of the last reference to the file, the thread would ask for the interpreter's lock, and if this is
    being taken down, end the whole process by ``terminate``. With a reference here it asks for nothing.
    """
    file = pa.PythonFile(stream, "r")
    _latest.append(file)
    return file
