"""The process that Spark forks its Python workers from: what each of them would import is there already."""

from __future__ import annotations

import pandas as pd  # noqa: F401
from pyspark import daemon

import confidence.compiled  # noqa: F401
import uncertain_cep.spark.file_worker
import uncertain_cep.spark.worker  # noqa: F401
from uncertain_cep.config import tuning

# As in the process of the tests, which has compiled what it asks Spark for.
tuning.FEW_EVENTS = 0

if __name__ == "__main__":
    daemon.manager()
