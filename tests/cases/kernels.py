"""Kernels that run as plain Python, or one call so and the next compiled, whatever is compiled already."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import strategies as st

from confidence import kernel
from confidence.kernel import Kernel
from uncertain_cep.config import tuning

__all__ = ["WAYS", "running"]

WAYS = st.sampled_from(["plain", "either"])


def _called(called: Kernel, *arguments: Any) -> Any:
    """Run a kernel as plain Python where it may run so, even if compiled code of it is loaded."""
    if not kernel.runs_plain():
        return called.compiled(*arguments)
    with np.errstate(all="ignore"):
        return called.plain(*arguments)


@contextmanager
def running(way: str, seed: int = 0) -> Iterator[None]:
    """Have kernels run as plain Python; with ``either`` each call runs one way or the other."""
    draw = random.Random(seed)
    with ExitStack() as patches:
        change = patches.enter_context
        change(patch.object(Kernel, "__call__", _called))
        change(patch.object(tuning, "FEW_EVENTS", 10**9))
        change(patch.object(tuning, "PLAIN_SECONDS", 1e9))
        change(patch.object(tuning, "PLAIN_SECONDS_UNCOMPILED", 1e9))
        change(patch("uncertain_cep.running.compiling.is_marked", lambda _: True))
        if way == "either":
            change(patch.object(kernel, "runs_plain", lambda: draw.random() < 0.5))
        yield
