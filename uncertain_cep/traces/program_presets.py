"""The forms of the logs of single programs, each as its documentation or its default layout writes it."""

from __future__ import annotations

from typing import Final

from uncertain_cep.traces.log_presets import PRESETS as GENERAL
from uncertain_cep.traces.log_presets import Preset
from uncertain_cep.traces.written_names import ZONES

__all__ = ["PRESETS"]

_CLOCK: Final = "[0-9]{2}:[0-9]{2}:[0-9]{2}"
_ZONE: Final = "(?:Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})"
_ABBREVIATIONS: Final = "|".join(sorted(ZONES, key=len, reverse=True))
_ISO: Final = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{_CLOCK}(?:[.,][0-9]{{1,9}})?(?: ?{_ZONE})?"
_NAME: Final = "[A-Z][a-z]{2}"
_ZONED: Final = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T{_CLOCK}(?:\.[0-9]{{1,9}})?{_ZONE}"
_REQUEST: Final = (
    r'"(?:(?P<method>[A-Z]+) (?P<url>\S+)(?: (?P<protocol>[^"]*))?|[^"]*)" (?P<status>[0-9]{3}) '
    r'(?:-|(?P<bytes>[0-9]+))(?: "(?P<referer>[^"]*)" "(?P<agent>[^"]*)")?'
)
_LEVEL: Final = "(?P<level>[A-Za-z]+)"
_THREAD: Final = r"\[ *(?P<thread>(?:[^\[\]]|\[[^\[\]]*\])*?) *\]"
_SENDER: Final = r"(?P<host>\S+) (?P<program>[^\s:\[]+)(?:\[(?P<pid>[^\]]*)\])?: ?(?P<message>.*)"

