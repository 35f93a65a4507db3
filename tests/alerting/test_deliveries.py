"""Alerts reach a server that fails and hangs, at least once and in order, and do not hold up the stream."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

import pyarrow as pa
import pyarrow.parquet
import pytest

import uncertain_cep as uc
from tests.alerting.test_rule_runs import RULES, event, options_of, put
from tests.conftest import ROOT
from tests.project.test_readme import DOCS, blocks
from tests.streaming.batches import Batches
from uncertain_cep.alerting import buffered_delivery, run_metrics, sinks, webhooks
from uncertain_cep.alerting.alert_lines import alert_keys
from uncertain_cep.alerting.buffered_delivery import BufferedDelivery, UndeliverableError
from uncertain_cep.alerting.rule_runs import RuleRun
from uncertain_cep.alerting.run_metrics import RunMetrics, served, text_of_metrics
from uncertain_cep.alerting.sinks import sink_of
from uncertain_cep.alerting.telemetry import observe_run
from uncertain_cep.alerting.webhooks import Webhook
from uncertain_cep.cli.stream_runs import _measure
from uncertain_cep.streaming.stream_layout import StreamOptions


def alerts(*numbers: int) -> pa.Table:
    return pa.table({"rule": ["r"] * len(numbers), "a": pa.array(numbers, pa.int64())})


@contextmanager
def server(answers: list[Any]) -> Iterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """Serve with one answer after the other, the last one for ever; yield the URL, and what came.

    An answer is a status, one with seconds after which to try again, or a number of seconds (a float) for
    which nothing is answered.
    """
    requests: list[tuple[str, dict[str, Any]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            requests.append((self.headers["Idempotency-Key"], json.loads(body)))
            if isinstance(answer, float):
                time.sleep(answer)
                return
            status, *after = answer if isinstance(answer, tuple) else (answer,)
            self.send_response(status)
            for seconds in after:
                self.send_header("Retry-After", seconds)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}/alerts?x=1", requests
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffered_delivery, "_FIRST_PAUSE", 0.0005)


def test_a_server_that_fails_and_hangs_gets_all_alerts(tmp_path: Path) -> None:
    with server([500, 0.4, 429, 200]) as (url, requests):
        sink = BufferedDelivery(Webhook(url, 0.1), tmp_path / "lost")
        sink.write(0, alerts(1, 2))
        sink.write(1, alerts(3))
        sink.close()
    assert [body["a"] for _, body in requests] == [1, 1, 1, 1, 2, 3]
    keys = [key for key, _ in requests]
    assert len(set(keys)) == 3
    assert len(set(keys[:4])) == 1
    assert (sink.delivered, sink.lost_count, sink.pending) == (3, 0, [])


def test_tries_are_bounded_and_what_is_lost_is_kept(tmp_path: Path) -> None:
    with server([503]) as (url, requests):
        sink = BufferedDelivery(Webhook(url), tmp_path / "lost")
        sink.write(0, alerts(1, 2))
        sink.close()
    # Once it is known to be down, each is tried once.
    assert [body["a"] for _, body in requests] == [1] * 10 + [2]
    assert [json.loads(line)["a"] for line in (tmp_path / "lost").read_text().splitlines()] == [1, 2]
    assert (sink.delivered, sink.lost_count) == (0, 2)


@pytest.mark.parametrize("status", [400, 404, 302])
def test_a_refusal_is_not_tried_again(status: int, tmp_path: Path) -> None:
    with server([status, 200]) as (url, requests):
        sink = BufferedDelivery(Webhook(url), tmp_path / "lost")
        sink.write(0, alerts(1, 2))
        sink.close()
    assert [body["a"] for _, body in requests] == [1, 2]
    assert (sink.delivered, sink.lost_count) == (1, 1)


def test_a_server_that_is_back_is_tried_ten_times_again(tmp_path: Path) -> None:
    with server([503] * 10 + [200] + [503] * 9 + [200]) as (url, requests):
        sink = BufferedDelivery(Webhook(url), tmp_path / "lost")
        sink.write(0, alerts(1, 2, 3))
        sink.close()
    assert [body["a"] for _, body in requests] == [1] * 10 + [2] + [3] * 10
    assert (sink.delivered, sink.lost_count) == (2, 1)


def test_a_server_says_when_to_try_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a minute at most; dates are not understood."""
    pauses: list[float] = []
    monkeypatch.setattr(buffered_delivery, "sleep", pauses.append)
    with server([(429, "3"), (503, "7200"), (503, "Wed, 21 Oct 2015 07:28:00 GMT"), 200]) as (url, requests):
        sink = BufferedDelivery(Webhook(url), tmp_path / "lost")
        sink.write(0, alerts(1))
        sink.close()
    assert len(requests) == 4
    assert pauses == [3.0, 60.0, pytest.approx(0.002)]
    assert sink.delivered == 1


