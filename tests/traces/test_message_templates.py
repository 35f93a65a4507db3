"""Types of events by templates of their messages, and the templates that are proposed for messages."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from tests.cases.sampling import FEWER
from tests.traces.files import put, schema_of
from uncertain_cep.cli import main
from uncertain_cep.traces.message_groups import message_groups
from uncertain_cep.traces.message_templates import MOST_PARTS, parts_in, with_templates
from uncertain_cep.traces.proposing import propose

LINES: Final = """\
2025-03-02 03:04:05 user 7 logged in from 1.2.3.4
2025-03-02 03:04:06 user bob  logged in from web-1:22
\tat some.place
2025-03-02 03:04:07 failed password for bob from 1.2.3.4 port 22
2025-03-02 03:04:08 user bob logged in from here and there
2025-03-02 03:04:09 nothing of it
"""
SCHEMA: Final = """\
tick = "1s"
[extract]
line = '^(?P<time>\\S+ \\S+) (?P<message>.*)'
[templates.message]
Login = 'user <*> logged in from <*>'
Failed = 'failed password for <*> from <**>'
[[events]]
type_column = "template"
time = "time"
uncertainty = { kind = "exact" }
"""


def test_types_and_what_varies(tmp_path: Path) -> None:
    path, schema = put(tmp_path / "t.log", LINES), put(tmp_path / "schema.toml", SCHEMA)
    table = uc.read_traces(path, schema)
    assert table.column("type").to_pylist() == ["Login", "Login", "Failed", "Other", "Other"]
    assert table.column("p1").to_pylist() == ["7", "bob", "bob", None, None]
    assert table.column("p2").to_pylist() == ["1.2.3.4", "web-1:22", "1.2.3.4 port 22", None, None]
    assert table.column("message").to_pylist()[1].endswith("\n\tat some.place")
    # What a query does not name is not read.
    query = "PATTERN SEQ(Login a, Failed b) WHERE a.p1 = b.p1 WITHIN 1 min"
    done = CliRunner().invoke(main, ["match", query, str(path), "--schema", str(schema)])
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) == 2, done.output


def test_a_column_that_a_file_has_already(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "time,message,p1\n2025-03-02,user a logged in from b,x\n")
    with pytest.raises(uc.TraceError, match=r"column 'p1'.* makes a column of this name"):
        uc.read_traces(path, schema_of(tmp_path, re.sub(r"\[extract\]\n.*\n", "", SCHEMA)))


_WORDS = st.sampled_from(("a", "b", "<*>", "x=<*>", "(<*>)", "<*>:<*>", "+", "a.b", "7"))
_TEXT_WORDS = st.sampled_from(
    ("a", "b", "x=1", "x=", "(7)", "(y z)", "1:2", "+", "a.b", "aXb", "7", "\n", "  ", "\t")
)


def naive(template: str) -> re.Pattern[str]:
    """Return the expression of a template, word by word."""
    words = []
    for word in template.split():
        parts = [re.escape(part) for part in word.removesuffix("<**>").split("<*>")]
        words.append(r"(\S+?)".join(parts) + (r"([^\n]*)" if word.endswith("<**>") else ""))
    return re.compile(r"[ \t]*" + r"[ \t]+".join(words) + r"[ \t\r]*(?:\n|\Z)")


@FEWER
@given(
    st.lists(
        st.tuples(st.lists(_WORDS, min_size=1, max_size=4), st.booleans()).map(
            lambda drawn: " ".join(drawn[0]) + (" <**>" if drawn[1] else "")
        ),
        min_size=1,
        max_size=5,
        unique=True,
    ),
    st.lists(st.none() | st.lists(_TEXT_WORDS, max_size=6).map(" ".join), min_size=1, max_size=8),
)
def test_the_first_template_that_fits(templates: list[str], texts: list[str | None]) -> None:
    named = tuple((f"T{number}", template) for number, template in enumerate(templates))
    column = pa.chunked_array([pa.array(texts[:3], pa.string()), pa.array(texts[3:], pa.string())])
    table = with_templates(pa.table({"m": column}), ("m", named), "f").to_pylist()
    for text, row in zip(texts, table, strict=True):
        first = next(
            (
                (name, match, template)
                for name, template in named
                if text is not None and (match := naive(template).match(text)) is not None
            ),
            None,
        )
        if first is None:
            assert row["template"] == "Other"
            assert {value for key, value in row.items() if key.startswith("p")} <= {None}
            continue
        name, match, template = first
        assert row["template"] == name
        assert [row[f"p{place}"] for place in range(1, parts_in(template) + 1)] == [*match.groups()]


MESSAGES: Final = [
    *(f"block blk_{number} received from 10.0.0.{number}:50010" for number in range(30)),
    *(f"user={name} logged in" for name in ("root", "bob", "amy") for _ in range(4)),
    *(f"took {number} ms" for number in range(5)),
    "BLOCK* stopped",
]


def test_messages_are_grouped(tmp_path: Path) -> None:
    groups = message_groups(pa.chunked_array([pa.array(MESSAGES)]))
    assert [(group.name, group.template, group.count) for group in groups] == [
        ("BlockReceivedFrom", "block <*> received from <*>", 30),
        ("UserLoggedIn", "user=<*> logged in", 12),
        ("TookMs", "took <*> ms", 5),
        ("BLOCKStopped", "BLOCK* stopped", 1),
    ]
    lines = [f"2025-03-02 03:04:{number:02d} {message}" for number, message in enumerate(MESSAGES)]
    path = put(tmp_path / "app.log", "\n".join(lines))
    text = propose([path]).text
    assert "# 30 such as: block blk_0 received from 10.0.0.0:50010\n" in text
    assert tomllib.loads(text)["templates"]["message"] == {group.name: group.template for group in groups}
    events = uc.read_traces(path, put(tmp_path / "schema.toml", text))
    assert events.column("p1").to_pylist()[:2] == ["blk_0", "blk_1"]
    assert "Other" not in events.column("type").to_pylist()


@FEWER
@given(
    st.lists(
        st.lists(
            st.sampled_from(
                ("up", "down", "x=1", "x=2", "<*>", "<**>", "(a)", "(b)", "7", "'q'", "é", "a,b", "\\")
            ),
            max_size=45,
        ).map(" ".join),
        min_size=1,
        max_size=12,
    )
)
def test_every_message_has_a_template_that_fits(messages: list[str]) -> None:
    column = pa.chunked_array([pa.array(messages)])
    groups = message_groups(column)
    assert message_groups(pa.chunked_array([pa.array(messages[::-1])])) == groups
    assert len({group.name for group in groups}) == len(groups)
    if not groups:
        assert not any(re.search(r"\bup\b|\bdown\b", message) for message in messages)
        return
    named = tuple((group.name, group.template) for group in groups)
    table = with_templates(pa.table({"m": column}), ("m", named), "f")
    for message, name in zip(messages, table.column("template").to_pylist(), strict=True):
        words = message.split()
        if words and words[0] in ("up", "down") and len(message) < 400:
            assert name != "Other", (message, named)
    assert all(parts_in(template) <= MOST_PARTS for _, template in named)
