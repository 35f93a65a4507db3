"""A run of rules tells what a table of its files tells, each alert once, whatever ends it meanwhile."""

from __future__ import annotations

import json
import os
import pickle
import random
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.conftest import ROOT
from tests.rule_sets.test_rules_together import comparable
from uncertain_cep.alerting import rule_runs
from uncertain_cep.alerting.alert_lines import alert_keys, alert_lines
from uncertain_cep.alerting.rule_runs import RuleRun, RunOptions
from uncertain_cep.cli import main
from uncertain_cep.cli.rule_run import alone_in
from uncertain_cep.rule_sets.running_rules import RunningRule

RULES: Final = {
    "soon.sase": "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 6",
    "never.sase": "PATTERN SEQ(A a, !B n) WITHIN 4",
    "often.toml": "[[rule]]\nname = 'often'\nquery = 'PATTERN SEQ(B b) WITHIN 1 RETURN b.k AS k'\n"
    "suppress = '9 BY k'\n",
}  # fmt: skip


def put(folder: Path, tables: list[pa.Table], rules: dict[str, str]) -> None:
    """Write files of events, in the order in which they are to be read, and rules."""
    (folder / "in").mkdir()
    (folder / "rules").mkdir()
    for number, table in enumerate(tables):
        put_file(folder, number, table)
    for name, text in rules.items():
        (folder / "rules" / name).write_text(text)


def put_file(folder: Path, number: int, table: pa.Table) -> None:
    file = folder / "in" / f"{number:03}.csv"
    pa.csv.write_csv(table, folder / "aside")
    os.utime(folder / "aside", ns=(number * 10**9, number * 10**9))
    (folder / "aside").rename(file)


def options_of(folder: Path, **changes: Any) -> RunOptions:
    fields: dict[str, Any] = {
        "source": folder / "in", "schema": None, "tick": None, "largest_interval": 3,
        "checkpoint": folder / "state", "out": str(folder / "out"), "batch_limit": 1,
    }  # fmt: skip
    return RunOptions(**fields | changes)


def written(folder: Path) -> pa.Table:
    """Return the alerts of a folder, whatever batches they are in."""
    files = sorted(str(file) for file in (folder / "out").rglob("*.parquet"))
    return pa.concat_tables([pa.parquet.read_table(file) for file in files], promote_options="default")


@st.composite
def tables(draw: st.DrawFn) -> list[pa.Table]:
    """Draw files of events none of which is late."""
    begin, id_, parts, keys = 0, 0, [], st.sampled_from("xy")
    for _ in range(draw(st.integers(1, 5))):
        rows: list[dict[str, Any]] = []
        for _ in range(draw(st.integers(1, 6))):
            row = event(draw(st.sampled_from("AB")), id_, begin + draw(st.integers(0, 5)), draw(keys))
            rows.append(row | {"upper": row["lower"] + draw(st.integers(0, 3))})
            id_ += 1
        begin = max(row["lower"] for row in rows)
        parts.append(pa.Table.from_pylist(rows))
    return parts


class Killed(BaseException):
    """The end of a process, for tests."""


