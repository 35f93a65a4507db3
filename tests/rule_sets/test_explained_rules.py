"""Explanations say what rules share, and validation tells every fault of every rule."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv
import pytest
from click.testing import CliRunner

import uncertain_cep as uc
from uncertain_cep.cli import main
from uncertain_cep.rule_sets.named_rules import Rules, suppression_of

SHAPE: Final = "PATTERN SEQ(A a, B b) WHERE a.v > {} AND [k] WITHIN 5"
RULES: Final = {
    **{f"r{x}": SHAPE.format(x) for x in (3, 4, 5)},
    "other": "PATTERN SEQ(C c) WITHIN 5",
    "all": "PATTERN SEQ(A a, C c) WHERE strict_contiguity(a, c) WITHIN 5",
}
EVENTS: Final = pa.table(
    {
        "type": ["A", "A", "A", "B", "C", "A", "A"],
        "id": range(7),
        "lower": range(7),
        "upper": range(7),
        "v": [1, 4, 1, 7, 9, 0, 0],
        "k": ["x"] * 7,
    }
)


def test_what_rules_share() -> None:
    facts = json.loads(uc.explain(uc.rules(RULES), EVENTS, format="json"))
    assert (facts["rules"], facts["events"]) == (5, 7)
    first, second, third = facts["groups"]
    assert (first["rules"], first["types"]) == (["r3", "r4", "r5"], ["A", "B"])
    assert (first["events"], first["looked_at"]) == (6, 2)
    assert first["selections"] == [
        {"types": ["A"], "where": ["a.v > 3"], "components": 3},
        {"types": ["B"], "where": [], "components": 3},
    ]
    assert (second["events"], second["looked_at"], third["types"], third["events"]) == (1, 1, None, 7)


def test_the_same_in_words() -> None:
    said = uc.explain(uc.rules(RULES), EVENTS)
    for line in (
        "5 rules of 7 events, which are read, checked and cut by type once",
        "A, B: 3 rules, r3, r4, r5",
        "  6 events, of which 2 can matter to some rule: each looks at these",
        "  looked for once, for 3 components: A WHERE a.v > 3",
        "all types: 1 rule, all",
        "  no selection is shared",
    ):
        assert line in said.splitlines()


def test_explain_needs_events() -> None:
    rules = uc.rules(RULES)
    with pytest.raises(uc.OptionError, match="what rules share depends on the events"):
        uc.explain(rules)
    with pytest.raises(uc.OptionError, match="leave out analyze="):
        uc.explain(rules, EVENTS, analyze=True)


FAULTY: Final = {
    "p": "PATTERN SEQ(A a) WHERE a.x > 1 WITHIN 5",
    "q": "PATTERN SEQ(A a, B b) WHERE b.y = 1 WITHIN 5",
}


def test_all_faults_of_all_rules() -> None:
    with pytest.raises(uc.QueryError) as caught:
        uc.validate(EVENTS, query=uc.rules(RULES | FAULTY))
    assert {fault.message.split(":")[0] for fault in caught.value.faults} == {"rule 'p'", "rule 'q'"}
    assert uc.validate(EVENTS, query=uc.rules(RULES)) == []


def test_faults_of_every_kind_are_told_together() -> None:
    rules = uc.rules({"k": "PATTERN SEQ(A a) WHERE a.nosuch > 1 WITHIN 2", "s": "PATTERN SEQ(A a) WITHIN 2"})
    rules = Rules([rules["k"], replace(rules["s"], suppress=suppression_of("5 BY host"))])
    with pytest.raises(uc.OptionError, match=r"(?s)rule 's': suppress ... BY host.*rule 'k': .*nosuch"):
        uc.match(EVENTS, rules)


def test_ids_are_unique_where_each_rule_needs_it() -> None:
    again = EVENTS.set_column(1, "id", pa.array([0, 1, 2, 3, 4, 5, 0])).set_column(
        5, "k", pa.array([*"xxxxxxy"])
    )
    by_key = uc.rules({"r": SHAPE.format(3)})
    assert uc.validate(again, query=by_key) == []
    both = uc.rules(RULES)
    assert [fault.column for fault in uc.validate(again, query=both)] == ["id"]


@pytest.mark.parametrize("command", ["explain", "validate"])
def test_commands_take_rules(command: str, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    for name, query in RULES.items():
        (tmp_path / "rules" / f"{name}.sase").write_text(query)
    pa.csv.write_csv(EVENTS, tmp_path / "t.csv")
    folder, trace = str(tmp_path / "rules"), str(tmp_path / "t.csv")
    arguments = ["explain", folder, trace] if command == "explain" else ["validate", trace, "--query", folder]
    result: Any = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert ("5 rules of 7 events" if command == "explain" else "5 rules can be asked") in result.output
    (tmp_path / "rules" / "p.sase").write_text(FAULTY["p"])
    (tmp_path / "rules" / "q.sase").write_text(FAULTY["q"])
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "rule 'p': " in result.output
    assert "rule 'q': " in result.output


def test_parameters_belong_to_rules(tmp_path: Path) -> None:
    with pytest.raises(uc.OptionError, match="a rule brings the values of its own"):
        uc.validate(EVENTS, query=uc.rules(RULES), parameters={"x": 1})
