"""Rules of Sigma mean what a literal reading of them says, in every possible world."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.project.test_readme import DOCS, blocks
from uncertain_cep.cli import main
from uncertain_cep.testing import Event
from uncertain_cep.testing.worlds import worlds

FIELDS: Final = "[fields]\nHost = 'host'\nUser = 'user'\nCode = 'code'\n[[logsource]]\ntypes = ['Log']\n"
USERS: Final = ["Admin", "root", "a_b", "a%b", "ro*t", "C:\\x", None]
CONDITIONS: Final = [
    "one", "not one", "one and not two", "one or two", "1 of t*", "all of them", "not (one or two)",
    "1 of them and not not two",
]  # fmt: skip
ITEMS: Final[list[dict[str, Any]]] = [
    {"User": "root"}, {"User": "ro*"}, {"User": r"ro\*t"}, {"User": "a_b"}, {"User": "A%B"},
    {"User": r"C:\x"}, {"User": None}, {"User|contains": ["ro", "_"]}, {"User|contains|all": ["o", "t"]},
    {"User|startswith": "A"}, {"User|endswith|cased": "N"}, {"User|re": "^[ar]"}, {"User|re|i": "^A"},
    {"User|exists": True}, {"Code": [1, 2]}, {"Code": 3}, {"Code|gte": 2, "User|exists": True},
    {"Code|lt": 2}, {"User": ["root", "?dmin"]},
]  # fmt: skip


def _like(pattern: str) -> str:
    """Return a regular expression for a text of Sigma with its wildcards."""
    pieces = re.findall(r"\\[\\*?]|.", pattern)
    wild = {"*": ".*", "?": "."}
    return "".join(wild.get(piece) or re.escape(piece[-1] if len(piece) > 1 else piece) for piece in pieces)


def _item_is_met(key: str, value_or_values: Any, event: Event) -> bool:
    """Tell whether an event has what one line of a detection says, word by word."""
    field, *modifiers = key.split("|")
    value = event[{"Host": "host", "User": "user", "Code": "code"}[field]]
    if "exists" in modifiers:
        return bool((value is not None) == value_or_values)

    def is_met(one: Any) -> bool:
        if one is None:
            return value is None
        if value is None:
            return False
        if "gte" in modifiers:
            return bool(value >= one)
        if "lt" in modifiers:
            return bool(value < one)
        if not isinstance(one, str) or not isinstance(value, str):
            return bool(value == one)
        if "re" in modifiers:
            return re.search(one, value, re.IGNORECASE if "i" in modifiers else 0) is not None
        before = ".*" if {"contains", "endswith"} & set(modifiers) else ""
        behind = ".*" if {"contains", "startswith"} & set(modifiers) else ""
        flags = 0 if "cased" in modifiers else re.IGNORECASE
        return re.fullmatch(before + _like(one) + behind, value, flags) is not None

    values = value_or_values if isinstance(value_or_values, list) else [value_or_values]
    return (all if "all" in modifiers else any)(map(is_met, values))


def detects(detection: Mapping[str, Any], event: Event) -> bool:
    """Tell whether a detection is met by an event, by two truth values."""
    met = {
        name: all(_item_is_met(key, value, event) for key, value in part.items())
        for name, part in detection.items()
        if name != "condition"
    }
    condition = re.sub(r"1 of t\*", "two", detection["condition"])
    condition = condition.replace("1 of them", "(one or two)").replace("all of them", "(one and two)")
    return bool(eval(condition, {}, met))


def alarms(
    correlation: Mapping[str, Any],
    detections: Sequence[Mapping[str, Any]],
    world: Mapping[Event, int],
    span: int,
) -> set[tuple[Any, int]]:
    """Return the groups and buckets in which a correlation holds in a world, word by word."""
    keys = correlation.get("group-by", [])
    hits = [[event for event in world if detects(one, event)] for one in detections]
    kind = correlation["type"]
    groups: set[tuple[Any, int]] = set()
    if kind == "event_count":
        counts: dict[tuple[Any, int], int] = defaultdict(int)
        for event in hits[0]:
            if not keys or event["host"] is not None:
                counts[event["host"] if keys else None, world[event] // span] += 1
        return {group for group, count in counts.items() if count >= correlation["condition"]["gte"]}
    if kind == "value_count":
        hits *= correlation["condition"]["gte"]
    for chosen in permutations(world, len(hits)):
        ticks = [world[event] for event in chosen]
        hosts = {event["host"] for event in chosen}
        users = [event["user"] for event in chosen]
        if (
            all(event in detected for event, detected in zip(chosen, hits, strict=True))
            and max(ticks) - min(ticks) < span
            and (kind != "temporal_ordered" or all(a < b for a, b in pairwise(ticks)))
            and (kind != "value_count" or (None not in users and len(set(users)) == len(users)))
            and (not keys or (len(hosts) == 1 and None not in hosts))
        ):
            groups.add((hosts.pop() if keys else None, min(ticks) // span))
    return groups


@st.composite
def events_of_logs(draw: st.DrawFn) -> list[Event]:
    """Draw events that may tie and overlap, some of which may not have happened."""
    events = []
    for number in range(draw(st.integers(1, 5))):
        lower = draw(st.integers(0, 5))
        attributes = {
            "host": draw(st.sampled_from(["h", "h", "g", None])),
            "user": draw(st.sampled_from(USERS)),
            "code": draw(st.sampled_from([1, 2, 3, None])),
        }
        chance = draw(st.sampled_from([Fraction(1), Fraction(1), Fraction(1, 2)]))
        upper = lower + draw(st.integers(0, 2))
        events.append(Event("Log", number, lower, upper, attributes=attributes, probability=chance))
    return events


def frame_of(events: Sequence[Event]) -> pa.Table:
    """Return events with ticks of a second."""
    columns: dict[str, Any] = {
        "type": pa.array([event.type for event in events]),
        "id": pa.array([event.id for event in events]),
        "probability": pa.array([float(event.probability) for event in events]),
        "host": pa.array([event["host"] for event in events], pa.string()),
        "user": pa.array([event["user"] for event in events], pa.string()),
        "code": pa.array([event["code"] for event in events], pa.int64()),
    }
    for name in ("lower", "upper"):
        columns[name] = pa.array([getattr(event, name) for event in events], pa.timestamp("s", "UTC"))
    return pa.table(columns)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sigma")
    (folder / "sigma.toml").write_text(FIELDS)
    return folder


detections = st.fixed_dictionaries(
    {"one": st.sampled_from(ITEMS), "two": st.sampled_from(ITEMS), "condition": st.sampled_from(CONDITIONS)}
)


@given(detections, events_of_logs())
def test_a_detection_detects_what_it_says(
    place: Path, detection: dict[str, Any], events: list[Event]
) -> None:
    (place / "rule.yml").write_text(json.dumps({"title": "x", "detection": detection}))
    answer = uc.match(frame_of(events), uc.rules(place / "rule.yml"), tick="1s")
    assert set(answer["event"].to_pylist()) == {event.id for event in events if detects(detection, event)}


@given(st.data(), events_of_logs())
def test_a_correlation_is_as_likely_as_the_worlds_in_which_it_holds(
    place: Path, data: st.DataObject, events: list[Event]
) -> None:
    kind = data.draw(st.sampled_from(["temporal", "temporal_ordered", "event_count", "value_count"]))
    count = data.draw(st.integers(1, 3)) if kind.startswith("temporal") else 1
    parts = data.draw(st.lists(detections, min_size=count, max_size=count))
    span = data.draw(st.integers(1, 4))
    correlation: dict[str, Any] = {
        "type": kind,
        "rules": [f"d{place}" for place in range(count)],
        "timespan": f"{span}s",
    }
    if not kind.startswith("temporal"):
        correlation["condition"] = {"gte": data.draw(st.integers(1, 3)), "field": "User"}
    if kind == "event_count":
        del correlation["condition"]["field"]
    if data.draw(st.booleans()):
        correlation["group-by"] = ["Host"]
    documents: list[dict[str, Any]] = [{"title": "c", "correlation": correlation}]
    documents += [
        {"title": f"t{place}", "name": f"d{place}", "detection": part} for place, part in enumerate(parts)
    ]
    (place / "rules.yml").write_text("\n---\n".join(map(json.dumps, documents)))
    rows = uc.match(frame_of(events), uc.rules(place / "rules.yml"), tick="1s").to_pylist()
    expected: dict[tuple[Any, int], Fraction] = defaultdict(Fraction)
    for weight, world in worlds(events):
        for group in alarms(correlation, parts, world, span):
            expected[group] += weight
    seconds = {(row.get("host"), int(row["bucket"].timestamp()) // span): row["probability"] for row in rows}
    assert seconds.keys() == expected.keys()
    for group, probability in seconds.items():
        assert probability == pytest.approx(float(expected[group]), rel=1e-9)


BASE: Final = (
    "title: d\nname: d\ndetection: {s: {User: x}, condition: s}\n---\ntitle: c\nname: c\ncorrelation:\n"
)
TEMPORAL: Final = "type: temporal\n  rules: [d]\n  timespan: 1m"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title: x\ndetection: {s: {User|base64: x}, condition: s}", "the modifier base64 is not answered"),
        ("title: x\ndetection: {s: [a, b], condition: s}", "s: keywords search a whole line"),
        ("title: x\ndetection: {s: {User: x}, condition: s | count() > 5}", "write one, of type event_count"),
        ("title: x\ndetection: {s: {User: x}, condition: t}", "'t' stands where the name of a detection"),
        ("title: x\ndetection: {s: {User: x}, condition: 2 of s*}", "1 of and all of are answered"),
        ("title: x\ndetection: {s: {User: x}, condition: (s}", "a parenthesis is not closed"),
        ("title: x\ndetection: {s: {User|gt: x}, condition: s}", "gt takes a number"),
        ("title: x\ndetection: {s: {User|cidr: '::1/8'}, condition: s}", "networks of IPv4 are answered"),
        ("title: x\nfilter: {}\ndetection: {}", "filter: documents that change other rules"),
        ("services: [x]", "it is no rule of Sigma"),
        (f"{BASE}  {TEMPORAL}\n  generate: maybe", "generate is true or false"),
        (f"{BASE}  {TEMPORAL}\n  aliases: {{who: {{d: User}}}}", "aliases: who stands in no group-by"),
        (
            f"{BASE}  {TEMPORAL}\n  group-by: [who]\n  aliases: {{who: {{d: User, e: Host}}}}",
            "aliases: who: e is none of the rules",
        ),
        (
            f"{BASE}  type: event_count\n  rules: [d]\n  timespan: 1m\n  condition: {{gte: 2, field: User}}",
            "condition: field is of value_count",
        ),
        (
            f"title: d2\nname: d\ndetection: {{s: {{User: y}}, condition: s}}\n---\n{BASE}  {TEMPORAL}",
            "several detections",
        ),
        (
            "title: x\ndetection:\n  s: {User: x}\n  s: {User: y}\n  condition: s",
            "line 4: s stands there twice",
        ),
        ("title: x\ndetection: {}\ncorrelation: {}", "a detection or a correlation, and not both"),
        ("title: [x]\ndetection: {s: {User: x}, condition: s}", "a rule has a title, which is text"),
        ("title: x\ndetection: {s: {~: x}, condition: s}", "the name of a field is text, and None is none"),
        (
            'title: x\ndetection: {s: {User: "a\\nb"}, condition: s}',
            "a text of several lines is not answered",
        ),
        ("a: [", "it is no YAML"),
        (f"{BASE}  type: value_avg", "a correlation of the type value_avg is not answered"),
        (f"{BASE}  type: temporal\n  rules: [e]\n  timespan: 1m", "no detection has the name or id e"),
        (f"{BASE}  type: temporal\n  rules: [c]\n  timespan: 1m", "c is a correlation itself, which is not"),
        (f"{BASE}  type: temporal\n  rules: [d]\n  timespan: 1M", "timespan is a number and one of"),
        (f"{BASE}  type: temporal\n  rules: [d]\n  timespan: 1m\n  group: x", "did you mean group-by?"),
        (
            f"{BASE}  type: event_count\n  rules: [d]\n  timespan: 1m\n  condition: {{lte: 3}}",
            "a count has one gte or gt",
        ),
        (
            f"{BASE}  type: value_count\n  rules: [d]\n  timespan: 1m\n  condition: {{gte: 11, field: User}}",
            "a value_count of 11 values is not answered: up to 10 are, and event_count counts",
        ),
    ],
)
def test_what_is_not_answered_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.yml").write_text(text)
    with pytest.raises(uc.OptionError, match=re.escape(said)) as error:
        uc.rules(tmp_path)
    assert "x.yml: " in str(error.value)


def test_a_log_source_that_no_types_are_named_for_is_refused_or_warned_of(tmp_path: Path) -> None:
    (tmp_path / "x.yml").write_text(
        "title: x\nlogsource: {product: linux}\ndetection: {s: {a: 1}, condition: s}"
    )
    with pytest.warns(uc.UncertainCepWarning, match="logsource of 1 detection of Sigma is not heeded"):
        assert "ANY event" in uc.rules(tmp_path)[0].query.text
    (tmp_path / "sigma.toml").write_text("[[logsource]]\nproduct = 'windows'\ntypes = ['W']")
    with pytest.raises(uc.OptionError, match=r"no \[\[logsource\]\] of sigma.toml is that of logsource"):
        uc.rules(tmp_path)
    (tmp_path / "sigma.toml").write_text("[[logsource]]\nproduct = 'linux'\ntypes = ['L', 'M']")
    assert "(L|M) event" in uc.rules(tmp_path)[0].query.text


def test_aliases_tie_fields_of_different_names(place: Path) -> None:
    (place / "x.yml").write_text(
        "title: d\nname: d\ndetection: {s: {Code: 1}, condition: s}\n---\n"
        "title: e\nname: e\ndetection: {s: {Code: 2}, condition: s}\n---\n"
        "title: c\nlevel: high\ncorrelation: {type: temporal, rules: [d, e], timespan: 9s, group-by: [who],"
        " aliases: {who: {d: User, e: Host}}}"
    )
    rule = uc.rules(place / "x.yml")["c"]
    assert "r1.user = r2.host" in rule.query.text
    assert (rule.severity, rule.place) == ("high", str(place / "x.yml"))


def test_names_in_files_are_read_as_they_stand(tmp_path: Path) -> None:
    """Anchors, empty documents and titles of several lines."""
    (tmp_path / "x.yml").write_text(
        "---\n---\ntitle: |\n  a\n  b\ndetection: {s: &x {User: y, Code: 1}, t: *x, condition: s or t}\n---\n"
    )
    assert uc.rules(tmp_path).names == ("a b",)
    (tmp_path / "sigma.toml").write_text("[fields]\nUser = ''")
    with pytest.raises(uc.OptionError, match=r"\[fields\] has names of columns"):
        uc.rules(tmp_path)


def test_networks_are_those_of_their_addresses(place: Path) -> None:
    (place / "x.yml").write_text("title: x\ndetection: {s: {User|cidr: 172.16.0.0/12}, condition: s}")
    addresses = ["172.16.0.1", "172.31.9.9", "172.32.0.1", "172.15.0.1", "1172.16.0.1", None]
    events = [Event("Log", place, 0, 0, attributes={"user": one}) for place, one in enumerate(addresses)]
    answer = uc.match(frame_of(events), uc.rules(place / "x.yml"), tick="1s")
    assert answer["event"].to_pylist() == [0, 1]


def test_the_page_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = DOCS["rules.md"]
    (rules,), (_, fields), (log,), (shown,) = (blocks(kind, page) for kind in ("yaml", "toml", "csv", "text"))
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "logins.yml").write_text(rules)
    (tmp_path / "rules" / "sigma.toml").write_text(fields)
    (tmp_path / "auth.csv").write_text(log)
    monkeypatch.chdir(tmp_path)
    for words in (["match", "rules/logins.yml", "auth.csv"], ["match", "rules", "auth.csv"]):
        result = CliRunner().invoke(main, words, catch_exceptions=False)
        assert result.stdout.replace('"', "") == shown
    explained = CliRunner().invoke(main, ["explain", "rules/logins.yml", "auth.csv"], catch_exceptions=False)
    assert explained.exit_code == 0


def test_a_stream_tells_what_the_batch_does(place: Path) -> None:
    (place / "x.yml").write_text(
        "title: d\nname: d\ndetection: {s: {Code: 1}, condition: s}\n---\n"
        "title: c\ncorrelation: {type: event_count, rules: d, timespan: 4s, group-by: [Host],"
        " condition: {gte: 2}}"
    )
    events = [
        Event("Log", number, at, at + 1, attributes={"host": "h", "user": None, "code": 1})
        for number, at in enumerate([0, 2, 3, 9, 11, 12])
    ]
    frame, rules = frame_of(events), uc.rules(place / "x.yml")
    matcher = uc.RuleMatcher(rules, frame.schema, largest_interval=1, tick="1s")
    alerts = [row for number in range(6) for row in matcher.push(frame.slice(number, 1)).to_pylist()]
    alerts += matcher.close().to_pylist()
    assert alerts == uc.match(frame, rules, tick="1s").to_pylist()
    assert alerts[0]["bucket"] == datetime.fromtimestamp(0, UTC)
