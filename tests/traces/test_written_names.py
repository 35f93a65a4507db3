"""Months in eleven languages, and zones with names: each is read, or refused, and none is another one."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cli.conftest import Invoke, invoke
from uncertain_cep.traces import exact, intervals_of
from uncertain_cep.traces.proposing import propose
from uncertain_cep.traces.time_formats import TimeFormat
from uncertain_cep.traces.written_names import _LANGUAGES, AMBIGUOUS_ZONES, MONTH_NAMES, ZONES

__all__ = ["invoke"]


def read(texts: list[str], form: str) -> list[dt.datetime]:
    made = intervals_of(
        pa.table({"t": texts}), time="t", uncertainty=exact(), tick="1s", format=TimeFormat((form,))
    )
    return [moment.replace(tzinfo=None) for moment in made["lower"].to_pylist()]


def test_no_name_is_of_two_months() -> None:
    for language in _LANGUAGES:
        names = language.split()
        assert [MONTH_NAMES[name] for name in names] == list(range(1, 13))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(MONTH_NAMES)),
            st.integers(1, 28),
            st.sampled_from([str.lower, str.capitalize, str.title]),
            st.sampled_from([None, *sorted(ZONES)]),
        ),
        min_size=1,
        max_size=9,
    )
)
def test_texts_of_months_and_zones(rows: list[tuple[str, int, object, str | None]]) -> None:
    zoned = all(zone is not None for *_, zone in rows)
    texts, expected = [], []
    for name, day, change, zone in rows:
        text = f"{day:02} {change(name)} 2024 10:30:00"  # type: ignore[operator]
        texts.append(f"{text} {zone}" if zoned else text)
        moment = dt.datetime(2024, MONTH_NAMES[name], day, 10, 30)
        expected.append(moment - dt.timedelta(minutes=ZONES[zone]) if zoned and zone else moment)
    assert read(texts, "%d %b %Y %H:%M:%S" + (" %z" if zoned else "")) == expected


@pytest.mark.parametrize("zone", AMBIGUOUS_ZONES)
def test_zones_of_several_offsets_are_refused(zone: str) -> None:
    assert zone not in ZONES
    with pytest.raises(uc.TraceError):
        read([f"05 May 2024 10:30:00 {zone}"], "%d %b %Y %H:%M:%S %z")


LOGS = {
    "05. März 2024 10:00:00 INFO Start": "2024-03-05 10:00:00",
    "05-ene-2024 10:00:00 INFO inicio": "2024-01-05 10:00:00",
    "05 août 2023 10:00:00 INFO debut": "2023-08-05 10:00:00",
    "5 de maio de 2024 10:00:00 INFO comeco": "2024-05-05 10:00:00",
    "05 października 2023 10:00:00 INFO x": "2023-10-05 10:00:00",
    "05 мая 2024 10:00:00 INFO x": "2024-05-05 10:00:00",
    "05-янв-2024 10:00:00 INFO x": "2024-01-05 10:00:00",
    "05 Марта 2024 10:00:00 INFO x": "2024-03-05 10:00:00",
    "05 Ağustos 2023 10:00:00 INFO x": "2023-08-05 10:00:00",
    "5 janv. 2024 10:00:00 INFO x": "2024-01-05 10:00:00",
    "2024年5月5日 10:00:00 INFO x": "2024-05-05 10:00:00",
    "2024년 5월 5일 10:00:00 INFO x": "2024-05-05 10:00:00",
    "05.05.2024 - 10:00:00 INFO x": "2024-05-05 10:00:00",
    "2024-05-05 10:00:00 [UTC] INFO x": "2024-05-05 10:00:00",
    "2024-05-31 12:00:00.000 CEST [12] LOG:  x": "2024-05-31 10:00:00",
    "31 мая 2024 10:00:00 INFO Запуск": "2024-05-31 10:00:00",
    "[31/May/2024 12:00:00 JST] x": "2024-05-31 03:00:00",
    "[2024.05.31-10.00.00:000][  0]LogInit: x": "2024-05-31 10:00:00",
}


@pytest.mark.parametrize("line", LOGS)
def test_logs_with_names_get_right_times(line: str, tmp_path: Path, invoke: Invoke) -> None:
    log = tmp_path / "app.log"
    log.write_text("".join(line.replace(":00", f":{second:02}", 1) + "\n" for second in (0, 0, 0)), "utf-8")
    changed = dt.datetime(2024, 6, 1, tzinfo=dt.UTC).timestamp()
    os.utime(log, (changed, changed))
    result = invoke("init", log, "-o", tmp_path)
    assert result.exit_code == 0, result.stderr
    assert str(uc.read_traces(log, tmp_path / "schema.toml")["lower"][0])[:19] == LOGS[line]


@pytest.mark.parametrize(
    "line",
    [
        "05 березня 2024 10:00:00 INFO x",
        "2024. 5. 31. 10:00:00 INFO x",
        "05-kesäkuu-2024 10:00:00 x",
        "2024-05-31 12:00:00.000 EST [12] LOG:  x",
    ],
)
def test_times_that_cannot_be_told_get_no_schema(line: str, tmp_path: Path, invoke: Invoke) -> None:
    log = tmp_path / "app.log"
    log.write_text(f"{line}\n" * 3, "utf-8")
    result = invoke("init", log, "-o", tmp_path)
    assert result.exit_code == 2
    assert ("its stamps are in EST, a zone of several places" in result.stderr) == ("EST" in line)
    assert not (tmp_path / "schema.toml").exists()


NOT_READ = {
    "2024-05-31 10:00:00 CST INFO x": "CST",
    "2024-05-31 10:00:00,123 IST INFO x": "IST",
    "[31/May/2024 10:00:00] [BST] x": "BST",
    "2024-05-31 10:00:00 (CEST) INFO x": "CEST",
    "2024-05-31 10:00:00 [+0200] INFO x": r"\+0200",
    "2024-05-31 10:00:00 UTC+02:00 INFO x": r"\+02:00",
    "2024-05-31 10:00:00 GMT-7 INFO x": "GMT-7",
    "[31-May-2024 10:00:00 Europe/Berlin] PHP Warning:  x": "Europe/Berlin",
}


@pytest.mark.parametrize("line", NOT_READ)
def test_zones_that_are_not_read_are_named(line: str, tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_text("".join(line.replace(":00", f":{second:02}", 1) + "\n" for second in range(4)), "utf-8")
    with pytest.raises(uc.OptionError, match=f"its stamps are in {NOT_READ[line]}, "):
        propose([log])


@pytest.mark.parametrize("zone", AMBIGUOUS_ZONES)
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_zones_that_are_not_read_are_named_in_columns(zone: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{kind}"
    stamps = [f"2024-05-31 10:00:{second:02} {zone}" for second in range(4)]
    rows = [json.dumps({"at": stamp, "x": 1}) for stamp in stamps]
    path.write_text(
        "\n".join(rows if kind == "jsonl" else ["at,x", *(f"{stamp},1" for stamp in stamps)]), "utf-8"
    )
    with pytest.raises(uc.OptionError, match=f"at is in {zone}") as raised:
        propose([path])
    # The cure works.
    form = f"%Y-%m-%d %H:%M:%S {zone}"
    assert form in str(raised.value)
    schema = tmp_path / "schema.toml"
    schema.write_text(
        f'[[events]]\ntype = "A"\ntime = "at"\ntime_format = "{form}"\ntime_zone = "Asia/Shanghai"\n'
        'uncertainty = { kind = "exact" }\nattributes = ["x"]\n',
        "utf-8",
    )
    assert str(uc.read_traces(path, schema)["lower"][0])[:19] == "2024-05-31 02:00:00"
