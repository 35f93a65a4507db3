"""Golden cases in text files: a name, an input, and what must come of it.

A case is ``=== name``, the input, a line ``---``, and the expected text. With ``REWRITE_GOLDENS=1`` in
the environment the expected texts are written anew instead of compared; read the difference.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    given: str
    expected: str


def cases(file: str) -> list[Case]:
    cases_found = []
    for block in ("\n" + (FOLDER / file).read_text(encoding="utf-8")).split("\n=== ")[1:]:
        name, _, content = block.partition("\n")
        question, _, expected = f"{content}\n".partition("\n---\n")
        cases_found.append(Case(name.strip(), question, expected.strip("\n")))
    return cases_found


def compare(file: str, case: Case, answer: Callable[[str], str]) -> None:
    reply = answer(case.given)
    if os.environ.get("REWRITE_GOLDENS") == "1":
        rewritten = [
            Case(case_in_file.name, case_in_file.given, reply) if case_in_file == case else case_in_file
            for case_in_file in cases(file)
        ]
        text = "\n".join(
            f"=== {case_in_file.name}\n{case_in_file.given}\n---\n{case_in_file.expected}\n"
            for case_in_file in rewritten
        )
        (FOLDER / file).write_text(text, encoding="utf-8")
        return
    assert reply == case.expected
