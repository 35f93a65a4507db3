"""The indices that the parts of a stream's state have in the checkpoint of a query."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from uncertain_cep.errors import OptionError
from uncertain_cep.files.special_files import is_url
from uncertain_cep.spark.dataframes import as_spark_path
from uncertain_cep.spark.stream_state import EVENTS, INDEX

__all__ = ["held_indices"]


def held_indices(spark: SparkSession, checkpoint: str | os.PathLike[str]) -> dict[int, str]:
    """Return the text of the index of each part behind the last batch that is committed; none before it.

    Raises
    ------
    OptionError
        If the folder holds the checkpoint of something else, or of several streams of rules.
    """
    folder = None if is_url(checkpoint) else Path(checkpoint).absolute()
    if folder is not None:
        _check_folder(folder)
    place = os.fspath(checkpoint) if folder is None else as_spark_path(folder)
    operators = spark.read.format("state-metadata").load(place).select("operatorId", "operatorProperties")
    rows = operators.dropDuplicates().collect()
    ours = [row[0] for row in rows if f'"{INDEX}"' in (row[1] or "") and f'"{EVENTS}"' in row[1]]
    if not rows and not (folder is not None and any(folder.glob("commits/[0-9]*"))):
        return {}
    if len(ours) != 1:
        raise OptionError(
            f"checkpoint={os.fspath(checkpoint)!r} has the state of {len(ours)} streams of rules: it must be "
            "that of one"
        )
    reader = spark.read.format("statestore").option("stateVarName", INDEX).option("operatorId", ours[0])
    try:
        parts = reader.load(place).select("key.bucket", "value.text").collect()
    except PySparkException as error:
        if error.getCondition() != "STDS_COMMITTED_BATCH_UNAVAILABLE":
            raise
        return {}
    return {int(bucket): str(text) for bucket, text in parts}


def _check_folder(folder: Path) -> None:
    """Raise OptionError if a place holds something that is no checkpoint."""
    if not folder.exists():
        return
    is_empty = folder.is_dir() and all(file.name.startswith(".") for file in folder.iterdir())
    # Spark writes this file first.
    if not is_empty and not (folder / "metadata").is_file():
        raise OptionError(
            f"checkpoint={str(folder)!r} is no checkpoint of a streaming query: name the folder of "
            "checkpointLocation, or a new one"
        )
