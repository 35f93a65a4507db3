"""The process that Spark forks its Python workers from: what each of them would import is there already."""

from __future__ import annotations

import pandas as pd  # noqa: F401
from pyspark import daemon

import uncertain_cep.spark.file_worker
import uncertain_cep.spark.worker  # noqa: F401

if __name__ == "__main__":
    daemon.manager()