@FEWER
@given(
    parts=tables(),
    kills=st.lists(st.integers(1, 15), max_size=4),
    limit=st.sampled_from([None, 1, 2]),
    seconds=st.sampled_from([0.0, 0.01, 1e9]),
    data=st.data(),
)
def test_a_run_that_is_killed_anywhere_tells_all_alerts_once(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[pa.Table],
    kills: list[int],
    limit: int | None,
    seconds: float,
    data: st.DataObject,
) -> None:
    """Files that come between a kill and the next run, and kills while it closes, included."""
    folder = tmp_path_factory.mktemp("run")
    there = data.draw(st.integers(1, len(parts)))
    put(folder, parts[:there], RULES)
    for steps in kills:
        closes = there == len(parts) and data.draw(st.booleans())
        with pytest.MonkeyPatch.context() as patch:
            killing_after(steps, patch)
            patch.setattr(rule_runs, "_STATE_SECONDS", seconds)
            with suppress(Killed):
                options = options_of(folder, batch_limit=limit)
                RuleRun([str(folder / "rules")], options).run(None, close=closes)
                if closes:
                    break
        if is_closed(folder):
            break
        if there < len(parts):
            put_file(folder, there, parts[there])
            there += 1
    else:
        for number in range(there, len(parts)):
            put_file(folder, number, parts[number])
        RuleRun([str(folder / "rules")], options_of(folder, batch_limit=limit)).run(None, close=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", uc.UncertainCepWarning)
        expected = uc.match(pa.concat_tables(parts), uc.rules(str(folder / "rules")))
    if not expected.num_rows:
        assert not list((folder / "out").rglob("*.parquet"))
        return
    assert comparable(written(folder).select(expected.column_names)) == comparable(expected)
    with pytest.raises(uc.OptionError, match="this stream was closed"):
        RuleRun([str(folder / "rules")], options_of(folder))


def is_closed(folder: Path) -> bool:
    place = folder / "state" / "state.pickle"
    return place.exists() and pickle.loads(place.read_bytes()).is_closed


def killing_after(steps: int, patch: pytest.MonkeyPatch) -> None:
    """End the process before, or behind, one of its writes."""
    left = [steps]

    def counting(function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            result = function(*arguments, **named)
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            return result

        return call

    for name in ("_write", "_next_files"):
        patch.setattr(RuleRun, name, counting(getattr(RuleRun, name)))
    patch.setattr("uncertain_cep.alerting.sinks.Folder.write", counting(sinks_write()))


def sinks_write() -> Any:
    from uncertain_cep.alerting.sinks import Folder

    return Folder.write


def event(kind: str, id: int, lower: int, k: str = "x") -> dict[str, Any]:
    return {"type": kind, "id": id, "lower": lower, "upper": lower, "k": k}


def test_rules_that_change_on_disk_hold_from_a_tick_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = [event("A", 1, 0), event("B", 2, 1), event("A", 3, 20)]
    put(tmp_path, [pa.Table.from_pylist(first)], {"r.sase": RULES["soon.sase"]})
    run = RuleRun([str(tmp_path / "rules")], options_of(tmp_path, reload=True))
    run.run(None)
    (tmp_path / "rules" / "r.sase").write_text("PATTERN SEQ(A a, B")
    put_file(tmp_path, 1, pa.Table.from_pylist([event("B", 4, 22), event("A", 5, 22)]))
    run.run(None)
    assert "the rules are not reloaded, and those before go on: " in caplog.text
    (tmp_path / "rules" / "r.sase").write_text("PATTERN SEQ(A a, B b) WITHIN 90")
    put_file(tmp_path, 2, pa.Table.from_pylist([event("B", 6, 28)]))
    run.run(None, close=True)
    rows = written(tmp_path).select(["a", "b"]).to_pylist()
    assert sorted((row["a"], row["b"]) for row in rows) == [(1, 2), (1, 6), (3, 4), (3, 6), (5, 6)]


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_query_file_of_rules_is_reloaded(tmp_path: Path, is_folder: bool) -> None:
    """One in a folder of rules, and one beside a file of rules."""
    inside = "q/r.sase" if is_folder else "r.sase"
    rule = f"[[rule]]\nname = 'r'\nquery_file = '{inside}'\n"
    put(tmp_path, [pa.Table.from_pylist([event("A", 1, 0)])], {"r.toml": rule})
    query = tmp_path / "rules" / inside
    query.parent.mkdir(exist_ok=True)
    query.write_text(RULES["soon.sase"])
    place = tmp_path / "rules" if is_folder else tmp_path / "rules" / "r.toml"
    run = RuleRun([str(place)], options_of(tmp_path, reload=True))
    run.run(None)
    query.write_text(RULES["never.sase"])
    put_file(tmp_path, 1, pa.Table.from_pylist([event("C", 2, 1)]))
    run.run(None)
    assert run._rules[0].query.text == RULES["never.sase"]


def test_all_rules_that_cannot_be_asked_are_named(tmp_path: Path) -> None:
    faulty = {f"{name}.sase": f"PATTERN SEQ(A a) WHERE a.no{name} = 1 WITHIN 1" for name in "xy"}
    put(tmp_path, [pa.Table.from_pylist([event("A", 1, 0)])], faulty)
    with pytest.raises(uc.QueryError, match=r"(?s)rule 'x': unknown.*rule 'y': unknown"):
        RuleRun([str(tmp_path / "rules")], options_of(tmp_path)).run(None)


def test_other_rules_need_reload(tmp_path: Path) -> None:
    put(tmp_path, [pa.Table.from_pylist([event("A", 1, 0)])], {"r.sase": RULES["soon.sase"]})
    RuleRun([str(tmp_path / "rules")], options_of(tmp_path)).run(None)
    (tmp_path / "rules" / "s.sase").write_text(RULES["never.sase"])
    with pytest.raises(uc.OptionError, match="the rules have changed since: --reload asks the new ones"):
        RuleRun([str(tmp_path / "rules")], options_of(tmp_path))
    RuleRun([str(tmp_path / "rules")], options_of(tmp_path, reload=True)).run(None, close=True)
    assert written(tmp_path).column("rule").to_pylist() == ["s"]


def test_a_file_that_cannot_be_read_can_be_taken_away(tmp_path: Path) -> None:
    """And one whose events are refused; one of a batch that was begun has to stay."""
    table = pa.Table.from_pylist([event("A", 1, 0), event("B", 2, 1)])
    put(tmp_path, [table], {"r.sase": RULES["soon.sase"]})
    options, rules = options_of(tmp_path, batch_limit=None), [str(tmp_path / "rules")]
    again = "type,id,lower,upper,k\nA,1,9,9,x\nA,1,9,9,y\n"
    faults = {"type,id\nA,1\n": "there is no such column", again: "drop goes on"}
    for text, reason in faults.items():
        (tmp_path / "in" / "bad.csv").write_text(text)
        with pytest.raises(uc.TraceError, match=f"bad.csv.*{reason}"):
            RuleRun(rules, options).run(None)
        (tmp_path / "in" / "bad.csv").unlink()
        RuleRun(rules, options).run(None)
    put_file(tmp_path, 1, pa.Table.from_pylist([event("B", 3, 2)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RuleRun, "_push", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            RuleRun(rules, options).run(None)
    (tmp_path / "in" / "001.csv").rename(tmp_path / "001.csv")
    with pytest.raises(uc.OptionError, match=r"001.csv: a run has begun a batch with this file.*put it back"):
        RuleRun(rules, options).run(None)
    (tmp_path / "001.csv").rename(tmp_path / "in" / "001.csv")
    RuleRun(rules, options).run(None, close=True)
    assert sorted(written(tmp_path).column("b").to_pylist()) == [2, 3]


def test_a_stream_keeps_to_its_options(tmp_path: Path) -> None:
    put(tmp_path, [pa.Table.from_pylist([event("A", 1, 0)])], {"r.sase": RULES["soon.sase"]})
    rules = [str(tmp_path / "rules")]
    RuleRun(rules, options_of(tmp_path)).run(None)
    for changes in ({"largest_interval": 4}, {"tick": "1s"}):
        with pytest.raises(uc.OptionError, match="begun with another --schema, --tick or --largest-interval"):
            RuleRun(rules, options_of(tmp_path, **changes))
    for name in ("batches.json", "state.pickle"):
        (tmp_path / "state" / name).write_text("{")
        with pytest.raises(uc.OptionError, match=f"{name} is broken"):
            RuleRun(rules, options_of(tmp_path)).run(None)


def test_counters_of_rules_begin_at_zero(tmp_path: Path) -> None:
    """A counter that falls, as behind a kill, would be one that began anew, and all of it an increase."""
    put(tmp_path, [pa.Table.from_pylist([event("A", 1, 0), event("B", 2, 1)])], RULES)
    options = options_of(tmp_path, largest_interval=0)
    RuleRun([str(tmp_path / "rules")], options).run(None)
    put_file(tmp_path, 1, pa.Table.from_pylist([event("B", 3, 2), event("B", 4, 3), event("A", 5, 90)]))
    run = RuleRun([str(tmp_path / "rules")], options)
    run.run(None)
    assert run.metrics.rules["soon"]["matches"] == 2
    assert run.metrics.rules["often"]["suppressed"] == 2
    assert run.metrics.whole["events"] == 3


def test_two_processes_do_not_share_a_checkpoint(tmp_path: Path) -> None:
    arguments = [
        "stream", str(tmp_path / "rules"), "--source", str(tmp_path / "in"), "--largest-interval", "0",
        "--checkpoint", str(tmp_path / "state"), "-o", "-", "--once",
    ]  # fmt: skip
    put(tmp_path, [], {"r.sase": RULES["soon.sase"]})
    with alone_in(tmp_path / "state"):
        result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "state: another process goes on from it: end that one first" in result.output
    assert CliRunner().invoke(main, arguments).exit_code == 0


def messages(caplog: pytest.LogCaptureFixture, level: str) -> list[str]:
    """Return the messages of a level but for deliveries: those of a test before may be tried again."""
    logged = [record for record in caplog.records if record.levelname == level]
    return [record.getMessage() for record in logged if record.module != "buffered_delivery"]


def test_a_run_that_ends_tells_what_is_certain(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The second payment may have a cancellation before it that is to come: one at 21 to 23 does so."""
    rules = {"paid.sase": "PATTERN SEQ(A a, !C n, B b) WITHIN 1000"}
    events = [event("A", 1, 0), event("B", 2, 5), event("A", 3, 20), event("B", 4, 23)]
    put(tmp_path, [pa.Table.from_pylist(events)], rules)
    options = options_of(tmp_path)
    RuleRun([str(tmp_path / "rules")], options).run(None)
    assert written(tmp_path).select(["a", "b"]).to_pylist() == [{"a": 1, "b": 2}]
    (message,) = messages(caplog, "WARNING")
    assert message == (
        "2 matches are undecided, as an event from 20 on can spoil them: they wait in the checkpoint"
    )
    put_file(tmp_path, 1, pa.Table.from_pylist([event("C", 5, 21) | {"upper": 23}]))
    RuleRun([str(tmp_path / "rules")], options).run(None, close=True)
    confidences = {(row["a"], row["b"]): row["confidence"] for row in written(tmp_path).to_pylist()}
    assert confidences == {(1, 2): 1.0, (1, 4): pytest.approx(1 / 3), (3, 4): pytest.approx(1 / 3)}


def test_an_alert_is_told_when_it_is_certain(tmp_path: Path) -> None:
    rules = {"paid.sase": "PATTERN SEQ(A a, !C n, B b) WITHIN 4"}
    rows = [[event("A", 10 * n, 8 * n), event("B", 10 * n + 1, 8 * n + 1)] for n in range(3)]
    put(tmp_path, [pa.Table.from_pylist(part) for part in rows], rules)
    batches = {}
    for when in ("final", "certain"):
        options = options_of(tmp_path, when=when, largest_interval=0, out=str(tmp_path / when))
        options = replace(options, checkpoint=tmp_path / f"state of {when}")
        RuleRun([str(tmp_path / "rules")], options).run(None, close=True)
        batches[when] = sorted(place.name for place in (tmp_path / when).iterdir())
    assert batches == {
        "final": ["batch=1", "batch=2", "batch=3"],
        "certain": ["batch=0", "batch=1", "batch=2"],
    }


def test_what_fails_is_logged_and_the_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule that fails, and an event whose id is in use; a copy is dropped."""
    last, tell = event("B", 2, 1), RunningRule.tell

    def told(one: RunningRule, matches: pa.RecordBatch, safe: int) -> pa.Table | None:
        if one.rule.name == "often":
            raise uc.OptionError("it cannot be")
        return tell(one, matches, safe)

    monkeypatch.setattr(RunningRule, "tell", told)
    parts = [[event("A", 1, 0), last], [last, last | {"upper": 2}, event("B", 5, 2)]]
    put(tmp_path, [pa.Table.from_pylist(rows) for rows in parts], RULES)
    options = options_of(tmp_path, duplicates="drop")
    run = RuleRun([str(tmp_path / "rules")], options)
    run.run(None)
    errors = messages(caplog, "ERROR")
    assert len(errors) == 2
    caplog.clear()
    again = RuleRun([str(tmp_path / "rules")], options)
    assert "rule 'often' has failed" in "".join(messages(caplog, "ERROR"))
    assert again.metrics.rules["often"]["failed"] == 1
    again.run(None, close=True)
    assert (
        "rule 'often' has failed, and tells nothing until it is changed; the others go on: it can"
        in errors[0]
    )
    assert "an earlier event has this id" in errors[1]
    assert run.metrics.whole["duplicates"] == 2
    assert {name: figures["failed"] for name, figures in run.metrics.rules.items()} == {
        "never": 0, "often": 1, "soon": 0
    }  # fmt: skip
    assert sorted(written(tmp_path).column("b").to_pylist()) == [2, 5]


def test_keys_tell_alerts_apart_and_stay() -> None:
    alerts = pa.table(
        {"rule": ["r", "r", "s"], "a": [1, 2, 1], "range_lower": [0, 0, 0], "confidence": [0.5, 0.5, 0.5]}
    )
    keys = alert_keys(alerts)
    assert len(set(keys)) == 3
    other = alerts.set_column(3, "confidence", pa.array([0.7] * 3)).append_column(
        "x", pa.nulls(3, pa.int64())
    )
    assert alert_keys(other) == keys
    assert json.loads(alert_lines(other)[0]) == {"rule": "r", "a": 1, "range_lower": 0, "confidence": 0.7}


def test_alerts_of_any_text_are_a_line_each() -> None:
    """JSON leaves some characters as they are that Python takes for ends of lines."""
    text = "".join(map(chr, [*range(1, 0x100), 0x2028, 0x2029, 0x1F600]))
    lines = alert_lines(pa.table({"rule": ["r", text], "k": [text, "\x85"]}))
    assert [json.loads(line) for line in lines] == [{"rule": "r", "k": text}, {"rule": text, "k": "\x85"}]
    assert all("\n" not in line and "\r" not in line for line in lines)


def test_the_command_writes_lines(tmp_path: Path) -> None:
    put(tmp_path, [pa.Table.from_pylist([event("A", 1, 0), event("B", 2, 1)])], RULES)
    arguments = [
        "stream", str(tmp_path / "rules"), "--source", str(tmp_path / "in"), "--largest-interval", "0",
        "--checkpoint", str(tmp_path / "state"), "-o", "-", "--close",
    ]  # fmt: skip
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert sorted(line["rule"] for line in lines) == ["often", "soon"]
    assert "batch 0: 2 events, 1 alert, 0 late" in result.stderr
    quiet = [str(tmp_path / "other") if word == str(tmp_path / "state") else word for word in arguments]
    assert CliRunner().invoke(main, [*quiet, "-q"]).stderr == ""


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--slice-length", "4"], "--slice-length is for one query on Spark"),
        (["--param", "x=1"], "--param is for one query"),
        (["--source", "kafka://here:1/topic"], "rules read the files of a folder"),
        (["-o", "nosuch:place"], "no sink is called nosuch: use a folder, -, or http, https, kafka, python"),
        (["-o", "kafka://here"], "write kafka://HOST:PORT/TOPIC"),
        (["-o", "python:json:nosuch"], "write python:module:function"),
        (["-o", "http://"], "a webhook is http://HOST:PORT/PATH"),
        (["-o", "HTTP://here:x/"], "a webhook is http://HOST:PORT/PATH"),
        (["-o", "http://here/ä"], "in ASCII"),
        (["-o", "http://[::1/"], "a webhook is http://HOST:PORT/PATH"),
        (["--metrics", "here"], "--metrics here: write a port, or HOST:PORT"),
    ],
)
def test_wrong_options(more: list[str], said: str, tmp_path: Path) -> None:
    put(tmp_path, [pa.Table.from_pylist([event("A", 1, 0)])], RULES)
    arguments = [
        "stream", str(tmp_path / "rules"), "--source", str(tmp_path / "in"), "--largest-interval", "0",
        "--checkpoint", str(tmp_path / "state"), "-o", "-", "--once",
    ]  # fmt: skip
    result = CliRunner().invoke(main, [*arguments, *more])
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.parametrize("option", ["--reload", "--when certain", "-o -", "-o http://here/"])
def test_options_of_rules_are_refused_of_one_query(option: str, tmp_path: Path) -> None:
    columns = '{ kind = "columns", lower = "from", upper = "until" }'
    schema = f'[[events]]\ntype_column = "type"\nid = "id"\nuncertainty = {columns}\n'
    (tmp_path / "schema.toml").write_text(schema)
    arguments = [
        "--schema",
        str(tmp_path / "schema.toml"),
        "--source",
        str(tmp_path),
        "--largest-interval",
        "1",
        "--checkpoint",
        "s",
        "-o",
        "out",
        *option.split(),
    ]
    result = CliRunner().invoke(main, ["stream", "PATTERN SEQ(A a, B b) WITHIN 5", *arguments])
    assert (result.exit_code, f"{option.removesuffix(' certain')} is for rules" in result.output) == (2, True)


@pytest.mark.thorough
def test_processes_that_are_killed(tmp_path: Path) -> None:
    """25 kills, each at a moment of its own, while files go on coming."""
    draw = random.Random(5)
    parts = []
    for number in range(60):
        rows = [
            event(draw.choice("AB"), 1000 * number + i, 5 * number + i // 40, draw.choice("xy"))
            for i in range(200)
        ]
        parts.append(pa.Table.from_pylist(rows))
    put(tmp_path, [], RULES)
    places = {"--source": "in", "--checkpoint": "state", "-o": "out"}
    command = [sys.executable, "-m", "uncertain_cep", "stream", str(tmp_path / "rules")]
    command += [word for option, name in places.items() for word in (option, str(tmp_path / name))]
    command += ["--largest-interval", "3", "--trigger", "10ms", "--batch", "1"]
    for kill in range(25):
        for number in range(2 * kill, 2 * kill + 2):
            put_file(tmp_path, number, parts[number])
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
            time.sleep(draw.uniform(0.5, 4.0))
            process.kill()
    for number in range(50, 60):
        put_file(tmp_path, number, parts[number])
    subprocess.run([*command, "--close"], cwd=ROOT, check=True)
    expected = uc.match(pa.concat_tables(parts), uc.rules(str(tmp_path / "rules")))
    assert comparable(written(tmp_path).select(expected.column_names)) == comparable(expected)
