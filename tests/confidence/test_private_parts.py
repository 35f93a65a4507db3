"""Kernels without private parts of Numba: where one is missing, or differs, the answers are the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

import uncertain_cep as uc
from confidence.compiled import PRIVATE, NjitKernel, private_parts
from confidence.kernel import NEVER_COMPILED
from confidence.kernel_cache import WITHOUT
from uncertain_cep.config import tuning

pytestmark = pytest.mark.skipif(NEVER_COMPILED, reason="nothing is compiled")

ROOT = Path(__file__).resolve().parents[2]

KERNELS = """
import json
import numpy as np
from confidence.arrays import ascending, count_below, largest
from confidence.compiled import private_parts
from confidence.gaps.monte_carlo import _stir
from tests.confidence.test_linked_kernels import _copied_by_another, _sum_scaled

values, state = np.array([3, 4, -2, 4]), np.array([1], dtype=np.uint64)
answers = []
for _ in range(2):
    _stir(state, 5)
    order = ascending(values, len(values))
    answers += [int(state[0]), _sum_scaled(values), _sum_scaled(values[::-1]), largest(values)]
    answers += [order.tolist(), count_below(values[order], 0, 4, 4)]
    try:
        _copied_by_another(values, np.zeros(2, dtype=np.int64))
    except ValueError as error:
        answers.append(str(error))
parts = private_parts()
print(json.dumps([answers, parts.part, parts.missing]))
"""

QUERY: Final = (
    "PATTERN SEQ(AND(A a, B b), !C n, D+ d[]) WHERE sum(d[].k) >= 1 WITHIN 9 HAVING CONFIDENCE >= 0.001"
)

MATCH = """
import json, sys
from confidence.compiled import private_parts
from tests.confidence.test_private_parts import answer

print(json.dumps([answer(), private_parts().part, private_parts().missing]))
"""


def answer() -> list[dict[str, Any]]:
    """Return the matches of a query with a set, a negation, a Kleene component and confidences."""
    lower = [1, 2, 3, 5, 1, 4, 6, 7]
    events = {
        "type": ["A", "B", "C", "D"] * 2,
        "id": list(range(8)),
        "lower": lower,
        "upper": [tick + 3 for tick in lower],
        "k": [0, 1] * 4,
    }
    few, tuning.FEW_EVENTS = tuning.FEW_EVENTS, 0
    try:
        matches: list[dict[str, Any]] = uc.match(pa.table(events), QUERY).to_pylist()
    finally:
        tuning.FEW_EVENTS = few
    return matches


def output(script: str, cache: Path | None = None, without: str = "") -> list[Any]:
    """Return the output of a new process, which may not use some private parts of Numba."""
    folder = {} if cache is None else {"NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, **folder, WITHOUT: without, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return said


CHANGES: Final = {
    "from numba.core import codegen as it; del it.JITCodeLibrary": "storing",
    "from numba.core import compiler as it; it.Flags = type('F', (it.Flags,), {'discard': None})": "storing",
    "from numba.core.compiler import CompileResult as it; del it._reduce": "",
    "from numba.core.dispatcher import Dispatcher, NullCache as it; Dispatcher._cache = property("
    "lambda self: it(), lambda self, cache: None)": "",
}
"""What another release of Numba could have changed -> the parts of this one that do without."""


@pytest.fixture(scope="module")
def expected() -> list[Any]:
    """Answers of a handful of kernels, with all parts."""
    answers, part, missing = output(KERNELS)
    assert (part, missing) == ("linking", {})
    assert answers[1:5] == [6 + 9 + 3 * 9, 8 + 16 + 3 * 9, 4, [2, 0, 1, 3]]
    assert answers[: len(answers) // 2] != answers[len(answers) // 2 :]
    return list(answers)


@pytest.mark.parametrize("without", ["linking", "linking storing"])
def test_kernels_answer_the_same_without(without: str, expected: list[Any], tmp_path: Path) -> None:
    first = next((part for part in PRIVATE if part not in without.split()), "")
    # The second time what was kept is taken back, where anything is.
    for _ in range(2 if first else 1):
        answers, part, missing = output(KERNELS, tmp_path, without)
        assert answers == expected
        assert part == first
        assert list(missing) == without.split()
        assert all(WITHOUT in reason for reason in missing.values())
    assert bool(list(tmp_path.rglob("*.nbc"))) == bool(list(tmp_path.rglob("*.whole"))) == bool(first)


@pytest.mark.thorough
@pytest.mark.parametrize("change", CHANGES)
def test_another_numba_is_noticed(change: str, expected: list[Any], tmp_path: Path) -> None:
    answers, part, missing = output(f"import numba; {change}\n{KERNELS}", tmp_path)
    assert answers == expected
    assert part == CHANGES[change], missing
    assert list(missing) == list(PRIVATE)[: (*PRIVATE, "").index(part)]


@pytest.mark.thorough
@pytest.mark.parametrize("without", ["linking", "linking storing"])
def test_a_match_is_the_same_without(without: str) -> None:
    here = answer()
    assert len(here) > 2
    assert private_parts().part == "linking"
    there, part, _ = output(MATCH, without=without)
    assert there == here
    assert part != "linking"


def test_types_are_looked_at_as_closely_as_numba_does() -> None:
    made: list[Any] = []

    class Dispatcher:
        def compile(self, signature: Any) -> None:
            made.append(signature)

        def __call__(self, *arguments: Any) -> int:
            return len(arguments)

    run = NjitKernel(Dispatcher())
    whole = np.arange(6)
    fixed = whole.view()
    fixed.flags.writeable = False
    arguments: list[Any] = [
        whole, whole[::2], fixed, whole / 2, whole.reshape(2, 3), whole.reshape(2, 3).T, 1, 1.0, np.int64(1),
        np.float32(1), True, (whole, 1), (whole[::2], 1), (whole, (1, 1.0)), (whole, (1, 1)),
    ]  # fmt: skip
    for count in range(2):
        assert [run(each) for each in arguments] == [1] * len(arguments)
        assert len(made) == len(run.overloads) == len(arguments), count
