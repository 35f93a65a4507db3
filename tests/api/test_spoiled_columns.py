"""An error about a column that a few rows keep from being one of numbers says which rows these are."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cli.conftest import Invoke, invoke

__all__ = ["invoke"]

QUERY = "PATTERN SEQ(A a, A b) WHERE a.x > 1 WITHIN 9"
_NUMBERS = ["1", "-2.5", " 3 ", "+7.", ".5", "1e5", "2E-3"]
_OTHERS = ["", "  ", "abc", "1,5", "0x1", "--1", "1 2", "e5", ".", "5ms"]


def table_of(cells: list[str | None], is_coded: bool = False) -> pa.Table:
    times = range(len(cells))
    column = pa.array(cells, pa.string())
    return pa.table(
        {"type": ["A"] * len(cells), "id": times, "lower": times, "upper": times,
         "x": column.dictionary_encode() if is_coded else column}
    )  # fmt: skip


@given(
    st.lists(st.none() | st.sampled_from(_NUMBERS) | st.sampled_from(_OTHERS), min_size=1, max_size=12),
    st.booleans(),
)
def test_the_first_row_without_a_number_is_named_where_most_have_one(
    cells: list[str | None], is_coded: bool
) -> None:
    with pytest.raises(uc.QueryError) as caught:
        uc.match(table_of(cells, is_coded), QUERY)
    (fault,) = caught.value.faults
    unreadable = [row for row, cell in enumerate(cells, 1) if cell in _OTHERS]
    numbers = sum(cell in _NUMBERS for cell in cells)
    if not unreadable or numbers < len(unreadable):
        assert fault.message == "a.x is a string and 1 a whole number: they cannot be compared, write '1'"
        return
    rows = (
        "one row holds no number ("
        if len(unreadable) == 1
        else f"{len(unreadable)} rows hold no number (the first: "
    )
    assert fault.message.startswith(f"x is text, as {rows}row {unreadable[0]}: {cells[unreadable[0] - 1]!r})")
    assert f"while {numbers} do" in fault.message


@pytest.mark.parametrize(
    "condition",
    [
        "a.x + 1 > 2",
        "-a.x < 2",
        "2 <= a.x",
        "b.y = a.x",
        "a.x IN (1, 2)",
        "a.x BETWEEN 1 AND 2",
        "abs(a.x) > 1",
    ],
)
def test_whatever_takes_a_column_for_numbers(condition: str) -> None:
    table = table_of(["1", "2", "n/a"]).append_column("y", pa.array([1, 2, 3]))
    with pytest.raises(uc.QueryError, match=r"x is text, as one row holds no number \(row 3: 'n/a'\)"):
        uc.match(table, f"PATTERN SEQ(A a, A b) WHERE {condition} WITHIN 9")


@pytest.mark.parametrize("condition", ["avg(a[].x) > 1", "sum(a[].x + 1) > 1", "a[i].x > a[i-1].y"])
def test_aggregates_of_a_column(condition: str) -> None:
    table = table_of(["1", "2", "n/a"]).append_column("y", pa.array([1, 2, 3]))
    with pytest.raises(uc.QueryError, match=r"x is text, as one row holds no number \(row 3: 'n/a'\)"):
        uc.match(table, f"PATTERN SEQ(A+ a[], A b) WHERE {condition} WITHIN 9")


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: uc.match(table, QUERY),
        lambda table: list(uc.iter_matches(table, QUERY)),
        lambda table: uc.explain(QUERY, table),
        lambda table: uc.validate(table, query=QUERY),
        lambda table: uc.events_of(table.select(["id"]), table, QUERY),
        lambda table: uc.posteriors(table.select(["id"]), table, QUERY),
    ],
)
def test_whatever_is_asked_of_a_frame(ask: Callable[[pa.Table], object]) -> None:
    with pytest.raises(uc.QueryError, match=r"one row holds no number \(row 3: 'n/a'\)"):
        ask(table_of(["1", "2", "n/a"]))


def test_other_mistakes_keep_their_message() -> None:
    table = table_of(["1", "2", "n/a"])
    with pytest.raises(uc.QueryError, match=r"unknown attribute z"):
        uc.match(table, "PATTERN SEQ(A a, A b) WHERE a.z > 1 WITHIN 9")
    with pytest.raises(uc.QueryError, match=r"is a string and TRUE"):
        uc.match(table, "PATTERN SEQ(A a, A b) WHERE a.x = TRUE WITHIN 9")


@pytest.mark.parametrize("command", ["match", "validate", "explain"])
def test_the_file_and_its_row_are_named(command: str, invoke: Invoke, tmp_path: Path) -> None:
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("at,kind,x\n1,A,7\n,A,8\n3,A,broken\n")
    second.write_text("at,kind,x\n,A,7\n5,A,1\n6,A,-\n7,A,2\n")
    arguments = [first, second, "--query", QUERY] if command == "validate" else [QUERY, first, second]
    options = ["--time", "at", "--uncertainty", "exact", "--type-column", "kind", "--missing", "drop"]
    result = invoke(command, *arguments, *options)
    assert result.exit_code == 2
    assert re.search(
        r"x is text, as 2 rows hold no number \(the first: \S*first\.csv, row 3: 'broken'\), while 3 do",
        result.stderr,
    )
    assert "Traceback" not in result.output


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("more", ["", "8,A,-\n"])
def test_a_file_of_text_beside_one_of_numbers(
    is_first: bool, more: str, invoke: Invoke, tmp_path: Path
) -> None:
    sound, spoiled = tmp_path / "sound.csv", tmp_path / "spoiled.csv"
    sound.write_text("at,kind,x\n1,A,7\n2,A,8\n")
    spoiled.write_text(f"at,kind,x\n,A,7\n5,A,1\n6,A,broken\n7,A,2\n{more}")
    files = [spoiled, sound] if is_first else [sound, spoiled]
    options = ["--time", "at", "--uncertainty", "exact", "--type-column", "kind", "--missing", "drop"]
    result = invoke("match", QUERY, *files, *options)
    assert result.exit_code == 2
    ending = "this one and 1 more do not: mend them" if more else "this one does not: mend it"
    where = "spoiled.csv, row 3, column 'x', value 'broken'"
    assert f"{where}: 2 rows here and those of {sound} hold numbers, and {ending}" in result.stderr


def test_files_of_text_and_of_numbers(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("at,kind,x\n1,A,7\n")
    (tmp_path / "two.csv").write_text("at,kind,x\n1,A,left\n2,A,right\n3,A,2\n")
    options = ["--time", "at", "--uncertainty", "exact", "--type-column", "kind"]
    result = invoke("match", QUERY, tmp_path / "one.csv", tmp_path / "two.csv", *options)
    assert result.exit_code == 2
    assert "its type is string here, but int64 in" in result.stderr
