"""Statistics are measured once for the same candidates, also by programs to come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from tests.optimizer.traces import Selected, selected, skewed
from uncertain_cep.candidates.selection import Selection
from uncertain_cep.cli import main
from uncertain_cep.optimizer import memory as remembering
from uncertain_cep.optimizer.measuring import measure
from uncertain_cep.optimizer.memory import MEMORY, MOST_HELD, StatisticsMemory, remembered
from uncertain_cep.optimizer.statistics import Statistics
from uncertain_cep.plan import EvaluationPlan

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE a.x = c.x AND a.y < b.y WITHIN 20"
TABLE = skewed(900, (1, 3, 2), seed=21)


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    MEMORY.clear()
    MEMORY.folder = None
    yield
    MEMORY.clear()
    MEMORY.folder = None


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Selected]:
    """The statistics that were measured."""
    calls: list[Selected] = []

    def noted(plan: EvaluationPlan, table: pa.Table, selection: Selection, *, sampled: int) -> Statistics:
        calls.append(Selected(plan, table, selection))
        return measure(plan, table, selection, sampled=sampled)

    monkeypatch.setattr(remembering, "measure", noted)
    return calls


def asked(case: Selected) -> Statistics:
    return remembered(case.plan, case.table, case.selection)


def test_the_same_candidates_are_measured_once(measured: list[Selected]) -> None:
    first = asked(selected(QUERY, TABLE))
    again = pa.Table.from_pandas(TABLE.to_pandas(), preserve_index=False)
    assert asked(selected(QUERY, TABLE)) == asked(selected(QUERY, again)) == first
    # Nothing of the statistics depends on who chooses.
    assert asked(selected(QUERY, TABLE, "greedy")) == first
    assert len(measured) == 1


@pytest.mark.parametrize(
    ("query", "table"),
    [
        (QUERY.replace("20", "30"), TABLE),
        (QUERY.replace("<", ">"), TABLE),
        (QUERY, TABLE.slice(0, 800)),
        (QUERY, TABLE.set_column(5, "y", pa.array([0.5] * 900))),
        (QUERY.replace("AND", "AND b.y > 0.1 AND"), TABLE),
    ],
)
def test_other_candidates_or_conditions_are_measured_anew(
    query: str, table: pa.Table, measured: list[Selected]
) -> None:
    asked(selected(QUERY, TABLE))
    asked(selected(query, table))
    assert len(measured) == 2


def test_memory_is_bounded() -> None:
    case = selected(QUERY, TABLE)
    statistics = asked(case)
    memory = StatisticsMemory()
    for number in range(2 * MOST_HELD):
        memory.put(str(number), statistics)
        assert memory.get("0") is statistics
    assert len(memory) == MOST_HELD
    assert memory.get("1") is None


def test_a_program_to_come_finds_them_on_disk(tmp_path: Path, measured: list[Selected]) -> None:
    MEMORY.folder = tmp_path / "statistics"
    case = selected(QUERY, TABLE)
    first = asked(case)
    MEMORY.clear()
    assert asked(case) == first
    assert len(measured) == 1
    (file,) = MEMORY.folder.iterdir()
    file.write_text('{"events": 3')
    MEMORY.clear()
    assert asked(case) == first
    assert len(measured) == 2


def test_files_are_bounded_and_those_that_cannot_be_written_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembering, "MOST_FILES", 3)
    statistics = asked(selected(QUERY, TABLE))
    memory = StatisticsMemory()
    memory.folder = tmp_path / "statistics"
    for number in range(5):
        memory.put(str(number), statistics)
    assert len(list(memory.folder.iterdir())) == 3
    memory.folder = tmp_path / "file"
    memory.folder.write_text("no folder")
    memory.put("9", statistics)
    assert memory.get("9") is statistics


def test_the_command_keeps_them(tmp_path: Path) -> None:
    trace = tmp_path / "trace.parquet"
    pq.write_table(TABLE, trace)
    assert CliRunner().invoke(main, ["explain", QUERY, str(trace)]).exit_code == 0
    assert MEMORY.folder is not None
    kept = [Statistics.from_json(path.read_text()) for path in MEMORY.folder.iterdir()]
    assert TABLE.num_rows in [statistics.events for statistics in kept]
