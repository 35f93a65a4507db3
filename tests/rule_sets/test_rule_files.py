"""Files of rules: what they hold, all their faults at once, and the tests in them."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import uncertain_cep as uc
from uncertain_cep.cli import main

TWO = "PATTERN SEQ(A a, B b) WITHIN 8"
X = f"[[rule]]\nname = 'x'\nquery = '{TWO}'\n"
RULES = """
[[rule]]
name = "more"
query = "PATTERN SEQ(A a, B b) WHERE b.v > $least AND [host] WITHIN 20"
parameters = { least = 3 }
severity = "high"
description = "B is more than it may be."
suppress = "10 ticks BY host"
[[rule.tests]]
events = [
    { type = "A", lower = 1, v = 1, host = "h" },
    { type = "B", lower = 3, upper = 5, v = 4, host = "h" },
    { type = "B", lower = 6, v = 1, host = "h" },
]
expected = [{ a = 1, confidence = 1.0 }]
[[rule.tests]]
name = "none"
events = [{ type = "A", lower = 1, v = 1, host = "h" }, { type = "B", lower = 3, v = 3, host = "h" }]
expected = 0
"""
TRACE = "type,id,lower,upper,v,host\nA,1,0,3,1,x\nB,2,2,5,4,x\nB,3,6,7,5,x\nA,4,20,25,5,y\nB,5,30,31,9,x\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "b.toml").write_text(RULES)
    (tmp_path / "rules" / "a.sase").write_text(TWO)
    (tmp_path / "rules" / "c.query").write_text("\ufeff" + TWO, encoding="utf-8")
    (tmp_path / "rules" / "notes.md").write_text("no rule")
    (tmp_path / "t.csv").write_text(TRACE)
    return tmp_path


def run(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


def test_a_folder_is_its_files_in_order(folder: Path) -> None:
    rules = uc.rules(folder / "rules")
    assert rules.names == ("a", "more", "c")
    more = rules["more"]
    assert (more.severity, more.description) == ("high", "B is more than it may be.")
    assert more.place.endswith("b.toml")
    assert [test.name for test in more.tests] == ["test 1", "none"]
    assert rules[0].query.text == TWO
    assert uc.rules(str(folder / "rules" / "*.sase")).names == ("a",)
    assert uc.rules([folder / "rules" / "c.query", str(folder / "rules" / "a.sase")]).names == ("c", "a")
    assert repr(rules) == "<3 rules: a, more, c>"
    assert len(rules[1:]) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "a file of rules has a table [[rule]]"),
        ("[rule]\nname = 'x'", "a file of rules has a table [[rule]]"),
        ("[[rule]]\nquery = 'PATTERN SEQ(A a, B b) WITHIN 2'", "[[rule]] number 1: each rule has a name"),
        ("[[rule]]\nname = 'x'", "rule 'x': a rule has a query, or a query_file, and not both"),
        (f"{X}sevrity = 'y'", "rule 'x': sevrity: there is no such key: did you mean severity?"),
        (f"{X}severity = 3", "rule 'x': severity is text, and this is 3"),
        (f"{X}suppress = 'soon'", "rule 'x': suppress"),
        (f"{X}parameters = {{ y = 1 }}", "rule 'x': "),
        (f"{X}tests = [3]", "rule 'x': tests are tables"),
        (f"{X}[[rule.tests]]\nevents = 3", "rule 'x': test 1: events are rows"),
        (f"{X}[[rule.tests]]\nevents = []\nexpected = -1", "expected is a number"),
        ("[[rule]]\nname = 'x'\nquery_file = 'nosuch.sase'", "query_file = 'nosuch.sase' cannot be read"),
        ("[[rule]", "the rule is no TOML"),
        ("[[rule]]\nname = 'x'\nquery = 'PATTERN SEQ(A a'", "rule 'x': line 1, column"),
        (f"version = 1\n{X}", "version: a file of rules has tables [[rule]] only"),
    ],
)  # fmt: skip
def test_faults_of_files_are_told_with_their_rule(folder: Path, text: str, said: str) -> None:
    file = folder / "rules" / "z.toml"
    file.write_text(text)
    (folder / "rules" / "y.sase").write_text("PATTERN")
    with pytest.raises(uc.OptionError) as caught:
        uc.rules(folder / "rules")
    first, *lines = [line for line in str(caught.value).splitlines() if "rules/" in line]
    assert "y.sase: rule 'y': line 1" in first
    assert any(f"{file}: " in line and said in line for line in lines)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("nosuch.toml", "nosuch.toml: there is no such rule file"),
        ("nosuch/*.sase", "no file is called so"),
        (3, "not as a int"),
        ([], "not as a list"),
        ([3], "3 is no name of one"),
        ({3: TWO}, "a rule has a name"),
        ({"a\nb": TWO}, "text on one line"),
        ({"x": 3}, "rule 'x': a query is text"),
    ],
)
def test_what_names_no_rules_is_refused(source: object, said: str) -> None:
    with pytest.raises(uc.OptionError, match=said):
        uc.rules(source)  # type: ignore[arg-type]


def test_names_differ(folder: Path) -> None:
    (folder / "more.sase").write_text(TWO)
    with pytest.raises(uc.OptionError) as error:
        uc.rules(
            [folder / "rules", folder / "more.sase", folder / "nosuch.sase", folder / "rules" / "a.sase"]
        )
    first, *again = str(error.value).splitlines()
    assert "nosuch.sase: the query file cannot be read" in first
    assert [line.partition(" (")[0] for line in again] == [
        "two rules are called a",
        "two rules are called more",
    ]
    assert again[1].count("more.sase") == again[1].count("b.toml") == 1
    with pytest.raises(KeyError, match="no rule is called 'nosuch'"):
        uc.rules(folder / "rules")["nosuch"]


def test_hidden_files_and_folders_are_no_rules(folder: Path) -> None:
    rules = folder / "rules"
    (rules / ".#a.sase").write_text("an editor")
    (rules / "sigma.toml").write_text("[fields]\nHost = 'host'")
    (rules / "older.sase").mkdir()
    (rules / "notes.md").unlink()
    assert uc.rules(rules).names == uc.rules(str(rules / "*")).names == ("a", "more", "c")
    (rules / "gone.sase").symlink_to(folder / "nosuch")
    with pytest.raises(uc.OptionError, match=r"gone.sase: the query file cannot be read"):
        uc.rules(rules)


def test_an_empty_folder_has_no_rule(tmp_path: Path) -> None:
    with pytest.raises(uc.OptionError, match="no rule: a folder of rules has files that end in"):
        uc.rules(tmp_path)


def test_the_command_answers_as_python_does(folder: Path) -> None:
    rules, trace, out = str(folder / "rules"), str(folder / "t.csv"), str(folder / "out.parquet")
    result = run(folder, "match", rules, trace, "-o", out)
    assert result.exit_code == 0
    assert "7 alerts of 3 rules: a 3, more 1, c 3" in result.stderr
    expected = uc.match(uc.read_traces(trace), uc.rules(rules))
    assert pq.read_table(out).to_pylist() == expected.to_pylist()
    printed = run(folder, "match", rules, trace)
    assert printed.stdout.splitlines()[0] == ",".join(f'"{name}"' for name in expected.column_names)


@pytest.mark.parametrize("more", [["--top", "3"], ["--param", "x=1"], ["--as", "x"]], ids=str)
def test_options_of_one_query_are_refused(folder: Path, more: list[str]) -> None:
    result = run(folder, "match", str(folder / "rules"), str(folder / "t.csv"), *more)
    assert result.exit_code == 2
    assert "is for one query, and" in result.stderr


def test_alerts_replace_no_input(folder: Path) -> None:
    rules, trace = str(folder / "rules"), str(folder / "t.csv")
    for words, said in (
        (["-o", trace, "--overwrite"], "is the trace"),
        (["-o", str(folder / "rules" / "x.csv")], "lies in the rules"),
        (["-o", "s3://bucket/x.csv"], "is a URL"),
    ):
        result = run(folder, "match", rules, trace, *words)
        assert (result.exit_code, said in result.stderr) == (2, True)
    (folder / "out.csv").touch()
    result = run(folder, "match", rules, trace, "-o", str(folder / "out.csv"))
    assert "is there already" in result.stderr
    assert "reading" not in result.stderr
    assert (folder / "t.csv").read_text() == TRACE


def test_tests_of_rules_hold_or_are_told(folder: Path) -> None:
    rules = str(folder / "rules")
    result = run(folder, "rules", "test", rules)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["ok     more: test 1", "ok     more: none"]
    assert "without a test: a, c" in result.stderr
    file = folder / "rules" / "b.toml"
    file.write_text(RULES.replace("expected = 0", "expected = 2").replace("a = 1, conf", "a = 7, conf"))
    result = run(folder, "rules", "test", rules)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[:3] == [
        "FAILED more: test 1",
        "  1 alert expected, 1 told",
        "  expected: a = 7, confidence = 1.0",
    ]
    assert lines[4:] == ["FAILED more: none", "  2 alerts expected, 0 told"]


TIMED = """
[[rule]]
name = "timed"
query = "PATTERN SEQ(A a, B b) WITHIN 10 s RETURN a.at AS at"
[[rule.tests]]
name = "zones"
events = [
    { type = "A", lower = 2024-05-01T12:00:01+02:00, at = 2024-05-01T10:00:01Z },
    { type = "B", lower = 2024-05-01T10:00:02Z },
]
expected = [{ at = 2024-05-01T10:00:01, range_upper = 2024-05-01T12:00:02+02:00, confidence = 1 }]
[[rule.tests]]
name = "no zones"
events = [{ type = "A", lower = 2024-05-01T10:00:01, at = 1 }, { type = "B", lower = 2024-05-01T10:00:02 }]
expected = [{ at = 1, range_upper = 2024-05-01T10:00:02Z }]
[[rule.tests]]
name = "a count"
events = [{ type = "A", lower = 2024-05-01T10:00:01, at = 1 }, { type = "B", lower = 5 }]
expected = 1
[[rule.tests]]
name = "words"
events = [{ type = "A", lower = 1, at = 1 }, { type = "B", lower = 2, at = "x" }]
expected = 1
[[rule.tests]]
name = "large"
events = [{ type = "A", lower = 99999999999999999999 }]
expected = 1
[[rule.tests]]
name = "no event"
events = []
expected = 0
[[rule.tests]]
name = "columns"
events = [{ type = "A", lower = 2024-05-01T10:00:01Z, at = 1 }]
expected = [{ aa = 1 }]
"""


def test_each_test_says_what_is_wrong_with_it(folder: Path) -> None:
    (folder / "timed.toml").write_text(TIMED)
    result = run(folder, "rules", "test", str(folder / "timed.toml"))
    assert result.exit_code == 1
    assert [line[:6] for line in result.stdout.splitlines() if "timed: " in line] == ["ok    "] * 2 + [
        "FAILED"
    ] * 5
    for said in (
        "events: some values of lower are times, and others are none",
        "events: the values of at make no column",
        "events: the values of lower make no column",
        "events: there is none",
        "no column is called aa: alerts have a, b, at, range_lower",
    ):
        assert said in result.stdout


def test_tests_may_read_traces_with_a_schema(folder: Path) -> None:
    (folder / "raw.csv").write_text("kind,at\nA,2026-01-01 08:00:00\nB,2026-01-01 08:00:03\n")
    (folder / "r.toml").write_text(
        f"""[[rule]]
name = "x"
query = "{TWO.replace("8", "8 s")}"
[[rule.tests]]
events = "raw.csv"
expected = [{{ confidence = 1.0 }}]
"""
    )
    options = ["--type-column", "kind", "--time", "at", "--uncertainty", "granularity:1s"]
    result = run(folder, "rules", "test", str(folder / "r.toml"), *options)
    assert result.exit_code == 0, result.stdout
    bare = run(folder, "rules", "test", str(folder / "r.toml"))
    assert bare.exit_code == 1
    assert "there is no such column" in bare.stdout
