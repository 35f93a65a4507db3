"""The first query ties events of one key, where a column of both tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Invoke
from tests.cli.test_init import written
from tests.traces.files import put


def first_query(invoke: Invoke, folder: Path, path: Path) -> str:
    written(invoke, folder, path)
    return (folder / "first.query").read_text()


def test_parts_of_messages_tie_events(tmp_path: Path, invoke: Invoke) -> None:
    lines = [
        f"2025-03-02 03:{minute:02d}:{second:02d} [t{minute % 3}] {text}"
        for minute in range(20)
        for second, text in ((1, f"job-{minute} started"), (9, f"after {minute} ms job-{minute} done"))
    ]
    query = first_query(invoke, tmp_path / "out", put(tmp_path / "app.log", "\n".join(lines)))
    assert query.splitlines()[1:3] == ["PATTERN SEQ(Started a, AfterMsDone b)", "WHERE a.p1 = b.p2"]


@pytest.mark.parametrize("name", ["level", "pid"])
def test_what_wrote_a_record_ties_nothing(tmp_path: Path, invoke: Invoke, name: str) -> None:
    rows = "".join(
        f"2025-03-02 03:04:{number:02d},{'AB'[number % 2]},{number // 2}\n" for number in range(20)
    )
    query = first_query(invoke, tmp_path / "out", put(tmp_path / "t.csv", f"at,kind,{name}\n{rows}"))
    assert "WHERE" not in query
    query = first_query(invoke, tmp_path / "two", put(tmp_path / "t.csv", f"at,kind,job\n{rows}"))
    assert "WHERE a.job = b.job" in query
