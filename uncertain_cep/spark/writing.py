"""Writes matches to files, aside and then moved into place, so that nobody sees half a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from uncertain_cep.boundary import public
from uncertain_cep.candidates.diagnostics import Diagnostics
from uncertain_cep.errors import OptionError
from uncertain_cep.files.atomic_output import written_aside
from uncertain_cep.files.special_files import check_written_here
from uncertain_cep.plan import Approximation, MatchOptions
from uncertain_cep.query import Query
from uncertain_cep.results.display import Unit
from uncertain_cep.results.output_place import check_output_place, local_path
from uncertain_cep.results.text_files import TEXT_COLUMN, text_batches
from uncertain_cep.running.meter import meter_for
from uncertain_cep.spark.dataframes import (
    arrow_fields,
    as_spark_path,
    files_read,
    in_workers,
    plainly_named,
)
from uncertain_cep.spark.file_jobs import run_on_files
from uncertain_cep.spark.file_worker import check_files, write_files
from uncertain_cep.spark.jobs import tasks_told
from uncertain_cep.spark.matching import as_frame
from uncertain_cep.spark.preparing import Spread, prepare
from uncertain_cep.spark.undecided_counts import worker_errors
from uncertain_cep.spark.worker import parquet_writer, write_partition
from uncertain_cep.timeline.domain import Names

__all__ = ["match_to_parquet", "matches_to_parquet", "save_matches", "write_matches"]

Format = Literal["parquet", "csv", "json"]

_RARELY_REPEATED: Final = (
    t.NumericType,
    t.DateType,
    t.TimestampType,
    t.TimestampNTZType,
    t.DayTimeIntervalType,
)
"""Types of ids, times, confidences and what else is counted or measured."""


@public
def write_matches(
    matches: DataFrame, folder: str | Path, format: Format = "parquet", *, overwrite: bool = False
) -> None:
    """Write a frame of matches as a folder of files.

    Parameters
    ----------
    matches : pyspark.sql.DataFrame
    folder : str or Path
        A path that this machine shares with the workers: the files are written beside it, and moved there
        when all are complete. For a URI, such as ``s3a://bucket/matches``, Spark's own committer decides when
        files become visible, and marks a complete result with the file ``_SUCCESS``.
    format : {"parquet", "csv", "json"}
        Parquet files have numbers and times without dictionaries, which takes a quarter less time than with
        them. CSV files have a header, and JSON files a line for each match, written as the command writes
        them in process; at a URI their names end in ``.txt``.
    overwrite : bool
        Whether to replace a folder that is there.

    Raises
    ------
    OptionError
        If the format is not known, if the folder is there and ``overwrite`` is not set, or if it holds files
        that the frame is made of.
    TraceError
        If a worker finds an event at fault.
    """
    save_matches(matches, folder, format, overwrite=overwrite)


def save_matches(
    matches: DataFrame, folder: str | Path, format: Format, *, overwrite: bool, unit: Unit | None = None
) -> None:
    """Do what `write_matches` does; in text, ranges have the digits of a ``unit``."""
    if format not in ("parquet", "csv", "json"):
        raise OptionError(f"format={format!r} is not known: use parquet, csv or json")
    check_written_here(folder, by_spark=True)
    local = local_path(folder)
    if overwrite:
        check_output_place(folder, files_read(matches))
    with worker_errors():
        if local is None:
            mode = "overwrite" if overwrite else "error"
            _save(matches, str(folder), format, mode, unit)
            return
        with written_aside(local, _replaced_if(overwrite)) as aside:
            _save(matches, as_spark_path(aside), format, "error", unit)
            # Spark's checksum of a file lies beside it, hidden.
            for part in [] if format == "parquet" else aside.glob("*part-*.txt*"):
                part.replace(part.with_name(part.name.replace(".txt", f".{format}")))


@public
def match_to_parquet(
    frame: DataFrame,
    query: str | Query,
    folder: str | Path,
    *,
    names: Names | Mapping[str, str] | None = None,
    tick: str | None = None,
    evaluation: str = "auto",
    confidence: bool = True,
    approximate: Approximation | float | None = None,
    undecided: str = "error",
    partitions: int | None = None,
    slice_length: int | None = None,
    overwrite: bool = False,
    planner: str = "auto",
    prune: bool | None = None,
    kleene: str = "matches",
    latency_weight: float = 0.0,
    sources: bool = True,
    known_until: int | str | date | None = None,
    parameters: Mapping[str, Any] | None = None,
    diagnostics: Diagnostics | None = None,
    progress: bool | None = None,
) -> int:
    """Write the matches of a query as a folder of Parquet files and return their number.

    Parameters and errors are those of `match` and `write_matches`. On a shared path the workers write the
    matches themselves; to hand them to Spark and let it write them takes several times as long. With
    ``progress`` a line on stderr says how many tasks of the session's stages are done; by default on a
    terminal and in a notebook, if the call takes longer than two seconds.
    """
    options = MatchOptions.among(locals())
    spread = Spread(partitions, slice_length, prune)
    meter = meter_for(progress)
    with nullcontext() if meter is None else tasks_told(frame.sparkSession, meter.tasks):
        try:
            return matches_to_parquet(
                frame, query, folder, options, spread, overwrite=overwrite, diagnostics=diagnostics
            )
        finally:
            if meter is not None:
                meter.close()


def matches_to_parquet(
    frame: DataFrame,
    query: str | Query,
    folder: str | Path,
    options: MatchOptions,
    spread: Spread = Spread(),  # noqa: B008
    *,
    overwrite: bool = False,
    diagnostics: Diagnostics | None = None,
) -> int:
    """Do what `match_to_parquet` does, whose options are two objects here."""
    check_written_here(folder, by_spark=True)
    local = local_path(folder)
    if overwrite:
        check_output_place(folder, files_read(frame))
    diagnostics = Diagnostics() if diagnostics is None else diagnostics
    prepared = prepare(frame, query, options, spread, diagnostics)
    work = prepared.work
    if local is None or prepared.plan.needs_all:
        if work is not None:
            run_on_files(frame, work, partial(check_files, work=work), diagnostics)
        matches = as_frame(prepared, frame.sparkSession)
        write_matches(matches, folder, overwrite=overwrite)
        return frame.sparkSession.read.parquet(str(folder) if local is None else as_spark_path(local)).count()
    with worker_errors(), written_aside(local, _replaced_if(overwrite)) as aside:
        attempts = aside.with_name(f"{aside.name}.attempts")
        aside.mkdir()
        attempts.mkdir()
        written: dict[str, int] = {}
        undecided = 0
        if work is not None:
            write_parts = partial(write_files, work=work, folder=str(attempts))
            written, undecided = run_on_files(frame, work, write_parts, diagnostics)
        elif prepared.candidates is not None:
            write = partial(
                write_partition,
                plan=prepared.plan,
                schema=prepared.schema,
                slicing=prepared.slicing,
                folder=str(attempts),
                last_tick=None if prepared.undecided is None else prepared.undecided.last_tick,
            )
            rows = in_workers(prepared.candidates, write, "name string, rows long, undecided long").collect()
            written = {row["name"]: row["rows"] for row in rows if row["name"] is not None}
            undecided = sum(row["undecided"] for row in rows)
        # Attempts at a task that failed or were slower leave files, too, and may still write some.
        for name in written:
            (attempts / name).replace(aside / name)
        if not written:
            parquet_writer(str(aside / "part-empty.parquet"), prepared.plan.output_schema).close()
    if prepared.undecided is not None:
        prepared.undecided.say(undecided)
    return sum(written.values())


def _save(matches: DataFrame, uri: str, format: Format, mode: str, unit: Unit | None) -> None:
    if format == "parquet":
        writer = matches.write.mode(mode)
        # Ids, times and confidences rarely repeat: to look whether they do takes a quarter of the time.
        for field in matches.schema.fields:
            if isinstance(field.dataType, _RARELY_REPEATED):
                writer = writer.option(f"parquet.enable.dictionary#{field.name}", False)
        writer.parquet(uri)
        return
    # Java writes numbers, blanks and quotes in other ways than this process does.
    schema = pa.schema(arrow_fields(matches.schema))
    text = partial(text_batches, schema=schema, format_name=format, unit=unit)
    in_workers(plainly_named(matches), text, f"{TEXT_COLUMN} string").write.mode(mode).text(uri)


def _replaced_if(overwrite: bool) -> Callable[[Path], bool]:
    """Return the check whether a folder may be replaced, see `written_aside`."""

    def check(folder: Path) -> bool:
        if folder.exists() and not overwrite:
            raise OptionError(f"{folder} is there already: name another place, or allow to overwrite it")
        return overwrite

    return check
