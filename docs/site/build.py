"""Build the documentation site: ``python -m docs.site.build OUT [BUILDER]``.

``python3 run.py docs`` does so. The pages of docs are laid out in a folder of their own, with what is made of
the code: the reference of public names, of schema files and of options, the catalogue of errors and warnings,
and the pictures. Nothing comes from the network, and a link that leads nowhere is an error.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import click

import uncertain_cep as uc
from docs.site import python_pages, search_words
from docs.site.catalogue import messages
from docs.site.drawings import DRAWINGS
from uncertain_cep.cli import main

SITE: Final = Path(__file__).resolve().parent
DOCS: Final = SITE.parent
ROOT: Final = DOCS.parent

CHAPTERS: Final[Mapping[str, tuple[str, ...]]] = {
    "Begin": (
        "tutorial",
        "which-file",
        "uncertainty",
        "notebooks/hadoop",
        "notebooks/kubernetes",
        "notebooks/process_logs",
    ),
    "How do I ...": (
        "cookbook",
        "recipes",
        "traces",
        "stamps",
        "ticks",
        "tables",
        "text-logs",
        "formats",
        "clocks",
        "clock-bounds",
        "known-order",
        "existence",
        "spans",
        "reports",
        "rules",
        "streams",
        "all-day",
        "spark",
        "testing",
    ),
    "Ask": (
        "language",
        "repetition",
        "gaps",
        "time-conditions",
        "sets",
        "probability",
        "drawn-worlds",
        "reference",
        "answers",
        "why",
        "calibration",
        "comparison",
    ),
    "Run": ("command-line", "plans", "performance", "limits"),
    "Look up": ("api", "schema-files", "options", "errors"),
    "The project": (
        "stability",
        "tested",
        "datasets",
        "benchmarks",
        "architecture",
        "contributing",
        "conduct",
        "security",
        "changelog",
    ),
}
"""The chapters of the site, and their pages."""

OF_THE_ROOT: Final = {
    "architecture": "ARCHITECTURE.md",
    "contributing": "CONTRIBUTING.md",
    "conduct": "CODE_OF_CONDUCT.md",
    "security": "SECURITY.md",
    "changelog": "CHANGELOG.md",
    "datasets": "datasets/README.md",
    "benchmarks": "benchmarks/README.md",
}
"""Pages that stand elsewhere in the project."""


def lay_out(folder: Path) -> None:
    """Write the pages of the site into an empty folder, as Sphinx takes them."""
    for page in DOCS.rglob("*.md"):
        _write(folder / page.relative_to(DOCS), page.read_text(encoding="utf-8"), page)
    for name, file in OF_THE_ROOT.items():
        _write(folder / f"{name}.md", (ROOT / file).read_text(encoding="utf-8"), ROOT / file)
    shutil.copytree(ROOT / "notebooks", folder / "notebooks", ignore=shutil.ignore_patterns(".*"))
    shutil.copytree(DOCS / "recipes", folder / "recipes")
    shutil.copytree(SITE / "static", folder / "static")
    shutil.copy(SITE / "conf.py", folder)
    if (DOCS / "pictures").is_dir():
        shutil.copytree(DOCS / "pictures", folder / "pictures")
    # The site begins with the picture, which fits any screen; a terminal has the same in letters.
    picture = "![A task starts, its CPU peaks, it finishes: when each can have happened]"
    readme = re.sub(
        r"^```\n.*?^```$",
        f"{picture}(docs/drawings/first-match.svg)",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        count=1,
        flags=re.MULTILINE | re.DOTALL,
    )
    _write(folder / "index.md", readme + "\n" + "\n".join(_contents()), ROOT / "README.md")
    for name, made in (
        ("api", python_pages.contents),
        ("schema-files", _schema),
        ("options", _options),
        ("errors", _catalogue),
    ):
        (folder / f"{name}.md").write_text("\n".join(made()), encoding="utf-8")
    (folder / "api").mkdir()
    for name, text in python_pages.pages():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / "drawings").mkdir()
    for name, draw in DRAWINGS.items():
        (folder / "drawings" / f"{name}.svg").write_text(draw(), encoding="utf-8")


def _write(place: Path, text: str, source: Path) -> None:
    """Write a page whose links lead to the pages of the site."""
    pages = {(ROOT / file).resolve(): name for name, file in OF_THE_ROOT.items()}
    pages[ROOT / "README.md"] = "index"

    def link(found: re.Match[str]) -> str:
        target, _, anchor = found[2].partition("#")
        if not target or "://" in target or target.startswith("pictures/report-"):
            return found[0]
        path = (source.parent / target).resolve()
        if path.is_dir() and (ROOT / "datasets") in (path, *path.parents):
            path = ROOT / "datasets" / "README.md"
        if path in pages:
            name = f"/{pages[path]}.md"
        elif ROOT / "notebooks" in path.parents:
            name = f"/{path.relative_to(ROOT).as_posix()}"
        elif DOCS in path.parents:
            name = f"/{path.relative_to(DOCS).as_posix()}"
        else:
            # It is a file of the project, and no page.
            return found[1].strip("[]")
        return f"{found[1]}({name}{'#' + anchor if anchor else ''})"

    text = re.sub(r"(\[[^\]]*\])\(([^)\s]+)\)", link, text)
    # Elsewhere queries are shown as SQL, which is nearest; here they have colours of their own.
    text = re.sub(r"^```sql\n(?=(?:--.*\n)*PATTERN (?:SEQ|AND|OR)\b)", "```sase\n", text, flags=re.MULTILINE)
    # Pictures of the report are there once a browser has taken them.
    there = {picture.name for picture in (DOCS / "pictures").glob("*.png")}
    wanted = re.compile(r"^!\[[^\]]*\]\(pictures/([^)]+)\)$", re.MULTILINE)
    text = wanted.sub(lambda found: found[0] if found[1] in there else "", text)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(_searchable(text, place.stem), encoding="utf-8")


def _searchable(text: str, page: str) -> str:
    """Return a page with the words under which the search lists it first, behind its title."""
    if page not in search_words.TYPED:
        return text
    title, _, said = text.partition("\n")
    return f"{title}\n\n{search_words.entries(search_words.TYPED[page])}\n{said}"


def _contents() -> Iterator[str]:
    """Yield the chapters; the README has short names of pages, whose titles are questions."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    names = {
        page: name for name, page in re.findall(r"^\| \[([^\]]+)\]\(docs/([^)]+)\.md\)", readme, re.MULTILINE)
    }
    for caption, pages in CHAPTERS.items():
        listed = (f"{names[page]} <{page}>" if page in names else page for page in pages)
        yield from ("```{toctree}", ":hidden:", f":caption: {caption}", *listed, "```", "")