def test_a_password_in_a_url_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    answer = nullcontext(SimpleNamespace(status=204, getheader=lambda *_: ""))
    connection = SimpleNamespace(
        request=lambda *arguments: sent.append(arguments), getresponse=lambda: answer, close=lambda: None
    )

    def connect(*place: Any, timeout: float) -> Any:
        sent.append(place)
        return connection

    monkeypatch.setattr(webhooks, "HTTPConnection", connect)
    Webhook("http://me:a%20b@here:81/x%20y")(alerts(1), 0)
    assert sent[0] == ("here", 81)
    assert sent[1][:2] == ("POST", "/x%20y")
    assert sent[1][3]["Authorization"] == "Basic bWU6YSBi"


def test_what_a_function_raises_does_not_end_deliveries(tmp_path: Path) -> None:
    ends: list[BaseException] = [SystemExit(3), KeyboardInterrupt(), ValueError("two\nlines")]

    def deliver(part: pa.Table, number: int) -> None:
        if ends:
            raise ends.pop()

    sink = BufferedDelivery(deliver, tmp_path / "lost")
    sink.write(0, alerts(1))
    sink.close()
    assert (sink.delivered, sink.lost_count) == (1, 0)


def test_an_alert_that_cannot_be_kept_ends_the_stream(tmp_path: Path) -> None:
    """It stays in the buffer, and so in the checkpoint."""

    def deliver(part: pa.Table, number: int) -> None:
        raise UndeliverableError("no")

    sink = BufferedDelivery(deliver, tmp_path, limit=1)
    sink.write(0, alerts(1))
    said = "that were not delivered: Is a directory"
    with pytest.raises(uc.RuntimeEnvironmentError, match=said):
        sink.write(1, alerts(2))
    with pytest.raises(uc.RuntimeEnvironmentError, match=said):
        sink.close()
    assert [number for number, _ in sink.pending] == [0]


def test_nobody_at_the_address(tmp_path: Path) -> None:
    with server([200]) as (url, _):
        pass
    with pytest.raises(Exception, match=r"127.0.0.1: .*refused"):
        Webhook(url)(alerts(1), 0)


def test_the_stream_waits_only_for_a_full_buffer(tmp_path: Path) -> None:
    gate = threading.Event()
    batches: list[tuple[int, int]] = []

    def deliver(part: pa.Table, number: int) -> None:
        gate.wait()
        batches.append((number, part.num_rows))

    sink = BufferedDelivery(deliver, tmp_path / "lost", limit=10)
    sink.write(0, alerts(*range(6)))
    sink.write(1, alerts(*range(4)))
    assert [(number, part.num_rows) for number, part in sink.pending] == [(0, 6), (1, 4)]
    thread = threading.Thread(target=sink.write, args=(2, alerts(9)))
    thread.start()
    thread.join(0.1)
    assert thread.is_alive()
    gate.set()
    thread.join()
    # More than the buffer holds goes alone.
    sink.write(3, alerts(*range(20)))
    sink.close()
    assert batches == [(0, 6), (1, 4), (2, 1), (3, 20)]


