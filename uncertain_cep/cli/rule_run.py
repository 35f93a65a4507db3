"""``uncertain-cep stream RULES``: rules over the files of a folder, in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from uncertain_cep.cli.run_log import begin_log, read_by_others
from uncertain_cep.cli.startup import without_pandas
from uncertain_cep.errors import OptionError
from uncertain_cep.timeline.durations import parse_duration

__all__ = ["run_rules"]

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
    begun = RuleRun([rules], options)
    trigger = None if run["trigger"] is None else parse_duration(run["trigger"]) / 1e9
    with read_by_others(begun.metrics, run["metrics"]):
        begun.run(trigger, close=run["close"])
