"""When a kernel looks at many rows, and how columns are handed to it."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from confidence.kernel import compiles_always, compiles_now
from uncertain_cep.config.tuning import WORTH_A_KERNEL

__all__ = ["is_worth_a_kernel", "read_only"]


def is_worth_a_kernel(rows: int) -> bool:
    """Return whether a kernel is sooner done with so many rows than Arrow or NumPy; to load Numba is not."""
    return (rows >= WORTH_A_KERNEL and compiles_now()) or compiles_always()


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """Return the same values, not to be written on.

    Numba types a kernel at its calls, and Arrow's memory, which cannot be written on, is of a type of its
    own: where all is of that type, a kernel is compiled once.
    """
    view = values.view()
    view.flags.writeable = False
    return view
