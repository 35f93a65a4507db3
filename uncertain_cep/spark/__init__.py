"""The same queries on Spark: DataFrame in, DataFrame out.

Everything here also works through Spark Connect. pyspark is imported when the first name is taken from this
package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from uncertain_cep.errors import RuntimeEnvironmentError
from uncertain_cep.spark.session import get_session

if TYPE_CHECKING:
    from uncertain_cep.spark.dataframes import arrow_schema, noted_schema
    from uncertain_cep.spark.file_streams import read_stream
    from uncertain_cep.spark.frame_intervals import to_intervals
    from uncertain_cep.spark.matching import match
    from uncertain_cep.spark.reading import read_traces
    from uncertain_cep.spark.undecided_counts import worker_errors
    from uncertain_cep.spark.writing import match_to_parquet, write_matches

__all__ = [
    "arrow_schema",
    "get_session",
    "match",
    "match_to_parquet",
    "noted_schema",
    "read_stream",
    "read_traces",
    "to_intervals",
    "worker_errors",
    "write_matches",
]

_HOMES: Final = {
    "arrow_schema": "dataframes",
    "match": "matching",
    "match_to_parquet": "writing",
    "noted_schema": "dataframes",
    "read_stream": "file_streams",
    "read_traces": "reading",
    "to_intervals": "frame_intervals",
    "worker_errors": "undecided_counts",
    "write_matches": "writing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        importlib.import_module("pyspark")
    except ImportError as error:
        raise RuntimeEnvironmentError(
            f"Spark is not installed ({error}): pip install 'pyspark>=4.1'"
        ) from error
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
