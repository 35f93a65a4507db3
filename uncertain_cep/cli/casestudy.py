"""``uncertain-cep casestudy``: the main job, from simulated logs to matches, on Spark."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from uncertain_cep import examples
from uncertain_cep.cli.arguments import TraceOptions, out_option, overwrite_option
from uncertain_cep.cli.command_help import HelpfulCommand
from uncertain_cep.cli.progress import compiling_aside, note, show, working
from uncertain_cep.errors import OptionError
from uncertain_cep.results.output_place import check_output_place

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from uncertain_cep.reporting.calibrated import Calibration
    from uncertain_cep.traces.schema import TraceSchema

__all__ = ["casestudy"]

BEST: Final = 5
"""Matches of each query that are printed."""


REPORT: Final = "report.html"
"""The page of the first answer."""

TRUE_TIME: Final = "true_time"
"""The column of the times that are kept aside."""


@click.command(cls=HelpfulCommand)
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
    """Simulate an hour of cluster monitoring, ask which tasks maxed out a CPU, run four queries on Spark.

    Task logs have millisecond stamps of clocks that are off by up to two seconds, metrics have 15-second
    stamps. The true times are written beside them and not used.
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
    from uncertain_cep.spark import read_traces
    from uncertain_cep.spark.session import check_startable
    from uncertain_cep.traces import load_schema
    from uncertain_cep.traces.cluster import cluster_trace, write_cluster

    check_startable(master)
    schema = load_schema(queries / "schema.toml")
    texts = {file.stem: file.read_text(encoding="utf-8") for file in files}
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
        events = read_traces(spark, aside / "trace", schema).cache()
        counts, shown, judged = all_answers(texts, events, schema, aside, Path(out))
        spark.catalog.clearCache()
        name = _on_the_page(texts, counts)
        write_report(
            parse(texts[name]), [str(aside / "trace")], TraceOptions(schema, None), MatchOptions(),
            aside / REPORT, calibration=judged.get(name),
        )  # fmt: skip
        describe_result(aside, {"command": "casestudy", "minutes": minutes, "seed": seed, "matches": counts})
    show("\n\n".join(shown))
    show(f"\nTo look at: {Path(out).resolve() / REPORT}")
    show(f"Results: {Path(out).resolve()} (Parquet). {time.monotonic() - started:.0f} s.")


def all_answers(
    texts: Mapping[str, str], events: DataFrame, schema: TraceSchema, aside: Path, out: Path
) -> tuple[dict[str, int], list[str], dict[str, Calibration]]:
    """Write the answers of queries.

    Return how many rows each has, what to show, groups first, and how often those of groups happened.
    """
    from uncertain_cep.query import parse
    from uncertain_cep.results.display import shown_rows
    from uncertain_cep.spark import match_to_parquet, worker_errors

    counts: dict[str, int] = {}
    shown: list[str] = []
    judged: dict[str, Calibration] = {}
    for name, text in texts.items():
        folder, where = aside / "matches" / name, out / "matches" / name
        if parse(text).probability is not None:
            with working(f"answering {name}.query"):
                rows, surest, judged[name] = answered(text, aside / "trace", schema, folder)
            counts[name] = rows.num_rows
            shown.insert(0, f"{title(text)}\n{counts[name]:,} groups in {where}, {surest}")
        else:
            with working(f"matching {name}.query"), worker_errors():
                counts[name] = match_to_parquet(events, parse(text), folder)
            best = shown_rows(best_rows(folder))
            shown.append(f"{title(text)}\n{counts[name]:,} matches in {where}, the best:\n{best}")
    return counts, shown, judged


def _on_the_page(texts: Mapping[str, str], counts: Mapping[str, int]) -> str:
    """Return the name of the query that the page shows: one of groups, else that with the most matches."""
    from uncertain_cep.query import parse

    groups = [name for name, text in texts.items() if parse(text).probability is not None]
    return max(groups or texts, key=lambda name: counts[name])


def answered(text: str, traces: Path, schema: TraceSchema, folder: Path) -> tuple[pa.Table, str, Calibration]:
    """Write the groups of a query with RETURN PROBABILITY to a folder, as Parquet.

    Returns
    -------
    pyarrow.Table
        The groups.
    str
        The surest of them, and how many of all had a match by the true times.
    Calibration
        How often they had one, by what was said.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from uncertain_cep.api import match
    from uncertain_cep.reporting.calibrated import calibration
    from uncertain_cep.results.display import shown_rows
    from uncertain_cep.traces import read_traces

    events = read_traces(traces, schema)
    rows: pa.Table = match(events, text)
    folder.mkdir(parents=True)
    pq.write_table(rows, folder / "part-0.parquet")
    truth = pq.read_table(traces / "_truth" / "truth.parquet")
    place = pc.index_in(events["id"], truth["id"].combine_chunks())
    events = events.append_column(TRUE_TIME, truth["true_time"].take(place))
    result = calibration(rows, TRUE_TIME, events=events, query=text)
    surest = shown_rows(rows.slice(0, BEST))
    said = (
        f"on average {result.said:,.0f} of them have a match, the surest:\n{surest}\n"
        f"By the true times, which were kept aside, {result.happened:,} have one: a peak is not equally "
        "likely anywhere in its 15 seconds, see docs/calibration.md"
    )
    return rows, said, result


def title(query: str) -> str:
    """Return the comment that a query begins with, or nothing."""
    first = query.lstrip().partition("\n")[0]
    return first.removeprefix("--").strip() if first.startswith("--") else ""


def best_rows(folder: Path) -> pa.Table:
    """Return the matches of highest confidence in a directory of Parquet files."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder)
    return table.sort_by([("confidence", "descending")]).slice(0, BEST)
