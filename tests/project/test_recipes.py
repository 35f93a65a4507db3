"""Each recipe for a kind of file does what its page says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from uncertain_cep.cli import main
from uncertain_cep.traces.readers import READERS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "recipes.md").read_text(encoding="utf-8")
RECIPES = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}


@pytest.mark.parametrize("title", RECIPES)
def test_the_recipe_gives_what_the_page_says(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = RECIPES[title]
    for name, content in re.findall(r"^`(\S+)`:\n\n```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(content)
    for name in re.findall(r"\(recipes/([^)]+)\)", text):
        shutil.copy(DOCS / "recipes" / name, tmp_path)
    (shown,) = re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    command, _, expected = shown.partition("\n")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, command.removeprefix("$ uncertain-cep ").split())
    assert (done.exit_code, done.stdout) == (0, expected), done.stderr
    assert "warning" not in done.stderr


def test_there_is_one_for_every_format() -> None:
    used = set(re.findall(r'(?:--input-format |^format = "|^line = ")([\w-]+)', PAGE, re.MULTILINE))
    assert used >= {*READERS}
