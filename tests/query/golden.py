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
    found = []
    for block in ("\n" + (FOLDER / file).read_text(encoding="utf-8")).split("\n=== ")[1:]:
        name, _, rest = block.partition("\n")
        given, _, expected = f"{rest}\n".partition("\n---\n")
        found.append(Case(name.strip(), given, expected.strip("\n")))
    return found


def compare(file: str, case: Case, answer: Callable[[str], str]) -> None:
    given = answer(case.given)
    if os.environ.get("REWRITE_GOLDENS") == "1":
        rewritten = [
            Case(found.name, found.given, given) if found == case else found for found in cases(file)
        ]
        text = "\n".join(f"=== {found.name}\n{found.given}\n---\n{found.expected}\n" for found in rewritten)
        (FOLDER / file).write_text(text, encoding="utf-8")
        return
    assert given == case.expected
