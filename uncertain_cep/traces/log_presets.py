"""The forms of usual logs: expressions for their lines, and the formats of their times.

Sources: RFC 3164, section 4.1; RFC 5424, section 6; the layouts of Log4j that Hadoop, Spark and ZooKeeper
ship, and that of Logback; Apache HTTP Server, combined log format; Kubernetes, CRI logging format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["DASHED", "PRESETS", "REST", "RESTS", "ColumnType", "Preset"]

ColumnType = Literal["string", "int", "float", "bool", "timestamp"]


@dataclass(frozen=True, slots=True)
class Preset:
    """A usual form of logs: expressions of which the first that fits counts, and what their columns hold.

    Named groups become columns; ``time`` is always one. Where a record may be written in ``parts``, each but
    the last is marked by P. ``begins`` is found in the first line of each record, where its first letter does
    not tell. ``since_start`` tells that times are seconds since the program, or the machine, was started.
    """

    patterns: tuple[str, ...]
    time_format: tuple[str, ...]
    types: tuple[tuple[str, ColumnType], ...] = ()
    parts: bool = False
    begins: str | None = None
    since_start: bool = False


_DAY: Final = "[0-9]{2,4}[-/][0-9]{2}[-/][0-9]{2}"
_TIME: Final = "[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[,.][0-9]{1,9})?"
_CLOCK: Final = rf"^(?P<time>(?:{_DAY}[ T])?{_TIME})"
_THREAD: Final = r"\[(?P<thread>(?:[^\[\]]|\[[^\[\]]*\])*)\]"
"""The name of a thread may have brackets of its own."""
_LEVEL: Final = r"(?P<level>TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|SEVERE|FINE|NOTICE|CRITICAL)"
PRESETS: Final = {
    "syslog": Preset(
        (
            r"^(?:<(?P<priority>[0-9]{1,3})>)?(?P<time>[A-Z][a-z]{2} [ 0-3][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}) "
            r"(?P<host>\S+) (?:(?P<program>[^\s:\[]+)(?:\[(?P<pid>[^\]]*)\])?: ?)?(?P<message>.*)",
        ),
        ("%b %d %H:%M:%S",),
        types=(("priority", "int"),),
    ),
    "syslog5424": Preset(
        (
            _HEADER := (
                r"^<(?P<priority>[0-9]{1,3})>[1-9][0-9]? (?P<time>[0-9]\S+) (?P<host>\S+) (?P<_rest>.*)"
            ),
            r"^<(?P<priority>[0-9]{1,3})>[1-9][0-9]? (?P<time>[0-9]\S+) (?:-|(?P<host>\S+)) "
            r"(?:-|(?P<program>\S+)) (?:-|(?P<pid>\S+)) (?:-|(?P<message_id>\S+)) "
            r"(?:-|(?P<data>(?:\[(?:[^\]\\]|\\.)*\])+))(?: (?P<message>.*))?$",
        ),
        ("iso",),
        types=(("priority", "int"),),
    ),
    "log4j": Preset(
        (
            rf"^(?P<time>{_DAY}[ T]{_TIME}) {_LEVEL} +\[(?P<thread>[^\[\]]*)\] (?P<_rest>.*)",
            rf"{_CLOCK}(?: \[myid:[^\]]*\])? - {_LEVEL} +"
            r"\[(?P<thread>.*?):(?P<logger>[\w.$]+)@[0-9]+\] - (?P<message>.*)",
            rf"{_CLOCK}(?: -)? +\[?{_LEVEL}\]? +(?:{_THREAD} +)?"
            r"(?:- |(?P<logger>[^\s:]+):? +(?:- )?)(?P<message>.*)",
            rf"{_CLOCK} +{_THREAD} +{_LEVEL} +"
            r"(?:- |(?P<logger>[^\s:]+):? +(?:- )?)(?P<message>.*)",
        ),
        (
            "%Y-%m-%d %H:%M:%S,%f",
            "iso",
            "%y/%m/%d %H:%M:%S",
            "%Y/%m/%d %H:%M:%S",
            "%H:%M:%S,%f",
            "%H:%M:%S.%f",
            "%H:%M:%S",
        ),
    ),
    "access": Preset(
        (
            r"^(?P<client>\S+) (?P<identity>\S+) (?P<user>\S+) \[(?P<_rest>.*)",
            r'^(?P<client>\S+) (?P<identity>\S+) (?P<user>\S+) \[(?P<time>[^\]]+)\] '
            r'"(?:(?P<method>[A-Z]+) (?P<url>\S+)(?: (?P<protocol>[^"]*))?|[^"]*)" (?P<status>[0-9]{3}) '
            r'(?:-|(?P<bytes>[0-9]+))(?: "(?P<referer>[^"]*)" "(?P<agent>[^"]*)")?',
        ),
        ("%d/%b/%Y:%H:%M:%S %z",),
        types=(("status", "int"), ("bytes", "int")),
    ),
    "cri": Preset(
        (r"^(?P<time>[0-9]\S+) (?P<stream>stdout|stderr) [FP](?::\S+)? ?(?P<message>.*)",),
        ("iso",),
        parts=True,
    ),
}  # fmt: skip
"""By their names in ``[extract]``."""

REST: Final = "_rest"
RESTS: Final = {
    _HEADER: (_SENDER := r"^(?P<program>\S+) (?P<pid>\S+) (?P<message_id>\S+) (?P<_rest>.*)"),
    _SENDER: r"^(?:-|(?P<data>(?:\[(?:[^\]\\]|\\.)*\])+))(?: (?P<message>.*))?$",
    PRESETS["log4j"].patterns[0]: r"^(?P<logger>[^\s:]+): (?P<message>.*)",
    PRESETS["access"].patterns[0]: (
        _REQUEST := r'^(?P<time>[^\]]+)\] "(?P<method>[A-Z]+) (?P<url>\S+) (?P<_rest>.*)'
    ),
    _REQUEST: (_REPLY := r'^(?P<protocol>[^" ]*)" (?P<status>[0-9]{3}) (?P<bytes>[0-9]+)(?P<_rest>.*)'),
    _REPLY: r'^(?: "(?P<referer>[^"]*)" "(?P<agent>[^"]*)")?$',
}
"""What is to fit the group ``_rest`` of an expression, in which other groups are found.

RE2 finds up to four groups of simple expressions several times as fast as more. Records that these do not fit
go to the expressions that come next.
"""

DASHED: Final = frozenset((_HEADER, _SENDER))
"""Expressions whose groups hold a dash where there is nothing."""
