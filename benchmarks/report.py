"""Results as tables on a terminal and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.figures import Figure, Results

__all__ = ["show", "write_json"]


def _number(value: str | float | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{int(value):,}" if value == int(value) else f"{value:,.4g}"


def _verdict(figure: Figure) -> str:
    if figure.passed is None:
        return ""
    return "[green]pass[/green]" if figure.passed else "[bold red]FAIL[/bold red]"


def show(name: str, results: Results, console: Console) -> None:
    """Print the figures of one benchmark, what explains them and what failed."""
    table = Table(title=name, title_justify="left", title_style="bold")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for heading in ("unit", "target", "", "note"):
        table.add_column(heading)
    for figure in results.figures:
        target = figure.target
        bound = "" if target is None else f"{target.bound} {_number(target.value)}"
        table.add_row(figure.name, _number(figure.value), figure.unit, bound, _verdict(figure), figure.note)
    console.print(table)
    for title, rows in results.breakdowns.items():
        if rows:
            console.print(_breakdown(title, rows))
    for failure in results.failures:
        console.print("[bold red]not measured[/bold red]", failure)


def _breakdown(title: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in rows[0]:
        table.add_column(heading)
    for row in rows:
        table.add_row(*(_number(value) for value in row.values()))
    return table


def write_json(path: Path, facts: dict[str, Any], results: dict[str, Results]) -> None:
    """Write everything measured so far, so that an interrupted run keeps what it has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = facts | {
        "benchmarks": {name: results_of_benchmark.record() for name, results_of_benchmark in results.items()}
    }
    path.write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")
