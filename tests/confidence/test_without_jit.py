"""The kernels once more as plain Python, which refuses wrong indexes and numbers that overflow."""

from __future__ import annotations

from typing import Any

import pytest

from tests.confidence.covering import FOLDERS, covered, main, plain_python

SAMPLE = "test_framework or oracle or (confidence or eventbased) and not operators and not results"
"""Of the properties those that hold the engine against the oracle."""

DEAR = "allocating or no_bias or too_many"
"""What tells little more in plain Python for the time that it takes."""


def test_what_is_covered_is_counted_by_package() -> None:
    def file(lines: int, missing: list[int]) -> dict[str, Any]:
        percent = 100.0 * (1.0 - len(missing) / lines)
        return {
            "summary": {"num_statements": lines, "percent_covered": percent},
            "missing_lines": missing,
        }

    files = {
        "confidence/a.py": file(9, []),
        "confidence/b.py": file(1, [7]),
        "eventbased/a.py": file(4, [1, 3]),
        "pointbased/a.py": file(2, []),
    }
    percent, left_out = covered(files)
    assert percent == pytest.approx({"confidence": 90.0, "eventbased": 50.0, "pointbased": 100.0})
    assert left_out == ["confidence/b.py: 0%, not 7", "eventbased/a.py: 50%, not 1, 3"]


def test_a_sample_as_plain_python() -> None:
    said = plain_python(FOLDERS, "--hypothesis-profile=sample", "-k", f"({SAMPLE}) and not ({DEAR})")
    assert not said, said


@pytest.mark.thorough
def test_almost_every_line_runs_as_plain_python() -> None:
    missed = main()
    assert not missed, "\n".join(missed)