def test_a_function_that_refuses_loses_one_batch(tmp_path: Path) -> None:
    def deliver(part: pa.Table, number: int) -> None:
        if number == 0:
            raise UndeliverableError("no")

    sink = BufferedDelivery(deliver, tmp_path / "lost")
    sink.write(0, alerts(1))
    sink.write(1, alerts(2))
    sink.close()
    assert (sink.delivered, sink.lost_count) == (1, 1)


def test_alerts_that_wait_are_in_the_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is killed while its server hangs delivers them when it goes on."""
    table = pa.Table.from_pylist([event("A", 1, 0), event("B", 2, 1)])
    put(tmp_path, [table], {"soon.sase": RULES["soon.sase"]})
    with server([5.0, 200]) as (url, requests):
        run = RuleRun([str(tmp_path / "rules")], options_of(tmp_path, out=url))
        monkeypatch.setattr(BufferedDelivery, "close", lambda one: None)
        run.run(None)
        monkeypatch.undo()
        monkeypatch.setattr(buffered_delivery, "_FIRST_PAUSE", 0.0005)
        RuleRun([str(tmp_path / "rules")], options_of(tmp_path, out=url)).run(None)
        assert len(requests) >= 2
        assert len({key for key, _ in requests}) == 1


def test_sinks_of_others_come_by_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of the page is such a plug-in."""
    (example,) = blocks("python", DOCS["all-day.md"])
    names: dict[str, Any] = {}
    exec(example, names)
    point = EntryPoint("append", "my_package:append", sinks.GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda one: names[one.name])
    monkeypatch.setattr(sinks, "entry_points", lambda group, name="append": [point] * (name == "append"))
    sink = sink_of(f"append:{tmp_path / 'alerts'}", tmp_path)
    sink.write(7, alerts(1, 2))
    sink.close()
    assert (tmp_path / "alerts").read_text() == "7 r r\n"
    names["append"] = lambda place: None
    with pytest.raises(uc.OptionError, match=r"append:x: None is no function of alerts"):
        sink_of("append:x", tmp_path)
    del names["append"]
    with pytest.raises(uc.OptionError, match="append:x: the plug-in my_package:append fails: KeyError"):
        sink_of("append:x", tmp_path)


def test_the_dashboard_shows_figures_that_there_are() -> None:
    text = (ROOT / "docs" / "grafana.json").read_text()
    shown = {name.removesuffix("_total") for name in re.findall(r"uncertain_cep_([a-z_]+)", text)}
    assert {"events", "lag_seconds", "matches", "lost"} <= shown <= set(run_metrics.FIGURES)
    page = DOCS["all-day.md"]
    assert all(f"`{name}`" in page or f"uncertain_cep_{name}" in page for name in run_metrics.FIGURES)


DELIVERED: list[int] = []


def collect(part: pa.Table, number: int) -> None:
    DELIVERED.append(part.num_rows)


def test_a_function_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json, "collect", collect, raising=False)
    sink = sink_of("python:json:collect", tmp_path)
    sink.write(0, alerts(1, 2))
    sink.close()
    assert DELIVERED == [2]


def test_a_function_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for the installed command, which does not look there by itself; the module may be broken."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(ROOT))])
    (tmp_path / "my_own_sinks.py").write_text("def put(alerts, number):\n    print(alerts.num_rows)\n")
    (tmp_path / "my_bad_sinks.py").write_text("def put(")
    sink_of("python:my_own_sinks:put", tmp_path).close()
    with pytest.raises(uc.OptionError, match="python:my_bad_sinks:put: SyntaxError: "):
        sink_of("python:my_bad_sinks:put", tmp_path)


