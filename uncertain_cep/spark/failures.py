"""Errors of the library that were raised in a Spark worker, as the errors they were."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.errors import PySparkException

from uncertain_cep.errors import OptionError, RuntimeEnvironmentError, TraceError, UncertainCepError

__all__ = ["worker_errors"]

_RAISED: Final = re.compile(
    r"^uncertain_cep\.errors\.(\w+): (.*?)(?=\n\s*\n|\n\s+at |\s+SQLSTATE: |\n?\Z)", re.MULTILINE | re.DOTALL
)

_KINDS: Final[dict[str, type[UncertainCepError]]] = {
    kind.__name__: kind for kind in (OptionError, RuntimeEnvironmentError, TraceError)
}


@contextmanager
def worker_errors() -> Iterator[None]:
    """Raise what a worker raised, such as `TraceError`, in place of Spark's account of it.

    Spark computes matches when they are used, in other processes, and reports an error there as one of its
    own, with the text of the traceback.

    Examples
    --------
    >>> with worker_errors():  # doctest: +SKIP
    ...     matches.toPandas()
    """
    try:
        yield
    except PySparkException as error:
        raised = _RAISED.search(str(error))
        if raised is None:
            raise
        kind = _KINDS.get(raised[1], UncertainCepError)
        raise kind(raised[2].strip()) from error
