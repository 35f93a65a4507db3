"""What files a frame is made of, so that no result replaces them while it is computed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame

from uncertain_cep.spark.schemas import column

__all__ = ["files_read", "noted_files", "noting_files"]

_FILES: Final = "uncertain_cep.files"
"""Key in the metadata of a column that holds the files and folders a frame was read from."""


def noting_files(frame: DataFrame, paths: Sequence[str]) -> DataFrame:
    """Return a frame that notes with its first column what Python workers read, which Spark cannot know."""
    if not paths:
        return frame
    first = frame.schema.fields[0]
    noted = {**(first.metadata or {}), _FILES: json.dumps(list(paths))}
    # Not withMetadata: it takes dots in a name for fields.
    renewed = column(first.name).alias(first.name, metadata=noted)
    return frame.select(renewed, *(column(field.name) for field in frame.schema.fields[1:]))


def noted_files(frame: DataFrame) -> list[str]:
    """Return what `noting_files` noted with a frame, or with one that this is made of."""
    texts = [field.metadata[_FILES] for field in frame.schema.fields if _FILES in (field.metadata or {})]
    return list(dict.fromkeys(path for text in texts for path in json.loads(text)))


def files_read(frame: DataFrame) -> list[tuple[str, str | Path]]:
    """Return the files that a frame is made of, as far as Spark or a note in it tells them.

    Returns
    -------
    list of (str, str or pathlib.Path)
        For `uncertain_cep.results.output_place.check_output_place`.
    """
    noted: list[tuple[str, str | Path]] = [("the trace", path) for path in noted_files(frame)]
    return noted + [("the file of events", path) for path in frame.inputFiles()]
