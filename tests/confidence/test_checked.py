"""The checks of kernels that run as plain Python find what they are there for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.confidence.checked import checked_code, checks


def run(body: str, **names: Any) -> Any:
    """Return the result of a kernel with this body."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    source = f"@kernel\ndef function({', '.join(names)}):\n{lines}"
    given: dict[str, Any] = {**checks, "np": np, "kernel": lambda function: function}
    exec(checked_code(source, "<kernel>"), given)
    return given["function"](**names)


@pytest.mark.parametrize(
    "body",
    [
        "return x[i]",
        "x[i] = 1.0",
        "x[i] += 1.0",
        "return x[i:]",
        "return x[:i]",
        "return y[0, i]",
        "return y[i]",
        "return x[np.array([0, i])]",
        "return (x, y)[i]",
        "return sum([x[k] for k in range(i, 1)])",
    ],
)
def test_a_negative_index_is_an_error(body: str) -> None:
    arrays = {"x": np.zeros(3), "y": np.zeros((2, 3))}
    with pytest.raises(IndexError, match="negative"):
        run(body, i=np.int64(-1), **arrays)
    with pytest.raises(IndexError, match="negative"):
        run(body, i=-1, **arrays)
    run(body, i=1, **arrays)


@pytest.mark.parametrize("body", ["return x[i]", "x[i] = 1.0"])
def test_an_index_behind_the_end_is_an_error(body: str) -> None:
    with pytest.raises(IndexError, match="out of bounds"):
        run(body, x=np.zeros(3), i=3)


def test_a_negative_index_that_is_written_as_a_number_is_meant() -> None:
    assert run("return x[-1]", x=np.arange(3)) == 2
    assert run("return x[:-1].sum() + x[::-1][0]", x=np.arange(3)) == 3


def test_masks_and_arrays_of_indexes_select() -> None:
    assert run("return x[x > 1.0].sum()", x=np.arange(4.0)) == 5.0
    assert run("return x[np.array([2, 0])].sum()", x=np.arange(4.0)) == 2.0


def test_a_shift_that_leaves_int64_is_an_error() -> None:
    assert run("return x << 62", x=1) == 2**62
    for value, places in ((1, 63), (np.int64(1), 63), (np.int64(1), 64), (3, 62), (1, -1)):
        with pytest.raises(OverflowError):
            run("return x << n", x=value, n=places)
    assert run("return x << np.uint64(1)", x=np.uint64(2**63 + 1)) == 2


@pytest.mark.parametrize("operation", ["x + x", "x * x", "-x - x - x"])
def test_a_sum_that_leaves_int64_is_an_error(operation: str) -> None:
    with pytest.raises(RuntimeWarning, match="overflow"):
        run(f"return {operation}", x=np.int64(2**62))


def test_a_new_array_holds_nothing_of_use() -> None:
    assert np.isnan(run("return np.empty(3)", x=0)).all()
    assert (run("return np.empty((2, 2), np.int64)", x=0) < -(2**61)).all()
    assert (run("return np.empty(2, dtype=np.int8)", x=0) == -128).all()
    assert run("return np.empty(2, np.bool_)", x=0).all()


def test_only_kernels_are_held_to_indexes() -> None:
    given: dict[str, Any] = {**checks, "np": np}
    exec(checked_code("def function(x, i):\n    return x[i] + np.empty(1)[0]\n", "<module>"), given)
    assert np.isnan(given["function"](np.arange(3), -1))


def test_lines_keep_their_numbers() -> None:
    with pytest.raises(IndexError) as caught:
        run("a = x[0] << 1\nb = (a +\n     x[i])\nreturn b", x=np.arange(3), i=-1)
    frame = caught.traceback[2]
    assert frame.name == "function"
    assert frame.lineno + 1 == 5
