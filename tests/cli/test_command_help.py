"""The help of commands, and the file that gives defaults of their options."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pytest

from tests.cli.conftest import Invoke, write_trace
from uncertain_cep.cli import main
from uncertain_cep.cli.command_help import EXAMPLES
from uncertain_cep.cli.data_defaults import FILE
from uncertain_cep.traces.readers.registry import READERS

QUERY = "PATTERN SEQ(A a, B b, C c) WITHIN 4"


def commands(group: click.Group = main) -> dict[str, click.Command]:
    """Return the commands by their names, those of groups below them included."""
    below: dict[str, click.Command] = {}
    for name, command in group.commands.items():
        inner = commands(command) if isinstance(command, click.Group) else None
        below |= {name: command} if inner is None else {f"{name} {one}": inner[one] for one in inner}
    return below


def test_commands_that_read_traces_show_two_examples(invoke: Invoke) -> None:
    reading = {
        name for name, command in commands().items() if any(one.name == "traces" for one in command.params)
    }
    assert reading <= set(EXAMPLES)
    for name, examples in EXAMPLES.items():
        assert len(examples) == 2
        shown = invoke(*name.split(), "--help").stdout
        for example in examples:
            assert f"  {example}\n" in shown
            words = shlex.split(example)
            assert words[: 1 + len(name.split())] == ["uncertain-cep", *name.split()]
            options = {option for one in commands()[name].params for option in one.opts}
            assert {word for word in words if word.startswith("-")} <= options


def test_options_stand_below_headings(invoke: Invoke) -> None:
    shown = invoke("match", "--help").stdout
    places = [
        shown.index(f"\n{heading}:\n")
        for heading in (
            *("Options", "How traces are read", "How it is evaluated", "What it may take", "Where it runs"),
            "Examples",
        )
    ]
    assert places == sorted(places)
    assert places[1] < shown.index("--schema FILE") < places[2] < shown.index("--planner") < places[3]
    assert all(name in shown.replace("-\n", "-").replace(" ", "") for name in ("spark-eventlog", "zipkin"))
    flat = "".join(shown.split())
    assert "".join(", ".join(READERS).split()) in flat


@pytest.fixture
def trace(figure1: pa.Table, tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    stamps = figure1.drop_columns(["upper"]).rename_columns(["kind", "number", "at", "node"])
    (tmp_path / "data" / "schema.toml").write_text(
        '[[events]]\ntype_column = "kind"\nid = "number"\ntime = "at"\nunit = "s"\n'
        'uncertainty = { kind = "plus_minus", by = "2s" }\n'
    )
    return write_trace(stamps, tmp_path / "data" / "t.csv")


SCHEMA = ("--schema", "data/schema.toml")
OWN = ("--type-column", "kind", "--id", "number", "--time", "at", "--unit", "s", "--uncertainty", "exact")


@pytest.mark.parametrize(
    ("defaults", "options", "as_if", "said"),
    [
        ("schema = 'schema.toml'", (), SCHEMA, "--schema data/schema.toml"),
        ("schema = 'schema.toml'\nthreads = 1", (), (*SCHEMA, "--threads", 1), "--threads 1"),
        ("schema = 'schema.toml'\nthreads = 1", ("--threads", 2), SCHEMA, "--schema data/schema.toml\n"),
        ("schema = 'no.toml'", SCHEMA, SCHEMA, None),
        ("schema = 'no.toml'\ntick = '2s'\nzone = 'UTC'", SCHEMA, SCHEMA, None),
        ("schema = 'schema.toml'", OWN, OWN, None),
        ("schema = 'schema.toml'\ntick = '2s'", OWN, (*OWN, "--tick", "2s"), "--tick 2s\n"),
    ],
)
def test_defaults_are_as_options(
    defaults: str, options: tuple[Any, ...], as_if: tuple[Any, ...], said: str | None, trace: Path,
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(trace.parent.parent)
    expected = invoke("match", QUERY, "data/t.csv", *as_if)
    assert expected.exit_code == 0
    assert FILE not in expected.stderr
    (trace.parent / FILE).write_text(defaults)
    for place in ("data/t.csv", "data"):
        done = invoke("match", QUERY, place, *options)
        assert (done.exit_code, done.stdout) == (0, expected.stdout)
        assert (f"data/{FILE}: " in done.stderr) == (said is not None)
        assert said is None or said in done.stderr


@pytest.mark.parametrize(
    ("defaults", "said"),
    [
        ("shema = 'x'", "shema: there is no such key: did you mean schema?"),
        ("threads = '2'", "threads = '2': it must be a whole number"),
        ("threads = true", "threads = True: it must be a whole number"),
        ("schema = 3", "schema = 3: it must be text in quotes"),
        ("threads", "the configuration is no TOML"),
        ("schema = 'nosuch.toml'", "nosuch.toml: there is no such schema file"),
        ("threads = 0", "0 is not in the range"),
    ],
)
def test_faults_of_defaults_are_told(defaults: str, said: str, trace: Path, invoke: Invoke) -> None:
    (trace.parent / FILE).write_text(defaults)
    done = invoke("match", QUERY, trace)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert said in done.stderr
