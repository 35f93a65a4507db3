"""The examples of the documents agree with the types of the library."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from mypy import api

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
FIRST_PAGE: Final = "language.md#by-example"
BEFORE: Final = """\
# mypy: allow-untyped-defs, allow-untyped-calls, allow-redefinition, disable-error-code="type-arg"
from typing import Any
"""
"""A reader's code has no annotations. One page names values anew, as a reader does."""

GIVEN: Final = ("events", "query", "schema", "batches", "rules", "spark", "limit")
"""What examples have before they begin; the tests that run them say with which values."""


OF_NO_EXTRA: Final = 'module named "deltalake"'
"""A library that examples use, and that nothing here depends on."""
OF_A_FUNCTION: Final = '"Callable[[Any], Any]" has no attribute "unit"'
"""A reader of a format of one's own says its unit by an attribute, which mypy does not know of functions."""


def code(page: Path) -> str:
    """Return the blocks of Python of a page as one module, without prompts and output."""
    text = page.read_text(encoding="utf-8")
    if FIRST_PAGE in text and page.name != "language.md":
        first = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
        text = re.findall(r"(?ms)^```python\n>>> import.*?^```\n", first)[0] + text
    lines: list[str] = []
    for block in re.findall(r"^```(?:python|pycon|py)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if block.startswith(">>> "):
            typed = [line for line in block.splitlines() if re.match(r"(>>>|\.\.\.)( |$)", line)]
            lines += [line[4:] for line in typed]
        else:
            lines += block.splitlines()
    return "\n".join(lines) + "\n"


def module(page: Path) -> str:
    """Return the module of a page; a name that it does not define itself may be anything."""
    text = code(page)
    undefined = [
        name
        for name in GIVEN
        if not re.search(rf"^(?:{name}\b|.*, {name}\b).* = |^def {name}\b", text, re.MULTILINE)
    ]
    return BEFORE + "".join(f'{name}: Any = globals()["{name}"]\n' for name in undefined) + text


def write_modules(folder: Path) -> None:
    """Write a module for each page that has examples, and one with an option that there is not."""
    for page in PAGES:
        if code(page).strip():
            (folder / f"page_{page.stem.lower().replace('-', '_')}.py").write_text(module(page))
    (folder / "wrong.py").write_text(
        f"{BEFORE}import uncertain_cep as uc\nuc.match([], 'q', tick=1.5, treshold=1)\n"
    )


def test_the_examples_have_the_types_of_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    write_modules(tmp_path)
    said, faults, _ = api.run([str(tmp_path), "--config-file", str(ROOT / "pyproject.toml")])
    lines = [line for line in said.splitlines() if ": error: " in line]
    lines = [line for line in lines if OF_A_FUNCTION not in line and OF_NO_EXTRA not in line]
    of_pages = [line for line in lines if "wrong.py" not in line]
    assert (of_pages, faults) == ([], ""), said
    # A wrong option is told.
    assert any("wrong.py" in line and "treshold" in line for line in lines)


@pytest.mark.thorough
@pytest.mark.skipif(
    shutil.which("pyright") is None, reason="there is no pyright: pip install 'pyright[nodejs]'"
)
def test_pyright_finds_the_same(tmp_path: Path) -> None:
    write_modules(tmp_path)
    settings = {"extraPaths": [str(ROOT)], "typeCheckingMode": "basic"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = ["pyright", "--project", str(tmp_path), "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [one for one in json.loads(done.stdout)["generalDiagnostics"] if one["severity"] == "error"]
    of_pages = [one for one in errors if not one["file"].endswith("wrong.py")]
    assert [one for one in of_pages if "deltalake" not in one["message"]] == []
    assert any("treshold" in one["message"] for one in errors)
