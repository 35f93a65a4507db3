"""Columns of numbers so large that one float stands for several whole numbers."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from uncertain_cep.errors import warn

__all__ = ["warn_of_decimals", "warn_of_float_key"]


def warn_of_float_key(name: str, dtype: pa.DataType, largest: float | Decimal | None) -> None:
    """Warn of a column of floats that is a key, if the ``largest`` of its amounts may be rounded."""
    digits = 24 if pa.types.is_float32(dtype) else 53
    if (largest or 0) >= 2**digits:
        warn(
            f"column {name} is a key of floats beyond 2^{digits}, where one float stands for several whole "
            "numbers: make the column of whole numbers (Int64 in pandas) or text"
        )


def warn_of_decimals(name: str, largest: float | Decimal | None) -> None:
    """Warn of a column of decimal numbers, if the ``largest`` of their amounts is rounded in comparisons."""
    if (largest or 0) > 2**53:
        warn(
            f"column {name} holds decimal numbers beyond 2^53, which comparisons round: make "
            "it a column of whole numbers (int64) or text"
        )