def test_folders_of_other_streams_are_refused(tmp_path: Path) -> None:
    """Their batches would be taken for those of this one, and its alerts would be lost."""
    folder = tmp_path / "out"
    sink_of(str(folder), tmp_path).write(0, alerts(1))
    with pytest.raises(uc.OptionError, match="out has alerts of another stream"):
        sink_of(str(folder), tmp_path)
    (tmp_path / "state.pickle").touch()
    sink_of(str(folder), tmp_path).write(0, alerts(2))
    assert pa.parquet.read_table(folder / "batch=0" / "alerts.parquet").column("a").to_pylist() == [1]
    with pytest.raises(uc.OptionError, match="is no folder"):
        sink_of(str(tmp_path / "state.pickle"), tmp_path)


def test_figures_are_served(tmp_path: Path) -> None:

    table = pa.Table.from_pylist(
        [event("A", 1, 0), event("B", 2, 1), event("B", 3, 2), event("A", 4, 90), event("B", 5, 3)]
    )
    put(tmp_path, [table.slice(0, 4), table.slice(4)], RULES)
    run = RuleRun([str(tmp_path / "rules")], options_of(tmp_path, largest_interval=0))
    with served(run.metrics, "0") as port:
        run.run(None)
        with urlopen(f"http://127.0.0.1:{port}/metrics?x=1") as answer:
            text = answer.read().decode()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    figures = dict(line.rsplit(" ", 1) for line in lines)
    assert figures["uncertain_cep_events_total"] == "5"
    assert figures["uncertain_cep_late_total"] == "1"
    assert figures["uncertain_cep_batches_total"] == "2"
    assert figures['uncertain_cep_matches_total{rule="soon"}'] == "2"
    assert figures['uncertain_cep_suppressed_total{rule="often"}'] == "1"
    assert float(figures["uncertain_cep_batch_seconds_total"]) > 0
    assert float(figures["uncertain_cep_state_bytes"]) == (tmp_path / "state" / "state.pickle").stat().st_size


class DeltaTables:
    """As the module deltalake, with tables in memory: rows, and the last number of each application."""

    def __init__(self) -> None:
        self.rows: dict[str, list[int]] = {}
        self.numbers: dict[str, dict[str, int]] = {}
        self.Transaction = lambda application, number: (application, number)
        self.CommitProperties = lambda app_transactions: app_transactions
        tables = self

        class DeltaTable:
            def __init__(self, place: str) -> None:
                self.transaction_version = tables.numbers[place].get

            @staticmethod
            def is_deltatable(place: str) -> bool:
                return place in tables.rows

        self.DeltaTable = DeltaTable

    def write_deltalake(self, place: str, rows: pa.Table, *, commit_properties: Any, **how: str) -> None:
        assert how == {"mode": "append", "schema_mode": "merge"}
        self.rows.setdefault(place, []).extend(rows.column("a").to_pylist())
        self.numbers.setdefault(place, {}).update(commit_properties)


def test_the_sink_of_delta_appends_each_batch_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for its package."""
    tables = DeltaTables()
    monkeypatch.setitem(sys.modules, "deltalake", tables)
    (example,) = blocks("py", DOCS["all-day.md"])
    names: dict[str, Any] = {}
    exec(example, names)
    for number, rows in ((0, [1]), (0, [1]), (3, [2, 3]), (3, [2, 3]), (4, [4])):
        names["append_delta"](alerts(*rows), number)
    assert tables.rows == {"alerts": [1, 2, 3, 4]}


@dataclass(frozen=True)
class Observation:
    """As that of OpenTelemetry's API."""

    value: float
    attributes: dict[str, str] | None = None


