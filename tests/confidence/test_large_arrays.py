"""Large arrays lie where a package says, and are what NumPy would make."""

from __future__ import annotations

import numpy as np
import pytest

from confidence import large_arrays


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes were asked for of a place that is full of ones."""
    sizes: list[int] = []

    def allocate(size: int) -> bytearray:
        sizes.append(size)
        return bytearray(b"\xff" * (size + 8))

    monkeypatch.setattr(large_arrays, "_allocate", [])
    large_arrays.allocate_by(allocate)
    return sizes


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.int32, np.bool_])
@pytest.mark.parametrize(
    "shape", [large_arrays.LARGE, np.int64(large_arrays.LARGE), (3, large_arrays.LARGE), 5, (2, 0)]
)
def test_arrays_are_as_numpy_makes_them(
    asked: list[int], shape: int | tuple[int, ...], dtype: type[np.generic]
) -> None:
    expected = np.zeros(shape, dtype)
    for made in (large_arrays.empty(shape, dtype), large_arrays.zeros(shape, dtype)):
        assert (made.shape, made.dtype, made.strides) == (expected.shape, expected.dtype, expected.strides)
        assert made.flags.c_contiguous
        assert made.flags.writeable
    assert np.array_equal(large_arrays.zeros(shape, dtype), expected)
    assert asked == [expected.nbytes] * 3 if expected.nbytes >= large_arrays.LARGE else not asked


def test_without_a_place_they_lie_where_numpy_puts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_arrays, "_allocate", [])
    assert large_arrays.zeros(large_arrays.LARGE).base is None
