"""The unit of numbers: where no stamp is a number it has no effect, which a warning says once."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.traces.files import schema_of
from uncertain_cep.cli import main

DAY = dt.datetime(2026, 1, 5)
STAMPS: dict[str, pa.Array] = {
    "text": pa.array(["2026-01-05 10:30", "2026-01-06"]),
    "some text": pa.array(["2026-01-05 10:30", None]),
    "times": pa.array([DAY, DAY], pa.timestamp("ms")),
    "dates": pa.array([DAY, DAY], pa.date32()),
    "whole": pa.array([7, 8], pa.int64()),
    "small": pa.array([7, 8], pa.uint8()),
    "floats": pa.array([7.5, 8.5]),
    "decimals": pa.array([7, 8]).cast(pa.decimal128(20, 0)),
    "nulls": pa.nulls(2),
}
LENGTHS: dict[str, pa.Array] = {
    "whole": pa.array([3, 4]),
    "durations": pa.array([3, 4], pa.duration("s")),
}
NUMBERS = ("whole", "small", "floats", "decimals")

KEYS = '[[events]]\ntype = "A"\ntime = "at"\nunit = "ms"\n'
EXACT = KEYS + 'uncertainty = { kind = "exact" }\n'


def warned(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Return the result of a call, and its warnings of units."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, [str(warning.message) for warning in caught if "has no effect" in str(warning.message)]


def rules() -> st.SearchStrategy[Any]:
    offsets = {"h": (-1, 2)}
    return st.sampled_from(
        [
            uc.exact(),
            uc.plus_minus("2s"),
            uc.histogram("p"),
            uc.columns("at", "till"),
            uc.clock_offset(offsets, key="host"),
            uc.clock_offset(offsets, key="host", shared=True, own=uc.plus_minus("1s")),
        ]
    )


@given(st.sampled_from([*STAMPS]), st.sampled_from([*STAMPS]), st.sampled_from(["", *LENGTHS]), rules())
def test_it_warns_where_no_unit_changes_anything(at: str, till: str, took: str, rule: Any) -> None:
    table = pa.table(
        {
            "type": ["A", "A"],
            "id": [1, 2],
            "at": STAMPS[at],
            "till": STAMPS[till],
            "took": LENGTHS.get(took, pa.array([3, 4])),
            "host": ["h", "h"],
            "p": [[1.0], [1.0]],
        }
    )
    time = "at + took" if took else "at"

    def made(unit: str) -> tuple[Any, list[str]]:
        try:
            return warned(
                lambda: uc.to_intervals(table, time=time, uncertainty=rule, unit=unit, missing="drop")
            )
        except (uc.TraceError, uc.OptionError):
            return None, []

    by_unit = {unit: made(unit) for unit in ("s", "h")}
    if None in (result for result, _ in by_unit.values()):
        return
    (one, said), (other, _) = by_unit.values()
    kinds = [at, till] if isinstance(rule, type(uc.columns("a", "b"))) else [at]
    if said:
        assert len(said) == 1
        assert one.equals(other)
        assert not any(kind in NUMBERS for kind in kinds)
    elif one.num_rows and "nulls" not in kinds:
        assert not one.equals(other)


@pytest.mark.parametrize("unit", ["s", "tick"])
@pytest.mark.parametrize("kind", ["text", "times", "dates"])
@pytest.mark.parametrize("to_frame", [lambda table: table, pa.Table.to_pandas, pl.from_arrow])
def test_frames(to_frame: Callable[[pa.Table], Any], kind: str, unit: str) -> None:
    frame = to_frame(pa.table({"type": ["A", "A"], "at": STAMPS[kind]}))
    _, said = warned(lambda: uc.to_intervals(frame, time="at", uncertainty="exact", unit=unit))
    advice = ', or say tick="1s" if it is to be the length of a tick' if unit == "s" else ""
    assert len(said) == 1
    assert said[0].startswith(f"unit {unit!r} has no effect on stamps that are no numbers, 'at' (")
    assert said[0].endswith(f": leave it out{advice}")


def test_files_of_a_schema(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("at,x\n2026-01-05T10:30:00,1\n2026-01-05T10:31:00,2\n")
    events, said = warned(lambda: uc.read_traces(file, schema_of(tmp_path, EXACT)))
    assert said == [
        "events[1].unit 'ms' has no effect on stamps that are no numbers, 'at' (timestamp[s]): leave it out, "
        'or say tick="1ms" if it is to be the length of a tick'
    ]
    without = schema_of(tmp_path, EXACT.replace('unit = "ms"\n', ""))
    assert events.equals(warned(lambda: uc.read_traces(file, without))[0])


def test_formats_of_text(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("at\n05.01.2026\n")
    keys = EXACT + 'time_format = "%d.%m.%Y"\n'
    assert len(warned(lambda: uc.read_traces(file, schema_of(tmp_path, keys)))[1]) == 1
    file.write_text("at\n1767609000\n")
    keys = keys.replace('unit = "ms"\n', "").replace("%d.%m.%Y", "epoch_s")
    assert warned(lambda: uc.read_traces(file, schema_of(tmp_path, keys)))[1] == []


@pytest.mark.parametrize(("column_type", "count"), [("int", 0), ("float", 0), ("timestamp", 1)])
def test_types_of_a_table_make_numbers_of_texts(tmp_path: Path, column_type: str, count: int) -> None:
    stamp = "2026-01-05" if column_type == "timestamp" else "7"
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"at": [stamp]}), file)
    keys = EXACT + f'types = {{ at = "{column_type}" }}\n'
    assert len(warned(lambda: uc.read_traces(file, schema_of(tmp_path, keys)))[1]) == count


@pytest.mark.parametrize("name", ["b.csv", "b.parquet"])
def test_one_of_several_files_has_numbers(tmp_path: Path, name: str) -> None:
    pq.write_table(pa.table({"at": STAMPS["times"]}), tmp_path / "a.parquet")
    numbers = tmp_path / name
    if numbers.suffix == ".csv":
        numbers.write_text("at\n1767609000000\n")
    else:
        pq.write_table(pa.table({"at": pa.array([1767609000000])}), numbers)
    schema = schema_of(tmp_path, EXACT)
    files = [tmp_path / "a.parquet", numbers]
    assert warned(lambda: uc.read_traces(files, schema))[1] == []
    # What a file without rows takes its columns for is a guess.
    pq.write_table(pa.table({"at": pa.array([], pa.int64())}), tmp_path / "b.parquet")
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    assert len(warned(lambda: uc.read_traces(files, schema))[1]) == 1


def test_each_table_of_a_schema_is_named(tmp_path: Path) -> None:
    text = EXACT.replace("[[events]]", '[[events]]\nfiles = "a.csv"')
    text += text.replace("a.csv", "b.csv") + text.replace("a.csv", "c.csv")
    for name, stamp in (("a", "2026-01-05"), ("b", "1767609000000"), ("c", "2026-01-05T10:30:00")):
        (tmp_path / f"{name}.csv").write_text(f"at\n{stamp}\n{stamp}\n")
    files = [tmp_path / f"{name}.csv" for name in "abc"]
    _, said = warned(lambda: uc.read_traces(files, schema_of(tmp_path, text)))
    assert [message.partition(" ")[0] for message in said] == ["events[1].unit", "events[3].unit"]


def test_rules_by_value(tmp_path: Path) -> None:
    text = (
        KEYS
        + """
    [events.uncertainty_by.kind]
    a = { kind = "exact" }
    b = { kind = "columns", lower = "lo", upper = "hi" }
    """
    )
    columns: dict[str, Any] = {"kind": ["a", "b"], "at": STAMPS["times"], "lo": [1, 1], "hi": [2, 2]}
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), file)
    schema = schema_of(tmp_path, text)
    assert warned(lambda: uc.read_traces(file, schema))[1] == []
    pq.write_table(pa.table(columns | {"lo": STAMPS["times"], "hi": STAMPS["times"]}), file)
    assert len(warned(lambda: uc.read_traces(file, schema))[1]) == 1


def test_epochs_of_clocks_are_numbers_of_the_unit() -> None:
    """Without the unit, the epochs are plain numbers beside times, which is an error."""
    table = pa.table({"type": ["A"], "at": pa.array([DAY]), "host": ["h"]})
    offsets = pa.table(
        {"host": ["h"], "lower": [-1], "upper": [1], "from": pa.array([0]), "until": pa.nulls(1)}
    )
    rule = uc.clock_offset(offsets, host="host", lower="lower", upper="upper", epoch=("from", "until"))
    events, said = warned(lambda: uc.to_intervals(table, time="at", uncertainty=rule, unit="s"))
    assert said == []
    assert events.num_rows == 1
    with pytest.raises(uc.OptionError, match="epochs"):
        uc.to_intervals(table, time="at", uncertainty=rule)


@pytest.mark.parametrize("arguments", [("validate",), ("match", "PATTERN SEQ(A a, A b) WITHIN 1 min")])
def test_commands_say_it_once(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    file, schema = tmp_path / "a.csv", tmp_path / "schema.toml"
    file.write_text("at\n2026-01-05T10:30:00\n2026-01-05T10:30:01\n")
    schema.write_text(EXACT)
    result = CliRunner().invoke(main, [*arguments, str(file), "--schema", str(schema)])
    assert result.exit_code == 0, result.output
    assert result.output.count("events[1].unit 'ms' has no effect") == 1