def _schema() -> Iterator[str]:
    """Yield what a schema file can have, which is the documentation of its class."""
    yield "# Schema files\n\n[Traces](/traces.md) says what they are for.\n"
    yield "```{eval-rst}\n.. autoclass:: uncertain_cep.traces.TraceSchema\n```\n"


def _options() -> Iterator[str]:
    """Yield the help of every command."""
    yield "# Commands and options\n\n[Command line](/command-line.md) says what they are for.\n"
    commands: list[tuple[tuple[str, ...], click.Command]] = [(("uncertain-cep",), main)]
    for path, command in commands:
        if isinstance(command, click.Group):
            commands += [((*path, name), part) for name, part in sorted(command.commands.items())]
            continue
        context = click.Context(command, info_name=" ".join(path), max_content_width=100)
        yield f"## {' '.join(path[1:])}\n\n{search_words.entries(search_words.of_options(command))}"
        yield f"```text\n{command.get_help(context)}\n```\n"


def _catalogue() -> Iterator[str]:
    """Yield the errors with what is said where they are raised, and the warnings."""
    yield "# Errors and warnings\n"
    yield "Every error of the library is an `UncertainCepError`. The messages are read from the code; `…`"
    yield "stands for what they name. What Spark, Kafka and Arrow say themselves is not among them.\n"
    said = messages()
    for name in (name for name in uc.__all__ if name.endswith("Error")):
        yield f"## {name}\n\n```{{eval-rst}}\n.. autoexception:: uncertain_cep.errors.{name}\n```\n"
        if words := search_words.of_messages(said.get(name, ())):
            yield search_words.entries(words)
        yield from map(_item, said.get(name, ()))
        yield ""
    warning = "uncertain_cep.errors.UncertainCepWarning"
    yield f"## UncertainCepWarning\n\n```{{eval-rst}}\n.. autoexception:: {warning}\n```\n"
    yield search_words.entries(search_words.of_messages(said["warn"]))
    yield from map(_item, said["warn"])


def _item(text: str) -> str:
    """Return a message as it stands in a list of Markdown."""
    return "- " + re.sub(r"([\\`*_\[\]<>{}$|])", r"\\\1", text)


def build(out: Path, builder: str = "html") -> int:
    """Build the site into a folder, and return the exit code of Sphinx: links that lead nowhere are errors.

    The builder ``dummy`` checks everything and writes nothing.
    """
    from sphinx.cmd.build import build_main

    with tempfile.TemporaryDirectory() as folder:
        lay_out(Path(folder) / "pages")
        options = ["-q", "-W", "--keep-going", "-b", builder, "-d", f"{folder}/doctrees"]
        return build_main([*options, f"{folder}/pages", str(out)])


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1]).resolve(), *sys.argv[2:]))
