"""Logs of time services as bounds of a clock."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import uncertain_cep as uc

RULE = "=" * 120
FIELDS = "-3.541 0.075 -8.621e-06"
ERRORS = "2 2.940e-03 -2.084e-04 1.534e-02 3.472e-04"
CHRONY = f"""\
{RULE}
   Date (UTC) Time     IP Address   St   Freq ppm   Skew ppm     Offset L Co  Offset sd Root delay Max. error
{RULE}
2024-08-22 13:22:36 203.0.113.15     2   {FIELDS} N  {ERRORS}  8.304e-03
2024-08-22 13:23:40 203.0.113.15     2   {FIELDS} N  {ERRORS}  1.5e-03
2024-08-22 13:24:40 0.0.0.0          0   {FIELDS} ?  {ERRORS}  1.5e-03
2024-08-22 13:25:40 203.0.113.15     2   {FIELDS} N  {ERRORS}  0.2500000001
"""
PEERS = """\
56791 36043.625 10.39.32.12 8023 -0.000106166 0.000316335 7.946282622 0.000000119
56791 36044.5 10.39.32.12 964a -0.001 0.002 0.0005 0.000038685
56791 36044.75 10.39.32.11 9424 0.3 0.002 0.0005 0.000038685
56791 36108.5 10.39.32.12 964a 0.002 0.001 0.0001 0.000038685
"""


def read(folder: Path, text: str, form: Any) -> list[tuple[Any, ...]]:
    (folder / "log").write_text(text)
    table = uc.read_clock_log(folder / "log", form, host="h").drop_columns("host").to_pandas()
    return [tuple(row) for row in table.itertuples(index=False)]


def moment(text: str) -> Any:
    return datetime.fromisoformat(f"{text}+00:00")


def test_chrony_bounds_the_time_since_the_line_before(tmp_path: Path) -> None:
    first, second = read(tmp_path, CHRONY, "chrony")
    assert first == (
        moment("2024-08-22T13:22:36"),
        moment("2024-08-22T13:23:40"),
        timedelta(microseconds=-1500),
        timedelta(microseconds=1500),
    )
    # What was not synchronised has no bound; bounds are rounded away from 0.
    assert second[:2] == (moment("2024-08-22T13:24:40"), moment("2024-08-22T13:25:40"))
    assert [bound.value for bound in second[2:]] == [-250_000_001, 250_000_001]


def test_ntpd_bounds_the_time_between_lines_of_its_system_peer(tmp_path: Path) -> None:
    (row,) = read(tmp_path, PEERS, "peerstats")
    assert row[:2] == (moment("2014-05-14T10:00:44.500"), moment("2014-05-14T10:01:48.500"))
    assert [bound.value for bound in row[2:]] == [-2_500_000, 2_600_000]


def test_clockbound_bounds_the_time_between_readings(tmp_path: Path) -> None:
    file = tmp_path / "bounds.csv"
    file.write_text("earliest,latest\n1700000000.25,1700000000.75\n1700000009.5,1700000010.5\n")
    (row,) = uc.read_clock_log(file, "clockbound", host="h").to_pylist()
    assert (row["from"].second, row["until"].second) == (20, 30)
    assert row["offset_lo"] == -timedelta(seconds=0.5)
    assert row["offset_hi"] == timedelta(seconds=0.5)


def test_a_log_is_a_table_of_clock_offsets(tmp_path: Path) -> None:
    (tmp_path / "tracking.log").write_text(CHRONY)
    bounds = uc.read_clock_log(tmp_path / "tracking.log", "chrony", host="h")
    stamps = [
        moment(f"2024-08-22T13:{time}") for time in ("22:35", "22:36", "23:39", "23:40", "25:39", "25:40")
    ]
    events = pa.table({"host": ["h"] * 6, "at": pa.array(stamps, pa.timestamp("ms", "UTC"))})
    rule = uc.clock_offset(bounds, epoch=("from", "until"))
    intervals = uc.to_intervals(events, time="at", uncertainty=rule, tick="1ms", missing="drop")
    half = [
        upper - lower
        for lower, upper in zip(*(intervals.column(n).to_pylist() for n in ("lower", "upper")), strict=True)
    ]
    assert intervals.column("at").to_pylist() == [stamps[1], stamps[2], stamps[4]]
    assert [width / timedelta(milliseconds=1) for width in half] == [3, 3, 501]


@pytest.mark.parametrize(
    ("form", "text", "said"),
    [
        ("chrony", "2024-08-22 13:22:36 203.0.113.15 2 -3.541", "row 1.*no line of chrony's tracking.log"),
        ("chrony", "yesterday", "row 1.*no line of chrony's"),
        ("peerstats", "56791 36044.5 10.39.32.12 964a -0.001 x 0.0005", "row 1.*no line of ntpd's peerstats"),
        ("peerstats", "56791 36044.5 10.39.32.12 9-4a 0 0 0", "no line of ntpd's"),
        ("peerstats", "1 2 a 964a 0 0 0\n1 1 a 964a 0 0 0", "row 2.*set back here"),
        ("peerstats", "9" * 40 + " 2 a 964a 0 0 0\n1 1 a 964a 0 0 0", "beyond what 64 bits hold"),
    ],
)  # fmt: skip
def test_lines_of_another_format(tmp_path: Path, form: Any, text: str, said: str) -> None:
    with pytest.raises(uc.TraceError, match=said):
        read(tmp_path, text, form)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("earliest\n1\n", "no such column"),
        ("earliest,latest\n2,1\n", "row 1.*after the latest"),
        ("earliest,latest\n2,\n", "row 1.*there is no time"),
    ],
)
def test_readings_that_are_none(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(uc.TraceError, match=said):
        uc.read_clock_log(tmp_path / "r.csv", "clockbound", host="h")


def test_options(tmp_path: Path) -> None:
    with pytest.raises(uc.OptionError, match="one of chrony, clockbound, peerstats"):
        read(tmp_path, "", "ptp")
    with pytest.raises(uc.OptionError, match="the name of the clock"):
        uc.read_clock_log(tmp_path / "log", "chrony", host=3)  # type: ignore[arg-type]
    assert read(tmp_path, "", "chrony") == []
