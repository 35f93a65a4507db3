"""Tables of matches in IPython and notebooks, which show a pyarrow table as its chunks otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uncertain_cep.plurals import counted
from uncertain_cep.results.display import MatchTable, match_table

if TYPE_CHECKING:
    import pyarrow as pa
    from IPython.core.formatters import DisplayFormatter
    from IPython.lib.pretty import RepresentationPrinter

__all__ = ["show_matches"]

ROWS: Final = 20


def show_matches(formatter: DisplayFormatter | None = None) -> None:
    """Show what `match` returns as `show` does, in this session of IPython; other tables stay as they are.

    Parameters
    ----------
    formatter : DisplayFormatter, optional
        That of the running session unless another one is named. Without a session nothing happens.
    """
    if formatter is None:
        from IPython.core.getipython import get_ipython

        session = get_ipython()
        if session is None:
            return
        formatter = session.display_formatter
    assert formatter is not None
    formatter.formatters["text/html"].for_type_by_name("pyarrow.lib", "Table", _html)
    formatter.formatters["text/plain"].for_type_by_name("pyarrow.lib", "Table", _text)


def _shown(table: pa.Table) -> MatchTable | None:
    """Return a table to look at, or None of one that holds no matches, groups or counts."""
    names = set(table.column_names)
    if {"range_lower", "range_upper"} <= names:
        return match_table(table, None, ROWS, table.num_rows)
    if names.isdisjoint({"probability", "expected_count"}) or "lower" in names:
        return None
    groups = counted(table.num_rows, "group")
    caption = groups if table.num_rows <= ROWS else f"the first {ROWS} of {groups}"
    return MatchTable(table.slice(0, ROWS), caption)


def _html(table: pa.Table) -> str | None:
    shown = _shown(table)
    return None if shown is None else shown._repr_html_()


def _text(table: pa.Table, printer: RepresentationPrinter, _cycle: bool) -> None:
    printer.text(repr(_shown(table) or table))  # type: ignore[no-untyped-call]
