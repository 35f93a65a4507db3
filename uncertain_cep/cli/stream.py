"""``uncertain-cep stream``: the matches of a query among events that come bit by bit, on Spark."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from uncertain_cep.cli.arguments import parameter_option, read_query, written_here
from uncertain_cep.cli.command_help import HelpfulCommand
from uncertain_cep.cli.rule_run import run_rules
from uncertain_cep.cli.rules import are_rules
from uncertain_cep.cli.run_log import begin_log
from uncertain_cep.errors import OptionError
from uncertain_cep.files.special_files import check_written_here, is_url
from uncertain_cep.timeline.durations import parse_duration

if TYPE_CHECKING:
    from uncertain_cep.streaming.stream_layout import StreamOptions

__all__ = ["stream"]

_OF_RULES: Final = re.compile(r"-$|(https?|kafka)://|python:", re.IGNORECASE)
"""How a place begins to which alerts of rules go, and matches of one query do not."""


def _length(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | int | None:
    """Return a length of time as text, and a number of ticks as one."""
    return int(value) if value is not None and re.fullmatch(r"[0-9]+", value) else value


@click.command(cls=HelpfulCommand)
@click.argument("query")
@click.option(
    "--source",
    required=True,
    metavar="DIR|kafka://HOST:PORT/TOPIC",
    help="A folder into which files are moved by renaming, or a topic of Kafka.",
)
@click.option("--schema", metavar="FILE", help="A schema file (TOML). Default: the columns of the model.")
@click.option("--tick", metavar="D", help="Without a schema: the length of a tick, such as 100ms.")
@click.option(
    "--largest-interval",
    required=True,
    metavar="D",
    callback=_length,
    help="The longest interval of an event, such as 10s, or a number of ticks. Longer events are late.",
)
@click.option("--checkpoint", required=True, metavar="DIR", callback=written_here,
    help="The folder of the state, from which the same command goes on.")  # fmt: skip
@click.option("-o", "--out", required=True, metavar="DIR|-|URL",
    help="A folder, which gets a folder a batch; of rules also -, a webhook or another sink.")  # fmt: skip
@click.option(
    "--once",
    is_flag=True,
    help="End when all files have been read. Matches that events to come can change wait in the checkpoint.",
)
@click.option(
    "--close", is_flag=True, help="As --once, but also release all matches that wait: nothing else will come."
)
@click.option(
    "--trigger", metavar="D", default="1s", show_default=True, help="Begin at most one batch in this time."
)
@click.option("--batch", "batch_limit", type=click.IntRange(min=1), metavar="N",
    help="Most files, or messages of Kafka, in one batch.")  # fmt: skip
@click.option("--idle-after", metavar="D", help="Move the time on when nothing has come for so long.")
@click.option(
    "--duplicates",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="What to do about a row that equals an earlier one.",
)
@click.option(
    "--slice-length",
    type=click.IntRange(min=1),
    metavar="N",
    help="The length of a slice of the state, in ticks.",
)
@click.option("--buckets", type=click.IntRange(min=1), metavar="N", help="The number of parts of the state.")
@click.option("--reload", is_flag=True, help="With rules: use rules that change on disk from then on.")
@click.option(
    "--when",
    type=click.Choice(["final", "certain"]),
    default="final",
    show_default=True,
    help="With rules: send an alert when it is final, or as soon as no later event can take it back "
    "(certain).",
)
@click.option("--metrics", metavar="[HOST:]PORT", help="Serve figures for Prometheus.")
@click.option("-v", "--verbose", is_flag=True, help="Log times and levels, too.")
@click.option("-q", "--quiet", is_flag=True, help="Log warnings and errors only.")
@parameter_option
@click.option("--master", metavar="M", default="local[*]", show_default=True, help="Spark's master.")
def stream(
    query: str,
    parameters: dict[str, str],
    source: str,
    schema: str | None,
    tick: str | None,
    largest_interval: str | int,
    checkpoint: str,
    out: str,
    once: bool,
    close: bool,
    trigger: str,
    batch_limit: int | None,
    master: str,
    **settings: Any,
) -> None:
    """Find the matches of QUERY in a stream, each once, also after a crash.

    QUERY is a file, or the text itself if it starts with PATTERN; a folder or a TOML file has rules, which
    run together in this process. OUT has a folder of Parquet files for each batch, with matches and late
    events. The same command goes on where it ended.
    """
    from uncertain_cep.cli.stream_runs import Source, run_stream
    from uncertain_cep.streaming.stream_layout import StreamOptions
    from uncertain_cep.traces import load_schema

    if not parse_duration(trigger, what="--trigger"):
        raise OptionError("--trigger 0s: a batch takes some time")
    if schema is not None and tick is not None:
        raise OptionError("--tick and --schema exclude each other: write it into the schema file")
    if are_rules(query):
        arguments: dict[str, Any] = {
            "source": source,
            "schema": schema,
            "tick": tick,
            "out": out,
            "checkpoint": checkpoint,
        }
        arguments |= {"largest_interval": largest_interval, "batch_limit": batch_limit}
        run = {"trigger": None if once or close else trigger, "close": close, "parameters": parameters}
        run_rules(query, arguments, run | settings)
        return
    settings["when"] = None if settings["when"] == "final" else settings["when"]
    if for_rules := [f"--{name}" for name in ("reload", "when") if settings.pop(name)]:
        raise OptionError(f"{for_rules[0]} is for rules: give a folder or a TOML file of rules")
    zone = None if schema is None else load_schema(schema).zone
    parsed = read_query(query, parameters, zone)
    if _OF_RULES.match(out):
        raise OptionError(f"-o {out} is for rules: one query writes to a folder of this machine")
    check_written_here(out)
    if master.startswith("sc://"):
        raise OptionError(
            "the command writes its batches from this process, which Spark Connect has no part in: use match "
            "and writeStream, or another --master"
        )
    if is_url(source) and not source.startswith("kafka://"):
        raise OptionError(f"--source {source}: it is a folder of this machine, or kafka://HOST:PORT/TOPIC")
    address, verbose, quiet = (settings.pop(name) for name in ("metrics", "verbose", "quiet"))
    options: StreamOptions = StreamOptions(largest_interval, **settings)
    begin_log(verbose=verbose, quiet=quiet)
    run_stream(
        parsed,
        Source(source, schema, tick, batch_limit),
        options,
        (Path(out).absolute(), Path(checkpoint).absolute()),
        master,
        None if once or close else trigger,
        close=close,
        address=address,
    )
    logging.getLogger("uncertain_cep").info("the stream is closed" if close else "all that was there is read")
