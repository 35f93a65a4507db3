"""Columns of numbers that a few rows of a frame make columns of text: an error about their kind says so."""

from __future__ import annotations

from contextlib import AbstractContextManager

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from uncertain_cep.spark.dataframes import column
from uncertain_cep.traces.spoiled_numbers import NUMBER, naming_spoiled, spoiled_of

__all__ = ["naming_spoiled_values"]


def naming_spoiled_values(frame: DataFrame) -> AbstractContextManager[None]:
    """Have a `QueryError` name a value that keeps a column of a frame from being one of numbers.

    Runs a job for each column of text that a query takes for one of numbers, and none without an error.
    """

    def message(name: str) -> str | None:
        values = column(name)
        is_number = values.rlike(NUMBER)
        row = frame.agg(
            f.count_if(is_number).alias("numbers"),
            f.count_if(~is_number).alias("others"),
            f.min(f.when(~is_number, values)).alias("value"),
        ).collect()[0]
        # Rows have no order: the first by its value.
        spoiled = spoiled_of(0, row["value"] or "", row["others"], row["numbers"])
        return None if spoiled is None else spoiled.message(name, "such as ", spoiled.value)

    return naming_spoiled(message)
