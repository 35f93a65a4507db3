"""The documentation site: it builds, its links lead somewhere, and it names everything that there is."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pygments.token import Comment, Error, Keyword, Number

import uncertain_cep as uc
from docs.site import python_pages, search_words
from docs.site.build import CHAPTERS, DOCS, OF_THE_ROOT, ROOT, lay_out
from docs.site.catalogue import messages
from docs.site.drawings import DRAWINGS
from docs.site.query_lexer import QueryLexer
from tests.project.test_readme import every_command
from tests.query.golden import cases
from uncertain_cep.cli import main
from uncertain_cep.traces import TraceSchema, schema_document
from uncertain_cep.traces.events_schema import KINDS

MADE = {"api", "schema-files", "options", "errors"}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "pages"
    lay_out(folder)
    return folder


@pytest.mark.thorough
def test_every_page_is_written(tmp_path: Path) -> None:
    """Away from the cache of the tests' process; warnings, such as of links, are errors."""
    command = [sys.executable, "-m", "docs.site.build", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for page in (page for pages in CHAPTERS.values() for page in pages):
        assert (tmp_path / f"{page}.html").is_file()
    assert not re.search(
        r'(?:src|href)="https?://[^"]*\.(?:js|css|woff2?)"', (tmp_path / "index.html").read_text()
    )


def test_queries_are_coloured_to_the_last_letter() -> None:
    texts = [file.read_text(encoding="utf-8") for file in (ROOT / "datasets").rglob("*.query")]
    for page in DOCS.glob("*.md"):
        texts += re.findall(
            r"^```sase\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
    assert len(texts) > 10
    for text in texts:
        tokens = list(QueryLexer().get_tokens(text))
        assert "".join(part for _, part in tokens).strip() == text.strip()
        assert [part for kind, part in tokens if kind in Error] == [], text
    kinds = {part: kind for kind, part in QueryLexer().get_tokens("PATTERN SEQ(A a) WITHIN 5 s -- x")}
    assert (kinds["PATTERN"], kinds["5"], kinds["-- x"]) == (Keyword, Number, Comment.Single)


def test_every_page_is_in_a_chapter() -> None:
    listed = [page for pages in CHAPTERS.values() for page in pages]
    written = {page.stem for page in DOCS.glob("*.md")}
    notebooks = {f"notebooks/{file.stem}" for file in (ROOT / "notebooks").glob("*.ipynb")}
    assert sorted(listed) == sorted(written | notebooks | MADE | OF_THE_ROOT.keys())


def test_every_block_of_python_is_run_by_some_test() -> None:
    tests = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    for page in DOCS.glob("*.md"):
        blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
        # Those as in a shell are run wherever they stand.
        if any(not block.startswith(">>>") for block in blocks):
            assert page.name in tests, page.name


def test_every_public_name_has_a_page_with_an_example(pages: Path) -> None:
    names = python_pages.public_names()
    assert sorted(name for listed in python_pages.TASKS.values() for name in listed) == sorted(names)
    first = (pages / "api.md").read_text()
    for name in names:
        page = (pages / f"{python_pages.page_of(name)}.md").read_text()
        assert page.startswith(f"# {name}\n")
        assert f"[`{name}`](/{python_pages.page_of(name)}.md)" in first
        has_example = ">>>" in (inspect.getdoc(names[name]) or "")
        assert has_example or "have examples that run" in page or "has examples that run" in page, name
    raised = (pages / "errors.md").read_text()
    assert all(f"errors.{name}" in raised for name in uc.__all__ if name.endswith(("Error", "Warning")))


def test_words_that_people_type_are_those_of_one_page() -> None:
    words = [word for listed in search_words.TYPED.values() for word in listed]
    assert len(set(words)) == len(words) > 200
    assert search_words.TYPED.keys() <= {page.stem for page in DOCS.glob("*.md")}


def test_every_option_is_in_the_reference(pages: Path) -> None:
    text = (pages / "options.md").read_text()
    for command in every_command(main):
        for parameter in command.params:
            assert (
                getattr(parameter, "hidden", False)
                or max(parameter.opts, key=len) in text.lower()
                or (max(parameter.opts, key=len).upper() in text)
            )


def test_every_key_of_a_schema_file_is_documented() -> None:
    text = f"{TraceSchema.__doc__}"
    keys = {*schema_document._TOP, *schema_document._EVENTS, *schema_document._CONSTRAINTS}
    for kind, spec in KINDS.items():
        keys |= {kind, *spec.arguments}
    assert {key for key in keys if not re.search(rf"\b{key}\b", text)} == set()


GOLDENS = ("syntax_errors.txt", "query_errors.txt", "row_condition_errors.txt", "binding_errors.txt")


def test_messages_of_queries_are_in_the_catalogue() -> None:
    catalogue = messages()
    patterns = [
        re.compile(".*".join(map(re.escape, text.split("…"))))
        for name in ("QueryError", "QuerySyntaxError")
        for text in catalogue[name]
    ]
    said = {
        re.sub(r"\s+", " ", text)
        for file in GOLDENS
        for case in cases(file)
        for text in re.findall(r"^line \d+, column \d+: (.*)$", case.expected, re.MULTILINE)
    }
    assert len(said) > 150
    assert [text for text in said if not any(one.fullmatch(text) for one in patterns)] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("warn", "no event of type …; did you mean …?"),
        ("warn", "… events agree in everything with an earlier one: left out; … are kept"),
        ("TraceError", "there is no such column"),
        ("TraceError", "there is no such file: check the path"),
        ("TraceError", 'is missing: name the column of the stamps, such as time = "timestamp"'),
        ("OptionError", "tick=…: the schema says …: leave one of them out"),
        ("TimeLimitError", "stopped after … s: that is the time limit."),
        ("MemoryLimitError", "stopped at the memory limit"),
        ("TraceError", "it is no XML, or cut off: …"),
        ("ConfidenceCostError", "a match has several events of each of the clocks …, and its confidence"),
        ("RuntimeEnvironmentError", "Kafka at … has no topic …"),
    ],
)
def test_the_catalogue_has_such_a_message(name: str, text: str) -> None:
    assert any(message.startswith(text) for message in messages()[name]), messages()[name]


def test_the_catalogue_has_messages_of_every_error() -> None:
    errors = {name for name in uc.__all__ if name.endswith("Error")} - {"UncertainCepError"}
    assert messages().keys() == errors | {"warn"}


@pytest.mark.parametrize("name", DRAWINGS)
def test_drawings_tell_what_the_oracle_found(name: str) -> None:
    numbers = {"worlds": "13/16", "intervals": "time range: 0 to 9", "negation": "no alarm between"}
    numbers["metrics"] = "the maximum was before the error: 1/2"
    numbers["first-match"] = "probability 0.61"
    assert numbers[name] in DRAWINGS[name]()


def test_the_site_begins_with_the_picture_of_the_match_that_the_readme_has_in_letters(pages: Path) -> None:
    first = (pages / "index.md").read_text().split("## Start")[0]
    assert "(/drawings/first-match.svg)" in first
    assert "```" not in first
    drawn = (pages / "drawings" / "first-match.svg").read_text()
    letters = (ROOT / "README.md").read_text().split("```")[1]
    for number in ("0.61", "08:00:01.6", "08:00:11.9"):
        assert number in drawn
        assert number in letters
