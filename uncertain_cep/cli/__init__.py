"""The command line ``uncertain-cep``.

``uncertain-cep --help`` has to answer at once, so no module of this package imports pyarrow, Numba or
Spark before a command needs it.
"""

from uncertain_cep.cli.commands import main

__all__ = ["main"]
