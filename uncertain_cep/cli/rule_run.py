"""``uncertain-cep stream RULES``: rules over the files of a folder, in this process."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from uncertain_cep.cli.run_log import begin_log, read_by_others
from uncertain_cep.cli.startup import without_pandas
from uncertain_cep.errors import OptionError
from uncertain_cep.files.atomic_output import locked
from uncertain_cep.timeline.durations import parse_duration

__all__ = ["alone_in", "run_rules"]

_FOR_QUERIES: Final = {"idle_after": None, "slice_length": None, "buckets": None}


def run_rules(rules: str, arguments: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    """Ask rules of the files of a folder, until it ends or is ended.

    ``arguments`` are those of :class:`uncertain_cep.alerting.rule_runs.RunOptions`, as they were written.

    Raises
    ------
    OptionError
        If an option is for one query.
    """
    from uncertain_cep.alerting.rule_runs import RuleRun, RunOptions
    from uncertain_cep.traces import load_schema

    for name, usual in _FOR_QUERIES.items():
        if run[name] != usual:
            raise OptionError(
                f"--{name.replace('_', '-')} is for one query on Spark: rules run in this process"
            )
    if run["parameters"]:
        raise OptionError("--param is for one query: a rule brings the values of its own")
    source = Path(arguments["source"])
    if not source.is_dir():
        raise OptionError(f"--source {source}: rules read the files of a folder, and this is none")
    without_pandas()
    begin_log(verbose=run["verbose"], quiet=run["quiet"])
    schema = None if arguments["schema"] is None else load_schema(arguments["schema"])
    options = RunOptions(
        source=source,
        schema=schema,
        tick=arguments["tick"],
        largest_interval=arguments["largest_interval"],
        checkpoint=Path(arguments["checkpoint"]).absolute(),
        out=arguments["out"],
        batch_limit=arguments["batch_limit"],
        duplicates=run["duplicates"],
        reload=run["reload"],
        when=run["when"],
    )
    trigger = None if run["trigger"] is None else parse_duration(run["trigger"]) / 1e9
    with alone_in(options.checkpoint):
        begun = RuleRun([rules], options)
        with read_by_others(begun.metrics, run["metrics"]):
            begun.run(trigger, close=run["close"])
    logging.getLogger("uncertain_cep").info(
        "the stream is closed" if run["close"] else "all that was there is read"
    )


@contextmanager
def alone_in(checkpoint: Path) -> Iterator[None]:
    """Refuse to begin while another process goes on from a checkpoint."""
    checkpoint.mkdir(parents=True, exist_ok=True)
    try:
        lock = locked(checkpoint)
    except BlockingIOError:
        message = f"{checkpoint}: another process goes on from it: end that one first"
        raise OptionError(message) from None
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)