_CEF: Final = (
    r"CEF:[0-9]+\|(?P<vendor>[^|]*)\|(?P<product>[^|]*)\|(?P<version>[^|]*)\|(?P<signature>[^|]*)"
    r"\|(?P<message>[^|]*)\|(?P<severity>[^|]*)\|(?P<extension>.*)"
)
_SPECIAL: Final = {
    "kafka": Preset(
        (
            rf"^\[(?P<time>{_ISO})\] {_LEVEL} (?:\[(?P<context>(?:[^\[\]]|\[[^\[\]]*\])*)\]:? )?"
            r"(?P<message>.*?) \((?P<logger>[\w.$-]+)\)(?:\n(?P<stack>.*))?$",
        ),
        ("iso",),
    ),
    "elasticsearch": Preset(
        (
            rf"^\[(?P<time>{_ISO})\]\[{_LEVEL} *\]\[(?P<logger>[^\]]*?) *\] ?(?:\[(?P<node>[^\]]*)\])? ?"
            "(?P<message>.*)",
        ),
        ("iso",),
    ),
    "cassandra": Preset(
        (rf"^{_LEVEL} +{_THREAD} (?P<time>{_ISO}) (?P<place>\S+:[0-9]+) - (?P<message>.*)",), ("iso",)
    ),
    "spring": Preset(
        (
            rf"^(?P<time>{_ISO}) +{_LEVEL} (?P<pid>[0-9]+) --- (?:\[(?P<application>[^\]]*)\] )?{_THREAD} "
            r"(?:\[[^\]]*\] )?(?P<logger>\S+) *: (?P<message>.*)",
        ),
        ("iso",),
    ),
    "flink": Preset(
        (rf"^(?P<time>{_ISO}) {_LEVEL} +(?P<logger>\S+) +\[(?P<marker>[^\]]*)\] - (?P<message>.*)",), ("iso",)
    ),
    "tomcat": Preset(
        (
            rf"^(?P<time>[0-9]{{2}}-[A-Za-z]{{3}}-[0-9]{{4}} {_CLOCK}\.[0-9]{{1,9}}) {_LEVEL} {_THREAD} "
            r"(?P<logger>\S+) (?P<message>.*)",
        ),
        ("%d-%b-%Y %H:%M:%S.%f",),
    ),
    "python": Preset(
        (rf"^(?P<time>{_ISO}) - (?P<logger>\S+) - {_LEVEL} - (?P<message>.*)",), ("iso",)
    ),
    "airflow": Preset(
        (
            rf"^\[(?P<time>{_ISO}|[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}, {_CLOCK} {_ZONE})\] "
            rf"\{{(?P<place>[^{{}}]*)\}} {_LEVEL} - (?P<message>.*)",
        ),
        ("iso", "%Y-%m-%d, %H:%M:%S %z"),
    ),
    "celery": Preset((rf"^\[(?P<time>{_ISO}): {_LEVEL}/(?P<process>[^\]]*)\] (?P<message>.*)",), ("iso",)),
    "postgresql": Preset(
        (
            rf"^(?P<time>{_ISO}(?: (?:{_ABBREVIATIONS}))?) \[(?P<pid>[0-9]+)(?:-[0-9]+)?\] "
            r"(?:(?P<user>[^@\s]*)@(?P<database>\S*) )?(?P<level>[A-Z]+[0-9]?): +(?P<message>.*)",
        ),
        ("iso",),
    ),
    "mysql": Preset(
        (
            rf"^(?P<time>{_ISO}) (?P<thread>[0-9]+) \[{_LEVEL}\] (?:\[(?P<code>MY-[0-9]+)\] )?"
            r"(?:\[(?P<part>\w+)\] )?(?P<message>.*)",
        ),
        ("iso",),
    ),
    "mysql_slow": Preset(
        (
            rf"^# Time: (?P<time>{_ISO})\s*(?:\n# User@Host: (?P<user>[^\[\n]*)[^\n]*@ *(?P<host>[^\n]*?) *"
            r"(?:Id: +(?P<thread>[0-9]+))?)?(?:\n# Query_time: (?P<query_time>[0-9.]+) +Lock_time: "
            r"(?P<lock_time>[0-9.]+) +Rows_sent: (?P<rows_sent>[0-9]+) +Rows_examined: "
            r"(?P<rows_examined>[0-9]+)[^\n]*)?(?:\n(?P<message>.*))?$",
        ),
        ("iso",),
        types=(
            ("query_time", "float"), ("lock_time", "float"), ("rows_sent", "int"), ("rows_examined", "int"),
        ),
        begins="^# Time: ",
    ),
    "redis": Preset(
        (
            rf"^(?P<pid>[0-9]+):(?P<role>[A-Z]) (?P<time>[0-9]{{1,2}} {_NAME} [0-9]{{4}} "
            rf"{_CLOCK}\.[0-9]{{3}}) (?P<level>[.*#-]) (?P<message>.*)",
        ),
        ("%d %b %Y %H:%M:%S.%f",),
    ),
    "rabbitmq": Preset((rf"^(?P<time>{_ISO}) \[{_LEVEL}\] <(?P<process>[^>]*)> ?(?P<message>.*)",), ("iso",)),
    "nginx_error": Preset(
        (
            rf"^(?P<time>[0-9]{{4}}/[0-9]{{2}}/[0-9]{{2}} {_CLOCK}) \[{_LEVEL}\] (?P<pid>[0-9]+)#"
            r"(?P<tid>[0-9]+): (?:\*(?P<connection>[0-9]+) )?(?P<message>.*?)(?:, client: (?P<client>[^,]*))?"
            r'(?:, server: (?P<server>[^,]*))?(?:, request: "(?P<request>[^"]*)")?'
            r'(?:, upstream: "(?P<upstream>[^"]*)")?(?:, host: "(?P<host>[^"]*)")?'
            r'(?:, referrer: "(?P<referer>[^"]*)")?$',
        ),
        ("%Y/%m/%d %H:%M:%S",),
    ),
    "apache_error": Preset(
        (
            rf"^\[(?P<time>{_NAME} {_NAME} [ 0-9][0-9] {_CLOCK}(?:\.[0-9]{{1,9}})? [0-9]{{4}})\] "
            r"\[(?:(?P<module>[^:\]]*):)?(?P<level>[a-z0-9]+)\] ?(?:\[pid (?P<pid>[0-9]+)(?::tid "
            r"(?P<tid>[0-9]+))?\] ?)?(?:\[client (?P<client>[^\]]*)\] ?)?(?P<message>.*)",
        ),
        ("%a %b %d %H:%M:%S.%f %Y", "%a %b %d %H:%M:%S %Y"),
    ),
    "access_vhost": Preset(
        (
            r"^(?P<vhost>\S+) (?P<client>\S+) (?P<identity>\S+) (?P<user>\S+) \[(?P<time>[^\]]+)\] "
            + _REQUEST,
        ),
        ("%d/%b/%Y:%H:%M:%S %z",),
        types=(("status", "int"), ("bytes", "int")),
    ),
    "haproxy": Preset(
        (
            r"haproxy\[(?P<pid>[0-9]+)\]: (?P<client>\S+) "
            rf"\[(?P<time>[0-9]{{2}}/[A-Z][a-z]{{2}}/[0-9]{{4}}:{_CLOCK}\.[0-9]{{3}})\] (?P<frontend>\S+) "
            r"(?P<backend>[^\s/]+)/(?P<server>\S+) (?P<timers>\S+) (?P<status>-?[0-9]+) \+?(?P<bytes>[0-9]+) "
            r"(?P<rest>.*)",
        ),
        ("%d/%b/%Y:%H:%M:%S.%f",),
        types=(("status", "int"), ("bytes", "int")),
    ),
    "elb": Preset(
        (
            rf"^(?:(?P<protocol>https?|h2|grpcs|wss?) )?(?P<time>{_ZONED}) (?P<elb>\S+) (?P<client>\S+) "
            r"(?P<target>\S+) (?P<request_time>\S+) (?P<target_time>\S+) (?P<response_time>\S+) "
            r"(?P<status>\S+) (?P<target_status>\S+) (?P<received>\S+) (?P<sent>\S+) "
            r'"(?P<request>[^"]*)" "(?P<agent>[^"]*)"(?P<rest>.*)',
        ),
        ("iso",),
    ),
    "vpc_flow": Preset(
        (
            r"^(?P<version>[0-9]+) (?P<account>\S+) (?P<interface>eni-\S+) (?P<client>\S+) (?P<server>\S+) "
            r"(?P<client_port>\S+) (?P<server_port>\S+) (?P<protocol>\S+) (?P<packets>\S+) (?P<bytes>\S+) "
            r"(?P<time>[0-9]{10}) (?P<end>[0-9]{10}) (?P<action>\S+) (?P<status>\S+)",
        ),
        ("epoch_s",),
    ),
    "cef": Preset(
        (
            rf"^(?:<[0-9]+>)?(?P<time>[A-Z][a-z]{{2}} [ 0-3][0-9] {_CLOCK}) (?P<host>\S+) {_CEF}",
            rf"^(?:<[0-9]+>[0-9]* ?)?(?P<time>{_ZONED}) (?P<host>\S+) .*?{_CEF}",
        ),
        ("%b %d %H:%M:%S", "iso"),
    ),
    "suricata": Preset(
        (
            rf"^(?P<time>[0-9]{{2}}/[0-9]{{2}}/[0-9]{{4}}-{_CLOCK}\.[0-9]+) +\[\*\*\] "
            r"\[(?P<signature>[0-9:]+)\] (?P<message>.*?) \[\*\*\]"
            r"(?: \[Classification: (?P<classification>[^\]]*)\])?(?: \[Priority: (?P<priority>[0-9]+)\])?"
            r" \{(?P<protocol>[^}]*)\} (?P<client>\S+) -> "
            r"(?P<server>\S+)",
        ),
        ("%m/%d/%Y-%H:%M:%S.%f",),
        types=(("priority", "int"),),
    ),
    "auditd": Preset(
        (
            r"^(?:node=(?P<node>\S+) )?type=(?P<kind>\S+) msg=audit\((?P<time>[0-9]+\.[0-9]+):"
            r"(?P<serial>[0-9]+)\): ?(?P<message>.*)",
        ),
        ("epoch_s",),
    ),
    "logcat": Preset(
        (
            rf"^(?P<time>(?:[0-9]{{4}}-)?[0-9]{{2}}-[0-9]{{2}} {_CLOCK}\.[0-9]{{3,6}}) +(?:(?P<user>\S+) +)?"
            r"(?P<pid>[0-9]+) +(?P<tid>[0-9]+) (?P<level>[VDIWEFS]) (?P<logger>.*?) *: (?P<message>.*)",
        ),
        ("%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%f"),
    ),
    "klog": Preset(
        (
            rf"^(?P<level>[IWEF])(?P<time>(?:20[0-9]{{2}})?[0-9]{{4}} {_CLOCK}\.[0-9]{{6}}) +(?P<pid>[0-9]+) "
            r"(?P<place>[^\s:]+:[0-9]+)\] (?P<message>.*)",
        ),
        ("%m%d %H:%M:%S.%f", "%Y%m%d %H:%M:%S.%f"),
    ),
    "cockroachdb": Preset(
        (
            rf"^(?P<level>[IWEF])(?P<time>[0-9]{{6}} {_CLOCK}\.[0-9]{{6}}) +(?P<pid>[0-9]+) "
            r"(?P<place>[^\s:]+:[0-9]+) (?P<message>.*)",
        ),
        ("%y%m%d %H:%M:%S.%f",),
    ),
    "gc": Preset(
        (
            rf"^\[(?P<time>{_ISO})\](?:\[(?P<uptime>[0-9.,]+m?s)\])?(?:\[(?P<pid>[0-9]+)\])?\[{_LEVEL} *\]"
            r"\[(?P<tags>[^\]]*?) *\] ?(?P<message>.*)",
        ),
        ("iso",),
    ),
    "strace": Preset(
        (
            r"^(?:(?:\[pid +)?(?P<pid>[0-9]+)\]? +)?(?P<time>1[0-9]{9}\.[0-9]{1,9}) "
            r"(?P<message>(?P<call>\w+)\(.*\)) += (?P<result>.*)",
            r"^(?:(?:\[pid +)?(?P<pid>[0-9]+)\]? +)?(?P<time>1[0-9]{9}\.[0-9]{1,9}) (?P<message>.*)",
        ),
        ("epoch_s",),
    ),
    "candump": Preset(
        (r"^\((?P<time>[0-9]+\.[0-9]+)\) (?P<interface>\S+) (?P<can_id>[0-9A-Fa-f]+)##?(?P<data>\S*)",),
        ("epoch_s",),
    ),
    "ftrace": Preset(
        (
            r"^ *(?P<task>\S.*?)-(?P<pid>[0-9]+) +(?:\([^)]*\) +)?\[(?P<cpu>[0-9]+)\] "
            r"(?:(?P<flags>\S{4,6}) +)? *(?P<time>[0-9]+\.[0-9]+): (?P<event>[\w:-]+): ?(?P<message>.*)",
        ),
        ("epoch_s",),
        begins=r"^ *\S.*?-[0-9]+ +(?:\([^)]*\) +)?\[[0-9]+\] ",
        since_start=True,
    ),
    "dmesg": Preset(
        (r"^(?:<[0-9]+>)?\[ *(?P<time>[0-9]+\.[0-9]{6})\] (?P<message>.*)",), ("epoch_s",), since_start=True
    ),
    "dmesg_dates": Preset(
        (
            rf"^\[(?P<time>{_NAME} {_NAME} [ 0-9][0-9] {_CLOCK} [0-9]{{4}})\] "
            "(?P<message>.*)",
        ),
        ("%a %b %d %H:%M:%S %Y",),
    ),
    "compose": Preset((rf"^(?P<container>\S+) +\| +(?P<time>{_ZONED}) ?(?P<message>.*)",), ("iso",)),
    "vmware": Preset(
        (
            rf"^(?P<time>{_ISO}) {_LEVEL} (?P<program>[\w-]+)\[(?P<tid>\w+)\] \[(?P<context>[^\]]*)\] ?"
            "(?P<message>.*)",
        ),
        ("iso",),
    ),
    "monolog": Preset(
        (rf"^\[(?P<time>{_ISO})\] (?P<channel>[\w-]+)\.(?P<level>[A-Z]+): (?P<message>.*)",), ("iso",)
    ),
    "env_logger": Preset(
        (rf"^\[(?P<time>{_ZONED}) (?P<level>[A-Z]+) +(?P<logger>[\w:]+)\] (?P<message>.*)",), ("iso",)
    ),
    "syslog_iso": Preset((rf"^(?:<(?P<priority>[0-9]{{1,3}})>)?(?P<time>{_ZONED}) {_SENDER}",), ("iso",)),
    "journalctl": Preset(
        (rf"^(?P<time>[A-Z][a-z]{{2}} [ 0-3][0-9] {_CLOCK}\.[0-9]{{6}}) {_SENDER}",), ("%b %d %H:%M:%S.%f",)
    ),
}  # fmt: skip
"""By their names, of which the first that fits most records counts: the more particular ones come first."""

PRESETS: Final = {**_SPECIAL, **GENERAL}
"""All forms by their names in ``[extract]``."""
