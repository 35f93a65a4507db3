"""The documents are written in short sentences, and in words that need no decoding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = sorted(
    page
    for page in (
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")),
        *(ROOT / name / "README.md" for name in ("tests", "benchmarks", "datasets")),
        ROOT / "RELEASING.md",
        ROOT / "CODE_OF_CONDUCT.md",
    )
)
LONGEST: Final = 30
"""Words of a sentence; code counts as one."""

DECODED: Final = (
    "in the way of those", "those that are asked", "what was given to it", "is told of in", "are told of in",
    "what no tick", "the folder from which it is run", "can have been off by bounds", "alike likely that",
    "holds every way it can", "the one that is to be", "of which none is to", "what makes of",
)  # fmt: skip
"""Phrases that a reader has to take apart."""


def units(text: str) -> Iterator[str]:
    """Yield paragraphs and items of lists, without tables, headings and code."""
    text = re.sub(r"```.*?```", "\n\n", text, flags=re.DOTALL)
    text = re.sub(r"`[^`]*`", "X", text)
    text = re.sub(r"\[([^\]]*)\]\([^)\s]*\)", r"\1", text)
    for block in re.split(r"\n\s*\n", text):
        words: list[str] = []
        for line in block.splitlines():
            item = re.match(r"\s*(?:[-*]|\d+\.) ", line)
            if item or line.lstrip().startswith(("|", "#", ">")):
                yield " ".join(words)
                words = []
            if not line.lstrip().startswith(("|", "#", ">")):
                words.append(line[item.end() :] if item else line)
        yield " ".join(words)


def sentences(text: str) -> list[str]:
    """Return the sentences of a document."""
    ends = r"(?<=[.!?])[*_\"\u201d)]*\s+(?=[^a-z])"
    return [sentence for unit in units(text) for sentence in re.split(ends, unit.strip()) if sentence]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_are_short(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [one for one in sentences(text) if len(one.split()) > LONGEST] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_phrase_has_to_be_decoded(page: Path) -> None:
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert [phrase for phrase in DECODED if phrase in text] == []


def test_what_a_sentence_is() -> None:
    text = "# No `x.y` title\n\nOne is `a b c`. Two.\n- An [item](x.md#y) is\n  one unit.\n\n| a. b |\n"
    assert sentences(text) == ["One is X.", "Two.", "An item is   one unit."]
