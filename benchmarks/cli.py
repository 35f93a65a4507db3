"""The commands of ``python -m benchmarks``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import click
from rich.console import Console
from rich.table import Table

from benchmarks.figures import Options, Results
from benchmarks.isolated import ONE_THREAD, IsolatedError, end_on_request, run_isolated
from benchmarks.machine import facts
from benchmarks.paper_options import FIGURES, PaperOptions
from benchmarks.report import show, write_json
from benchmarks.tuned import FACTORS, moved_rows, swept, tunable
from benchmarks.weighed_cells import KINDS
from uncertain_cep.config import tuning

__all__ = ["main"]

Command: TypeAlias = Callable[..., Any]

_MAIN: Final = {
    "throughput": "throughput",
    "peers": "peers",
    "points": "points",
    "units": "units",
    "dense": "dense",
    "growth": "growth",
    "topk": "topk",
    "times": "timed",
    "clocks": "shared",
    "spans": "lasting",
    "expected": "expected",
    "groups": "groups",
    "language": "language",
    "plans": "plans",
    "rules": "many_rules",
    "threads": "multicore",
    "memory": "memory",
    "spark": "spark_job",
    "cold": "cold",
    "latency": "latency",
    "compile": "compiling",
    "readers": "readers",
    "lines": "spark_lines",
}
"""Name of a benchmark -> its module, in the order in which they run."""

_BRIEF_ROUNDS: Final = 2
_BRIEF_SCALE: Final = 0.2

_WIDTH: Final = 160
"""Characters of a line where there is no terminal to ask."""

_AS_USERS_CALL: Final = frozenset({"cold", "latency"})
"""Modules of benchmarks that leave it to the program whether kernels are compiled."""

_MANY_THREADS: Final = frozenset({"spark", "cold", "threads", "lines", "groups"})


@click.group()
def main() -> None:
    """Measure uncertain_cep beside its targets and its peers."""


def _measure(module: str, options: Options, *arguments: object) -> Results:
    if module not in _AS_USERS_CALL:
        # Rounds of few events measure compiled kernels, too.
        tuning.FEW_EVENTS = 0
    results: Results = import_module(f"benchmarks.{module}").measure(options, *arguments)
    return results


def _default_core() -> int | None:
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


_OPTIONS: Final = (
    click.option("--rounds", type=click.IntRange(1), default=5, show_default=True,
                 help="Rounds after the warm-up."),
    click.option("--scale", type=click.FloatRange(0, 1, min_open=True), default=1.0, show_default=True,
                 help="Factor on the numbers of events; the targets are for 1."),
    click.option("--clock", type=click.Choice(("wall", "cpu")), default="wall", show_default=True,
                 help="Time passed, or (other than for Spark) time on the processor."),
    click.option("--core", type=click.IntRange(0), default=_default_core,
                 help="Core for figures of one core; default: the last one."),
    click.option("--brief", is_flag=True,
                 help="A fifth of the events, two rounds, and no more than figures need: to take turns."),
    click.option("--check", is_flag=True, help="Exit with 1 if a target is missed or a figure is missing."),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _JobOptions:
    """The options that all jobs share, and where the results go."""

    options: Options
    json_path: Path
    check: bool


def _measured(name: str) -> Callable[[Command], Command]:
    """Add the options that all jobs share; the job is called with those as one, and its own."""

    def add(command: Command) -> Command:
        @wraps(command)
        def job(
            rounds: int, scale: float, clock: Literal["wall", "cpu"], core: int | None, json_path: Path,
            brief: bool, check: bool, **job_settings: Any,
        ) -> None:  # fmt: skip
            if brief:
                rounds, scale = min(rounds, _BRIEF_ROUNDS), scale * _BRIEF_SCALE
            command(_JobOptions(Options(rounds, scale, clock, core, brief), json_path, check), **job_settings)

        decorated: Command = job
        path = click.option(
            "--json", "json_path", type=click.Path(dir_okay=False, path_type=Path),
            default=Path(f"build/benchmarks/{name}.json"), show_default=True, help="Where the JSON goes.",
        )  # fmt: skip
        for option in reversed((*_OPTIONS, path)):
            decorated = option(decorated)
        return decorated

    return add


@main.command("main")
@click.option("--only", multiple=True, type=click.Choice(tuple(_MAIN)), help="Only this; can be repeated.")
@_measured("main")
def main_job(job_options: _JobOptions, only: tuple[str, ...]) -> None:
    """Measure the main job: throughput, peers, growth, top-k, counts, language, plans, memory, Spark, ..."""
    _run({name: module for name, module in _MAIN.items() if not only or name in only}, job_options)


def _add_job(name: str, module: str, explanation: str) -> None:
    """Add a command for a benchmark that is not among those of the main job."""

    @main.command(name, help=explanation)
    @_measured(name)
    def job(job_options: _JobOptions) -> None:
        _run({name: module}, job_options)


_add_job(
    "fit", "fitting", "Fit the prices that the planners go by to runs of random patterns on this machine."
)
_add_job("fit-weighers", "weigher_prices", "Fit what a match and a multiplication of each weigher take.")
_add_job(
    "incremental",
    "incremental",
    "Measure the incremental methods: throughput in batches and by event, and the state they hold.",
)


@main.command("weighers")
@click.option(
    "--beside",
    type=click.Path(exists=True, file_okay=False),
    help="Another checkout, measured in turns with this one.",
)
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(tuple(KINDS)), help="Only this; can be repeated."
)
@_measured("weighers")
def weighers_job(job_options: _JobOptions, beside: str | None, kinds: tuple[str, ...]) -> None:
    """Measure a match by what its confidence depends on, in one checkout or beside another."""
    _run({"weighers": "weighers"}, job_options, lambda _: (beside, kinds))


@main.command("tune")
@click.argument("name", type=click.Choice(tunable()))
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(tuple(_MAIN)),
    default=("throughput", "topk", "language"),
    show_default=True,
    help="The rows to look at; can be repeated.",
)
@click.option("--turns", type=click.IntRange(1), default=3, show_default=True, help="Runs of each value.")
def tune_job(name: str, only: tuple[str, ...], turns: int) -> None:
    """Measure rows of the main job with a number of the tuning at a quarter, as it is, and at four times.

    A number that moves no row by 10% is a constant of its code, or goes.
    """
    figures = swept(name, only, turns)
    table = Table(
        "row", *(f"x {factor:g}" for factor in FACTORS), title=f"{name} = {getattr(tuning, name):g}"
    )
    for row, shares in (moved := moved_rows(figures)).items():
        table.add_row(row, *(f"{shares.get(factor, float('nan')):.2f}" for factor in FACTORS))
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    console.print(table)
    console.print(
        f"{len(moved)} of {len(figures[1.0])} rows are moved by 10% or more, as shares of those as it is"
    )


def _figures(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    if value is None:
        return FIGURES
    names = tuple(name.strip() for name in value.split(","))
    if unknown := [name for name in names if name not in FIGURES]:
        raise click.BadParameter(f"{unknown[0]!r} is none of {', '.join(FIGURES)}")
    return names


@main.command("paper")
@click.option("--only", callback=_figures, metavar="NAME,...", help=f"Only these of {', '.join(FIGURES)}.")
@click.option("--quick", is_flag=True, help="Shorter rounds over shorter streams.")
@click.option(
    "--events",
    type=click.IntRange(1000),
    default=7_000_000,
    show_default=True,
    help="Log events of the case study.",
)
@_measured("paper")
def paper_job(job_options: _JobOptions, only: tuple[str, ...], quick: bool, events: int) -> None:
    """Measure the figures of the paper, and draw them into a folder named like the JSON."""
    folder = str(job_options.json_path.with_suffix(""))
    paper = PaperOptions(folder, quick, max(int(events * job_options.options.scale), 1000))
    _run(dict.fromkeys(only, "paper"), job_options, lambda name: (paper, name))


def _run(
    jobs: dict[str, str],
    job_options: _JobOptions,
    arguments: Callable[[str], tuple[object, ...]] = lambda _: (),
) -> None:
    """Measure each job in a process of its own, show the results and write them."""
    end_on_request()
    console = Console() if sys.stdout.isatty() else Console(width=_WIDTH)
    about = facts() | {"options": asdict(job_options.options)}
    measured: dict[str, Results] = {}
    for name, module in jobs.items():
        console.print(f"measuring {name} ...", style="dim")
        environment = {} if name in _MANY_THREADS else ONE_THREAD
        try:
            results = run_isolated(
                _measure, module, job_options.options, *arguments(name), environment=environment
            )
        except IsolatedError as error:
            results = Results(failures=[str(error)])
        measured[name] = results
        show(name, results, console)
        write_json(job_options.json_path, about, measured)
    console.print(f"results: {job_options.json_path}")
    missed = [
        figure
        for results_of_job in measured.values()
        for figure in results_of_job.figures
        if figure.passed is False
    ]
    if job_options.check and (missed or any(results_of_job.failures for results_of_job in measured.values())):
        sys.exit(1)
