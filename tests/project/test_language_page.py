"""Every example of docs/language.md is run, and gives what the page says."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "language.md"


def test_the_examples_run() -> None:
    text = PAGE.read_text(encoding="utf-8")
    # A fence ends an example; to doctest it would be output.
    text = text.replace("```python\n", "\n").replace("```\n", "\n")
    examples = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    assert len(examples.examples) > 5
    result = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(examples)
    assert result.failed == 0
