"""How fast files of each format of lines become events."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow as pa

import uncertain_cep as uc
from benchmarks.figures import Options, Results, at_least
from benchmarks.reader_peers import peers_of
from benchmarks.timing import pin_to_one_core, take_turns

__all__ = ["measure", "measure_cores"]

_EVENTS: Final = 200_000
_BEGIN: Final = 1_700_000_000_000
_JHIST: Final = "org.apache.hadoop.mapreduce.jobhistory"

FORMATS: Final[dict[str, tuple[str, str, int]]] = {
    "spark-eventlog": (
        "",
        '{"Event":"SparkListenerTaskStart","Stage ID":3,"Stage Attempt ID":0,"Task Info":{"Task ID":@n,'
        '"Index":@n,"Attempt":0,"Launch Time":@t,"Executor ID":"1","Host":"n1",'
        '"Finish Time":0,"Failed":false}}\n'
        '{"Event":"SparkListenerTaskEnd","Stage ID":3,"Stage Attempt ID":0,"Task Type":"ShuffleMapTask",'
        '"Task End Reason":{"Reason":"Success"},"Task Info":{"Task ID":@n,"Index":@n,"Attempt":0,'
        '"Launch Time":@t,"Executor ID":"1","Host":"n1","Finish Time":@t,"Failed":false},"Task Metrics":{'
        '"Executor Deserialize Time":10,"Executor Run Time":600,"Result Serialization Time":5}}\n',
        2,
    ),
    "hadoop-jhist": (
        'Avro-Json\n{"type":"record"}\n',
        f'{{"type":"REDUCE_ATTEMPT_STARTED","event":{{"{_JHIST}.TaskAttemptStarted":{{"taskid":"task_5_1_r_@n",'
        '"taskType":"REDUCE","attemptId":"attempt_5_1_r_@n_1","startTime":@t,"trackerName":"n1"}}}\n',
        1,
    ),
    "hadoop-history": (
        'Meta VERSION="1" .\n',
        'MapAttempt TASK_TYPE="MAP" TASKID="task_5_1_m_@n" TASK_ATTEMPT_ID="attempt_5_1_m_@n_0" '
        'START_TIME="@t" TRACKER_NAME="tracker_n1\\.x:localhost/127\\.0\\.0\\.1:54153" HTTP_PORT="50060" .\n',
        1,
    ),
    "prometheus": (
        "",
        '{"metric":{"__name__":"up","job":"@n"},"values":[' + ",".join(["1.5"] * 10) + '],"timestamps":['
        + ",".join(str(1_549_891_472_010 + 15_000 * place) for place in range(10)) + "]}\n",
        10,
    ),
    "openmetrics": ("", 'up{job="node",instance="i@k"} 1.5 @t\n', 1),
    "otlp": (
        "",
        '{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},'
        '"scopeSpans":[{"spans":['
        + ",".join(
            f'{{"traceId":"5b8e","spanId":"@n{place}","name":"pay","kind":2,"startTimeUnixNano":"@t000000",'
            '"endTimeUnixNano":"@t000001","attributes":[{"key":"http.status","value":{"intValue":"500"}}]}'
            for place in range(10)
        )
        + "]}]}]}\n",
        20,
    ),
}  # fmt: skip
"""What a file begins with, what its records look like (@n: a number, @k: one of a hundred, @t: ms since
1970), and the events of each."""

LOGS: Final[dict[str, str]] = {
    "syslog": "Oct 11 22:@s web-@k su[123]: request @n failed on /dev/pts/8\n",
    "syslog5424": "<34>1 2003-10-11T22:@s.003Z web-@k su 123 ID47 - request @n failed\n",
    "log4j": "2015-10-17 15:@s,@m INFO [main] org.apache.hadoop.MRAppMaster: Created @n\n",
    "access": '1.2.3.@k - frank [17/Oct/2015:10:@s +0200] "GET /a@n.gif HTTP/1.0" 200 @n\n',
    "cri": "2016-10-06T00:@s.@m794202Z stdout F message @n\n",
}
"""Lines of the usual forms (@s: a minute and a second, in which ten lines are written; @m: a millisecond)."""

TABLES: Final[dict[str, tuple[str, str]]] = {
    "csv": ("type,id,time,host,value\n", "A,@n,@t,h@k,1.5\n"),
    "csv, latin-1": ("type,id,time,host,value\n", "A,@n,@t,h\u00e9@k,1.5\n"),
    "csv, skip_rows": ("# one\n# two\ntype,id,time,host,value\n", "A,@n,@t,h@k,1.5\n"),
    "jsonl": ("", '{"type":"A","id":@n,"time":@t,"host":"h@k","value":1.5}\n'),
}
KEYS: Final = {"csv, latin-1": 'encoding = "latin-1"', "csv, skip_rows": "skip_rows = 2"}
"""What a schema says of a table before anything else."""

TARGETS: Final = {
    "csv": 1.0,
    "jsonl": 1.0,
    "spark-eventlog": 0.55,
    "hadoop-jhist": 0.55,
    "otlp": 0.55,
} | dict.fromkeys(LOGS, 1.0)
"""Millions of events a second of one core; of the others .3."""
BEATEN: Final = dict.fromkeys((*LOGS, "csv"), ("DuckDB",))
"""The peers to be at least as fast as; of the others all."""

_LOG: Final = """
tick = "1ms"
[extract]
line = "{name}"
[[events]]
type = "Line"
time = "time"
{year}
uncertainty = {{ kind = "as_written" }}
"""
_TABLE: Final = """
tick = "1ms"
[[events]]
type_column = "type"
time = "time"
unit = "ms"
uncertainty = { kind = "exact" }
"""


def _text(line: str, count: int) -> str:
    parts = []
    for number in range(count):
        text = line.replace("@n", str(number)).replace("@t", str(_BEGIN + number))
        text = text.replace("@k", str(number % 100)).replace("@m", f"{number * 97 % 1000:03}")
        parts.append(text.replace("@s", f"{number // 600 % 60:02}:{number // 10 % 60:02}"))
    return "".join(parts)


def _written(name: str, folder: Path, events: int) -> tuple[Path, Path | None]:
    """Write a file and, unless its format is known, the schema that it is read by."""
    path, schema = folder / f"{name}.log", folder / f"{name}.toml"
    if name in FORMATS:
        begin, line, each = FORMATS[name]
        path.write_text(begin + _text(line, events // each))
        return path, None
    if name in LOGS:
        path.write_text(_text(LOGS[name], events))
        schema.write_text(_LOG.format(name=name, year="year = 2015" if name == "syslog" else ""))
        return path, schema
    path = path.with_suffix(".jsonl" if name == "jsonl" else ".csv")
    encoding = "latin-1" if name == "csv, latin-1" else "utf-8"
    path.write_text(TABLES[name][0] + _text(TABLES[name][1], events), encoding=encoding)
    schema.write_text(f"{KEYS.get(name, '')}\n{_TABLE}")
    return path, schema


def measure(options: Options) -> Results:
    """Measure events a second of each format, read with all of its attributes, and rows of its peers.

    Peers do less: they make no times, ids and intervals.
    """
    pin_to_one_core(options.core)
    uc.warm_up(["reading"])
    results = Results()
    events = options.events(_EVENTS)
    with TemporaryDirectory(prefix="uncertain-cep-") as folder:
        for name in (*FORMATS, *LOGS, *TABLES):
            path, schema = _written(name, Path(folder), events)
            kind = name if name in FORMATS else None
            read = partial(uc.read_traces, path, schema, format=kind, tick="1ms" if kind else None)
            # What needs options of another reader to be read alike is not compared.
            peers = {} if name in KEYS else peers_of(name, path, 1)
            timings = take_turns({name: read, **peers}, options.rounds)
            timing = timings[name]
            rates = {each: one.rows / one.seconds(options.clock) / 1e6 for each, one in timings.items()}
            results.add(
                f"{name}, {path.stat().st_size / timing.rows:.0f} bytes an event",
                rates[name], "M events/s", at_least(TARGETS.get(name, 0.3)), timing.rounds(options.clock),
            )  # fmt: skip
            for peer in peers:
                results.add(
                    f"{name}: {peer}", rates[peer], "M rows/s", None, timings[peer].rounds(options.clock)
                )
            if peers:
                best = max(rates[peer] for peer in BEATEN.get(name, peers))
                results.add(
                    f"{name}: to the best of {' and '.join(BEATEN.get(name, peers))}",
                    rates[name] / best,
                    "x",
                    at_least(1.0),
                )
            path.unlink()
    return results


def _rows(path: Path, schema: Path | None, kind: str | None, threads: int) -> int:
    before = pa.cpu_count()
    # Readers have no more threads than Arrow.
    pa.set_cpu_count(threads)
    try:
        return len(uc.read_traces(path, schema, format=kind, tick="1ms" if kind else None))
    finally:
        pa.set_cpu_count(before)


def measure_cores(results: Results, options: Options, cores: int) -> None:
    """Measure how much faster each format is read by all cores than by one, by the fastest rounds.

    On a machine that does something else at the same time the ratio is too low.
    """
    with TemporaryDirectory(prefix="uncertain-cep-") as folder:
        for name in (*FORMATS, *LOGS, *TABLES):
            path, schema = _written(name, Path(folder), options.events(5 * _EVENTS))
            read = partial(_rows, path, schema, name if name in FORMATS else None)
            timings = take_turns(
                {"one": partial(read, 1), "all": partial(read, cores)}, options.rounds, settled=True
            )
            one, all_cores = (min(timings[each].wall) for each in ("one", "all"))
            results.add(
                f"read {name}: {cores} cores to one", one / all_cores, "x",
                at_least(1.7) if cores == 2 else None, (),
                f"{one:.3f} s and {all_cores:.3f} s, and {median(timings['all'].cpu):.3f} s of processors",
            )  # fmt: skip
            path.unlink()
