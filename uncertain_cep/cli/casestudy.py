"""``uncertain-cep casestudy``: the main job, from simulated logs to matches, on Spark."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from uncertain_cep import examples
from uncertain_cep.cli.arguments import TraceOptions, out_option, overwrite_option
from uncertain_cep.cli.progress import compiling_aside, note, show, working
from uncertain_cep.errors import OptionError
from uncertain_cep.results.output_place import check_output_place

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["casestudy"]

BEST: Final = 5
"""Matches of each query that are printed."""


REPORT: Final = "report.html"
"""The page of the query with the most matches."""


@click.command()
@out_option(
    "A directory for the trace, in trace/, the matches, in matches/, and a page to look at.", required=True
)
@overwrite_option
@click.option(
    "--queries",
    type=click.Path(path_type=Path),
    help="The directory of schema.toml and the queries, *.query.  [default: those of the example cluster]",
)
@click.option("--master", default="local[*]", show_default=True, help="Spark's master, on this machine.")
@click.option("--minutes", type=int, default=60, show_default=True, help="Length of the simulated trace.")
@click.option("--nodes", type=int, default=10, show_default=True, help="Number of simulated machines.")
@click.option("--seed", type=int, default=2010, show_default=True, help="The same seed gives the same trace.")
def casestudy(
    out: str, overwrite: bool, queries: Path | None, master: str, minutes: int, nodes: int, seed: int
) -> None:
    """Simulate an hour of cluster monitoring and run four queries over it on Spark.

    The task logs carry millisecond stamps of clocks that are off by up to two seconds, the metrics 15-second
    stamps; the true times are written beside them and not used.
    """
    started = time.monotonic()
    queries = examples.folder("cluster") if queries is None else queries
    files = sorted(queries.glob("*.query"))
    if not files or not (queries / "schema.toml").is_file():
        raise OptionError(
            f"{queries} does not hold schema.toml and *.query files: name a folder that does, or leave out "
            "--queries"
        )
    check_output_place(out, [("the query file", file) for file in (*files, queries / "schema.toml")])
    from uncertain_cep.cli.outputs import describe_result, result_written_aside
    from uncertain_cep.cli.report import write_report
    from uncertain_cep.cli.spark_sessions import spark_session
    from uncertain_cep.plan import MatchOptions
    from uncertain_cep.query import parse
    from uncertain_cep.results.display import shown_rows
    from uncertain_cep.spark import match_to_parquet, read_traces, worker_errors
    from uncertain_cep.spark.session import check_startable
    from uncertain_cep.traces import load_schema
    from uncertain_cep.traces.cluster import cluster_trace, write_cluster

    check_startable(master)
    shown: list[str] = []
    with (
        result_written_aside(Path(out), overwrite=overwrite) as aside,
        compiling_aside() as kernels_are_there,
        ExitStack() as ending,
    ):
        with working("simulating the cluster"):
            trace = cluster_trace(minutes, nodes, seed)
            write_cluster(aside / "trace", trace)
        note(f"{trace.tasks.num_rows:,} task events and {trace.metrics.num_rows:,} metrics")
        spark = ending.enter_context(spark_session(master))
        kernels_are_there()
        # Cached, since every query reads the events twice: for their statistics and for its matches.
        events = read_traces(spark, aside / "trace", load_schema(queries / "schema.toml")).cache()
        counts = {}
        for file in files:
            text = file.read_text(encoding="utf-8")
            folder = aside / "matches" / file.stem
            with working(f"matching {file.name}"), worker_errors():
                counts[file.stem] = match_to_parquet(events, parse(text), folder)
            where = f"{counts[file.stem]:,} matches in {Path(out) / 'matches' / file.stem}"
            shown.append(f"{title(text)}\n{where}, the best:\n{shown_rows(best_rows(folder))}")
        spark.catalog.clearCache()
        most_events = max(files, key=lambda file: counts[file.stem])
        last_query = parse(most_events.read_text(encoding="utf-8"))
        columns = TraceOptions(load_schema(queries / "schema.toml"), None)
        write_report(last_query, [str(aside / "trace")], columns, MatchOptions(), aside / REPORT)
        describe_result(aside, {"command": "casestudy", "minutes": minutes, "seed": seed, "matches": counts})
    show("\n\n".join(shown))
    show(f"\nTo look at: {Path(out).resolve() / REPORT}")
    show(f"Results: {Path(out).resolve()} (Parquet). {time.monotonic() - started:.0f} s.")


def title(query: str) -> str:
    """Return the comment that a query begins with, or nothing."""
    first = query.lstrip().partition("\n")[0]
    return first.removeprefix("--").strip() if first.startswith("--") else ""


def best_rows(folder: Path) -> pa.Table:
    """Return the matches of highest confidence in a directory of Parquet files."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder)
    return table.sort_by([("confidence", "descending")]).slice(0, BEST)
