"""Every example of the pages that are written as in a shell is run, and gives what the page says."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
FIRST_PAGE = "language.md#by-example"
"""Pages that link to it go on with the events of its example."""


@pytest.mark.parametrize("name", [page.name for page in DOCS.rglob("*.md") if ">>> " in page.read_text()])
def test_the_examples_run(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    if FIRST_PAGE in text:
        first_page = (DOCS / "language.md").read_text(encoding="utf-8")
        text = re.findall(r"(?ms)^```python\n>>> import.*?^```\n", first_page)[0] + text
    # A fence ends an example; to doctest it would be output.
    text = text.replace("```python\n", "\n").replace("```\n", "\n")
    examples = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    result = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(examples)
    assert result.failed == 0
