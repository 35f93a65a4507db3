"""The pages of the Python names: one page a function, listed by task."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Final

import uncertain_cep as uc
import uncertain_cep.spark

__all__ = ["ORACLE", "TASKS", "contents", "page_of", "pages", "public_names"]

ORACLE: Final = (
    "Clock", "Component", "Event", "Match", "Predicate", "Query", "conj", "disj", "no", "one", "plus",
    "seq", "where",
)  # fmt: skip
"""The oracle's words, which have one page."""

TASKS: Final[Mapping[str, tuple[str, ...]]] = {
    "Match": (
        "uc.match", "uc.iter_matches", "uc.explain", "uc.parse", "uc.sql", "uc.rules", "uc.with_matches",
        "uc.to_events",
        "uc.draw_worlds", "uc.Approximation", "uc.Names", "uc.Query",
    ),
    "Read": (
        "uc.read_traces", "uc.load_schema", "uc.to_intervals", "uc.spans", "uc.validate",
        "uc.examples.events",
        "uc.examples.folder", "uc.examples.names", "uc.examples.queries",
    ),
    "Say how uncertain times are": (
        "uc.exact", "uc.plus_minus", "uc.granularity", "uc.as_written", "uc.window", "uc.period",
        "uc.columns",
        "uc.histogram", "uc.by_value",
    ),
    "Clocks": (
        "uc.clock_offset", "uc.infer_offsets", "uc.causal", "uc.encloses", "uc.all_before",
        "uc.read_clock_log",
    ),
    "Look": (
        "uc.show", "uc.report", "uc.events_of", "uc.posteriors", "uc.why", "uc.why_not", "uc.deciding",
        "uc.calibration",
        "uc.plot.calibration", "uc.plot.confidence", "uc.plot.counts", "uc.plot.plan", "uc.plot.timeline",
        "uc.plot.why",
    ),
    "Join, order, measure": ("uc.join", "uc.join_asof", "uc.order", "uc.elapsed"),
    "Streams": ("uc.IncrementalMatcher", "uc.RuleMatcher"),
    "Spark": tuple(f"uncertain_cep.spark.{name}" for name in uncertain_cep.spark.__all__),
    "Test": (
        "uc.testing.assert_certain", "uc.testing.assert_likely", "uc.testing.assert_never",
        "uc.testing.assert_answer",
        "uc.testing.answer", "uc.testing.answer_literally", "uc.testing.probabilities", "uc.testing.table",
        "uc.testing.strategies.events", "uc.testing.strategies.queries", "uc.testing.strategies.Question",
    ),
    "Prepare": ("uc.warm_up",),
}  # fmt: skip
"""What one does, and the names for it; the most used ones first."""

PICTURES: Final[Mapping[str, tuple[str, str]]] = {
    "uc.match": (
        "drawings/intervals.svg",
        "Three events: their intervals, how sure their order is, and when",
    ),
    "uc.draw_worlds": ("drawings/worlds.svg", "The worlds of two events as a table of ticks"),
    "uc.period": (
        "drawings/metrics.svg",
        "An average is of all ticks, a maximum and an increase are of one of them",
    ),
    "uc.window": (
        "drawings/metrics.svg",
        "An average is of all ticks, a maximum and an increase are of one of them",
    ),
    "uc.report": ("pictures/report-light.png", "The first screen of a report"),
    "uc.plot.timeline": ("pictures/report-match.png", "A match with its events on a time line"),
    "uc.order": ("pictures/report-order.png", "The order of four events as a graph"),
}
"""A picture of what a name gives, beside the example of its docstring."""

ELSEWHERE: Final[Mapping[str, str]] = {
    "Spark": "[Spark](/spark.md) and [Streams](/streams.md#streams-on-spark) have examples that run.",
    "Test": "[Testing](/testing.md) has examples that run.",
}
"""Where examples of a task stand that no docstring has."""


def public_names() -> dict[str, Any]:
    """Return everything public but errors and the oracle's words, by its full name."""
    names = {}
    modules = {"uc": uc, "uncertain_cep.spark": uncertain_cep.spark}
    modules |= {f"uc.{part}": getattr(uc, part) for part in ("examples", "plot", "testing")}
    modules["uc.testing.strategies"] = uc.testing.strategies
    for place, module in modules.items():
        for name in module.__all__:
            public = getattr(module, name)
            is_error = isinstance(public, type) and public.__module__ == "uncertain_cep.errors"
            if callable(public) and not is_error and not (place == "uc.testing" and name in ORACLE):
                names[f"{place}.{name}"] = public
    return names


def page_of(name: str) -> str:
    """Return the page of a name, such as ``api/match`` and ``api/plot-why``."""
    return "api/" + name.removeprefix("uncertain_cep.").removeprefix("uc.").replace(".", "-")


def _first_line(public: Any) -> str:
    return (inspect.getdoc(public) or "").partition("\n")[0].replace("``", "`").replace("|", "\\|")


def contents() -> Iterator[str]:
    """Yield the page that lists all names by task."""
    names = public_names()
    yield "# Python\n"
    yield "Everything public, by what you want to do. [Errors](/errors.md) have a page of their own.\n"
    for task, listed in TASKS.items():
        yield f"## {task}\n\n| name | |\n|---|---|"
        yield from (f"| [`{name}`](/{page_of(name)}.md) | {_first_line(names[name])} |" for name in listed)
        if task == "Test":
            yield "| [the oracle's words](/api/oracle.md) | Say events and queries to `uc.testing.answer` |"
        yield ""
    every = [page_of(name) for listed in TASKS.values() for name in listed]
    yield "\n".join(("```{toctree}", ":hidden:", *(f"/{page}" for page in (*every, "api/oracle")), "```"))


def pages() -> Iterator[tuple[str, str]]:
    """Yield each page of a name with its text."""
    names = public_names()
    for task, listed in TASKS.items():
        for name in listed:
            text = [f"# {name}\n", f"[{task}](/api.md)\n", _documented(name, names[name])]
            if name in PICTURES:
                file, said = PICTURES[name]
                text.append(f"![{said}](/{file})\n")
            if task in ELSEWHERE and ">>>" not in (inspect.getdoc(names[name]) or ""):
                text.append(f"{ELSEWHERE[task]}\n")
            yield page_of(name), "\n".join(text)
    words = [_documented(f"uc.testing.{name}", getattr(uc.testing, name)) for name in ORACLE]
    yield "api/oracle", "\n".join(["# The oracle's words\n", f"{ELSEWHERE['Test']}\n", *words])


def _documented(name: str, public: Any) -> str:
    full = name.replace("uc.", "uncertain_cep.", 1) if name.startswith("uc.") else name
    is_class = isinstance(public, type)
    members = "\n   :members:" if is_class else ""
    return f"```{{eval-rst}}\n.. auto{'class' if is_class else 'function'}:: {full}{members}\n```\n"
