"""Kernels that other kernels call are compiled once for each type, and only for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import event
from numpy.typing import NDArray

from confidence.arrays import ascending, count_below, count_up_to, largest, smallest
from confidence.compiled import private_parts
from confidence.kernel import kernel

Int64 = NDArray[np.int64]


@kernel
def _scaled(values: Int64, at: int, factor: int) -> int:
    found: int = values[at] * factor
    return found


@kernel
def _sum_scaled(values: Int64) -> int:
    at = 0
    total: int = _scaled(values, 0, 2) + _scaled(values, at, values[0])
    while at < values.shape[0]:
        total += _scaled(values, at, 3)
        at += 1
    return total


@kernel
def _last_scaled(values: Int64) -> int:
    found: int = _scaled(values, values.shape[0] - 1, 1)
    return found


@kernel(allocates=True)  # type: ignore[untyped-decorator]
def _copied(values: Int64, out: Int64) -> None:
    out[:] = values


@kernel(allocates=True)  # type: ignore[untyped-decorator]
def _copied_by_another(values: Int64, out: Int64) -> None:
    _copied(values, out)


@contextmanager
def compiled_names() -> Iterator[list[str]]:
    names: list[str] = []

    class Compiles(event.Listener):
        def on_start(self, event: Any) -> None:
            names.append(event.data["dispatcher"].py_func.__name__)

        def on_end(self, event: Any) -> None:
            """Nothing more is to be known."""

    install: Any = event.install_listener
    with install("numba:compile", Compiles()):
        yield names


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Compiles two kernels of its own.
    private_parts()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))


@pytest.mark.compiled
@pytest.mark.usefixtures("empty_cache")
def test_constants_make_no_variants_and_what_kernels_call_is_no_python_function() -> None:
    values = np.array([3, 4], dtype=np.int64)
    with compiled_names() as names:
        assert _sum_scaled(values) == 3 * 2 + 3 * 3 + 3 * 3 + 4 * 3
    assert sorted(names) == ["_scaled", "_sum_scaled"]
    assert not _scaled.compiled.signatures
    with compiled_names() as names:
        assert _scaled(values, 1, 5) == 20
    assert names == ["_scaled"]


@pytest.mark.compiled
@pytest.mark.usefixtures("empty_cache")
def test_linked_code_is_found_by_the_next_caller() -> None:
    caller = _sum_scaled.py_func
    values = np.array([3, 4], dtype=np.int64)
    first = kernel(caller)(values)
    _scaled.compiled._linked.overloads.clear()
    with compiled_names() as names:
        assert kernel(caller)(values) == first
    assert names == []
    with compiled_names() as names:
        assert kernel(_last_scaled.py_func)(values) == 4
    assert names == ["_last_scaled"]


@pytest.mark.compiled
@pytest.mark.usefixtures("empty_cache")
def test_errors_of_linked_code_reach_python_compiled_or_cached() -> None:
    values, out = np.arange(3), np.arange(2)
    for _ in range(2):
        with pytest.raises(ValueError, match="cannot assign slice of shape"):
            kernel(_copied_by_another.py_func)(values, out)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 65])
def test_plain_loops_are_what_numpy_does(count: int) -> None:
    rng = np.random.default_rng(count)
    values = rng.integers(-5, 5, count)
    assert largest(values) == values.max()
    assert smallest(values) == values.min()
    order = ascending(np.append(values, -99), count)
    assert np.array_equal(order, np.argsort(values, kind="stable"))
    ordered = values[order]
    start, stop = count // 3, count - count // 4
    for x in range(-6, 7):
        part = ordered[start:stop]
        assert count_below(ordered, start, stop, x) == np.searchsorted(part, x, side="left")
        assert count_up_to(ordered, start, stop, x) == np.searchsorted(part, x, side="right")