def test_figures_for_open_telemetry_are_those_for_prometheus(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for its API, which has the same functions."""
    observed: dict[str, float] = {}
    made: dict[str, Any] = {}
    meter = SimpleNamespace(
        create_observable_counter=lambda name, callbacks, **_: made.update({f"{name}.total": callbacks}),
        create_observable_gauge=lambda name, callbacks, **_: made.update({name: callbacks}),
    )
    api = SimpleNamespace(Observation=Observation, get_meter=lambda name, version: meter)
    monkeypatch.setitem(sys.modules, "opentelemetry", SimpleNamespace(metrics=api))
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", api)
    figures = RunMetrics()
    assert observe_run(figures)
    figures.add(events=5, batch_seconds=0.25)
    figures.whole["lag_seconds"] = 2.5
    figures.rules = {"r": {"matches": 3, "failed": 0}, "s": {"matches": 4}}
    for name, callbacks in made.items():
        for callback in callbacks:
            for one in callback(None):
                rule = "" if one.attributes is None else f'{{rule="{one.attributes["rule"]}"}}'
                observed[name.replace(".", "_") + rule] = one.value
    lines = [line for line in text_of_metrics(figures).splitlines() if not line.startswith("#")]
    assert observed == {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}
    assert len(observed) == 6


def test_figures_need_no_open_telemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", None)
    assert not observe_run(RunMetrics())


def test_batches_of_spark_have_figures() -> None:
    stamp = pa.timestamp("ms", "UTC")
    schema = pa.schema([("type", pa.string()), ("id", pa.int64()), ("lower", stamp), ("upper", stamp)])
    layout = Batches("PATTERN SEQ(A a, B b) WITHIN 5 s", schema, StreamOptions("1 s")).layout
    figures, bound = RunMetrics(), int(time.time() - 60) * 1_000_000_000
    assert layout.plan.domain.tick_nanoseconds is not None
    bound //= layout.plan.domain.tick_nanoseconds
    counts = {"events": 7, "matches": 2, "late": 1, "duplicates": 0, "bound": bound}
    counts |= {"state_rows": 9, "state_bytes": 80}
    for _ in range(2):
        _measure(figures, counts, 0.5, layout)
    ((_, lag),) = figures.values_of("lag_seconds")
    assert 59 < lag < 90
    # It grows while nothing comes.
    assert figures.values_of("lag_seconds")[0][1] > lag
    assert figures.whole == {
        "events": 14, "matches": 4, "late": 2, "duplicates": 0, "batches": 2, "batch_seconds": 1.0,
        "last_batch_seconds": 0.5, "held": 9, "state_bytes": 80,
    }  # fmt: skip


def test_a_topic_gets_alerts_with_their_keys(tmp_path: Path) -> None:
    from confluent_kafka import Consumer, TopicPartition

    from tests.spark.kafka_broker import PATIENCE, broker, make_topic

    with broker() as address:
        make_topic(address, "alerts", 1)
        sink = sink_of(f"kafka://{address}/alerts", tmp_path)
        sink.write(0, alerts(1, 2))
        large = pa.table({"rule": ["x" * 2_000_000, "r"], "a": pa.array([4, 3], pa.int64())})
        sink.write(1, large)
        sink.close()
        # The others of its batch are there.
        assert len((tmp_path / "undelivered.jsonl").read_text().splitlines()) == 1
        consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.assign([TopicPartition("alerts", 0, 0)])
        rows: dict[str, int] = {}
        end = time.monotonic() + PATIENCE
        while len(rows) < 3 and time.monotonic() < end:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                rows[str(message.key(), "utf-8")] = json.loads(str(message.value(), "utf-8"))["a"]  # type: ignore[arg-type]
        consumer.close()
    assert rows == dict(zip(alert_keys(alerts(1, 2, 3)), [1, 2, 3], strict=True))


def test_a_topic_that_nobody_serves_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncertain_cep.alerting.kafka_topic._SECONDS", 0.1)
    monkeypatch.setattr(buffered_delivery, "_TRIES", 2)
    sink = sink_of("kafka://127.0.0.1:1/alerts", tmp_path)
    sink.write(0, alerts(1, 2))
    sink.close()
    assert len((tmp_path / "undelivered.jsonl").read_text().splitlines()) == 2


def test_labels_are_quoted() -> None:
    text = text_of_metrics(RunMetrics({}, {'a"b\\c\nd': {"matches": 3}}))
    assert text.splitlines()[-1] == 'uncertain_cep_matches_total{rule="a\\"b\\\\c\\nd"} 3'
