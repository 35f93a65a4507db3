# ruff: noqa: E501
"""Logs and exports of usual programs: each gets a schema with the times that stand in it, or none."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from pathlib import Path
from typing import Final

import pytest

import uncertain_cep as uc
from tests.cli.test_init_logs import bounds
from tests.needs import lacking
from tests.traces.files import put
from uncertain_cep.traces.proposing import propose

CHANGED: Final = 1_717_243_200
"""The last change of the files: noon of 2024-06-01."""

ROWS: Final = 4
MICROSECONDS: Final = 1000

LINES: Final[dict[str, tuple[str, str]]] = {
    "traefik": ('10.0.0.1 - - [31/May/2024:12:00:0# +0200] "GET / HTTP/1.1" 200 19 "-" "-" 1 "web@docker" 1ms', ""),
    "caddy": ('{"level":"info","ts":171714960#.125,"logger":"http.log.access","request":{"method":"GET"}}', ".125"),
    "envoy": ('[2024-05-31T10:00:0#.125Z] "GET /api HTTP/1.1" 200 - 0 154 2 1 "-" "curl/8" "a-b"', ".125"),
    "consul": ("2024-05-31T10:00:0#.125Z [INFO]  agent.server: New leader elected: payload=a", ".125"),
    "vault": ('{"time":"2024-05-31T10:00:0#.125Z","type":"request","request":{"id":"a#","operation":"read"}}', ".125"),
    "etcd": ('{"level":"info","ts":"2024-05-31T10:00:0#.125Z","caller":"etcdserver/server.go:1","msg":"x"}', ".125"),
    "prometheus": ('ts=2024-05-31T10:00:0#.125Z caller=main.go:12 level=info msg="Server is ready"', ".125"),
    "grafana": ('logger=http.server t=2024-05-31T12:00:0#.125+02:00 level=info msg="HTTP" address=[::]:3000', ".125"),
    "jenkins": ("2024-05-31 10:00:0#.125+0000 [id=32]\tINFO\thudson.WebAppMain$3#run: up", ".125"),
    "sidekiq": ("2024-05-31T10:00:0#.125Z pid=1 tid=abc class=HardWorker jid=x INFO: start", ".125"),
    "clickhouse": ("2024.05.31 10:00:0#.125 [ 1 ] {} <Information> Application: starting up", ".125"),
    "neo4j": ("2024-05-31 10:00:0#.125+0000 INFO  Started.", ".125"),
    "cockroachdb": ("I240531 10:00:0#.125000 1 server/node.go:12 ⋮ [n1] 1  started", ".125"),
    "ceph": ("2024-05-31T10:00:0#.125+0000 7f1c5c2c6700  0 mon.a@0(leader) e1 handle_command", ".125"),
    "openvpn": ("Fri May 31 10:00:0# 2024 TLS: Initial packet from [AF_INET]1.2.3.4:5", ""),
    "exim": ("2024-05-31 10:00:0# 1sCxYz-0001Ab-2C <= a@b.c H=x [1.2.3.4] P=esmtp S=1234", ""),
    "dovecot": ("May 31 10:00:0# imap-login: Info: Login: user=<a>, method=PLAIN", ""),
    "bind": ("31-May-2024 10:00:0#.125 client @0x7f 1.2.3.4#5 (x.org): query: x.org IN A +", ".125"),
    "unbound": ("[171714960#] unbound[12:0] info: start of service", ""),
    "samba": ("[2024/05/31 10:00:0#.125000,  0] ../../server.c:1784(main)\n  smbd version 4.15 started.", ".125"),
    "dpkg": ("2024-05-31 10:00:0# install libc6:amd64 <none> 2.39-0", ""),
    "pacman": ("[2024-05-31T12:00:0#+0200] [ALPM] upgraded x (1-1 -> 2-1)", ""),
    "yum": ("May 31 10:00:0# Installed: httpd-2.4.6.x86_64", ""),
    "fail2ban": ("2024-05-31 10:00:0#,125 fail2ban.filter         [12]: INFO    [sshd] Found 1.2.3.4", ".125"),
    "minecraft": ("[31May2024 10:00:0#.125] [Server thread/INFO] [net.minecraft]: Done", ".125"),
    "unreal": ("[2024.05.31-10.00.0#:125][  0]LogInit: Display: Running", ".125"),
    "android studio": ("2024-05-31 10:00:0#,125 [   1234]   INFO - #c.i.o.p.Main - IDE STARTED", ".125"),
    "weblogic": ("<May 31, 2024 10:00:0# AM UTC> <Notice> <WebLogicServer> <BEA-000365> <Server state>", ""),
    "websphere": ("[5/31/24 10:00:0#:125 UTC] 00000001 WsServerImpl  A   WSVR0001I: Server open", ".125"),
    "sap": ("N  Fri May 31 10:00:0# 2024", ""),
    "sql server agent": ("2024-05-31 10:00:0# - ! [298] SQLServer Error: 18456", ""),
    "ping": ("[171714960#.125000] 64 bytes from 1.1.1.1: icmp_seq=# ttl=57 time=1.5 ms", ".125"),
    "nagios": ("[171714960#] SERVICE ALERT: web;HTTP;CRITICAL;HARD;3;timeout", ""),
    "zabbix": ("  1234:20240531:10000#.125 server #1 started", ".125"),
    "asterisk": ("[May 31 10:00:0#] NOTICE[1234] chan_sip.c: Registration from x failed", ""),
    "freeswitch": ("2024-05-31 10:00:0#.125000 [NOTICE] switch_channel.c:1104 New Channel x", ".125"),
    "kamailio": ("May 31 10:00:0# sip /usr/sbin/kamailio[12]: INFO: <script>: x", ""),
    "juniper": ("May 31 10:00:0#.125 fw1 RT_FLOW: RT_FLOW_SESSION_CREATE: session created", ".125"),
    "palo alto": ("1,2024/05/31 10:00:0#,0011C1,TRAFFIC,end,2305,2024/05/31 10:00:0#,1.2.3.4", ""),
    "checkpoint": ("time=171714960#|hostname=fw1|severity=Medium|product=VPN-1|action=Accept", ""),
    "leef": ("May 31 10:00:0# fw LEEF:2.0|V|P|1|4000|sev=5\tsrc=1.2.3.4", ""),
    "waf": ('{"timestamp":171714960#125,"formatVersion":1,"action":"ALLOW","httpRequest":{"clientIp":"1.2.3.4"}}', ".125"),
    "route 53": ('{"version":"1.1","query_timestamp":"2024-05-31T10:00:0#Z","query_name":"x.","rcode":"NOERROR"}', ""),
    "lambda": ("2024-05-31T10:00:0#.125Z\tabc-#\tINFO\thello", ".125"),
    "bitbucket": ("2024-05-31 10:00:0#,125 INFO  [spring-startup]  c.a.b.i.b.BootApplication Starting", ".125"),
    "maven": ("[INFO] Finished at: 2024-05-31T12:00:0#+02:00", ""),
    "ansible": ("2024-05-31 10:00:0#,125 p=12 u=root n=ansible | TASK [x] ***", ".125"),
    "salt": ("2024-05-31 10:00:0#,125 [salt.minion      :123 ][INFO    ][12] x", ".125"),
    "puppet": ("2024-05-31 12:00:0# +0200 Puppet (notice): Applied catalog in 1.2 seconds", ""),
    "ros": ("[INFO] [171714960#.125000000] [talker]: Publishing", ".125"),
    "fix": ("20240531-10:00:0#.125 : 8=FIX.4.4|9=100|35=D|52=20240531-10:00:0#.125|", ".125"),
    "chat of the USA": ("[5/31/24, 10:00:0# AM] Bob: hi", ""),
    "irc": ("2024-05-31T10:00:0#  <bob> hi", ""),
    "php in UTC": ("[31-May-2024 10:00:0# UTC] PHP Warning:  x", ""),
    "mikrotik": ("may/31/2024 10:00:0# system,info router rebooted", ""),
    "splunkd": ("05-31-2024 12:00:0#.125 +0200 INFO  Metrics - group=pipeline, name=x", ".125"),
    "solr": ("2024-05-31 10:00:0#.125 INFO  (qtp1-12) [c:x s:shard1 r:core_node1] o.a.s.Request", ".125"),
    "coredns": ('[INFO] 2024-05-31T10:00:0#.125Z 10.0.0.5:3456 - 12 "A IN x.org. udp 40" NOERROR', ".125"),
    "cisco": ("*May 31 10:00:0#.125: %LINK-3-UPDOWN: Interface x changed state to up", ".125"),
    "sonicwall": ('id=firewall sn=00 time="2024-05-31 10:00:0# UTC" fw=1.2.3.4 pri=6 msg="x"', ""),
    "passenger": ("[ N 2024-05-31 10:00:0#.125 12/T1 age/Cor/CoreMain.cpp:12 ]: up", ".125"),
    "os_log": ("2024-05-31 12:00:0#.125+0200 0x1a2b     Default     0x0                  12     0    x: up", ".125"),
    "pbs": ("05/31/2024 10:00:0#;0008;PBS_Server;Job;12.x;Job Queued", ""),
    "lsf": ('"JOB_NEW" "10.1" 171714960# 12 1000 33 4', ""),
    "datadog": ("2024-05-31 10:00:0# UTC | CORE | INFO | (pkg/x/y.go:12 in Run) | up", ""),
    "digits": ("2024053110000# up", ""),
    "gap of a dash": ("31.05.2024 - 10:00:0# INFO x", ""),
}  # fmt: skip
"""A line for each of four seconds, ``#``, from 10:00 of 2024-05-31 in UTC, and the fraction of each."""

TABLES: Final[dict[str, tuple[str, str, str]]] = {
    "teams": ("Full Name,User Action,Timestamp\n", '"A B",Joined,"5/31/2024, 10:00:0# AM"', ""),
    "windows events": (
        "Level,Date and Time,Source,Event ID\n",
        "Information,31.05.2024 10:00:0#,Kernel,1",
        "",
    ),
    "wireshark": ('"No.","Time","Source"\n', '"#","2024-05-31 10:00:0#.125000","1.2.3.4"', ".125"),
    "px4": ("timestamp,x,y\n", "171714960#000000,1,2", ""),
    "matlab": ("Time,V\n", "31-May-2024 10:00:0#,1.5", ""),
    "excel in German": ("Zeit;Wert\n", "31.05.2024 10:00:0#;1,5", ""),
    "short years": ("at,x\n", "5/31/24 10:00:0#,1", ""),
    "digits": ("date,x\n", "2024053110000#,1", ""),
    "Chinese": ("at,x\n", "2024年5月31日 10:00:0#,1", ""),
    "German": ("at,x\n", "31. Mai 2024 10:00:0#,1", ""),
    "Russian": ("at,x\n", "31 мая 2024 10:00:0#,1", ""),
}
"""Lines of names, rows and fractions of a second."""

DOCUMENTS: Final = {
    "github": [{"id": "#", "type": "PushEvent", "created_at": "2024-05-31T10:00:0#Z"}],
    "stripe": {"object": "list", "data": [{"id": "e#", "created": "@171714960#", "type": "x"}], "has_more": False},
    "okta": [{"uuid": "a#", "published": "2024-05-31T10:00:0#Z", "eventType": "user.session.start"}],
    "azure": {"value": [{"eventTimestamp": "2024-05-31T10:00:0#.0000000Z", "operationName": {"value": "x"}}]},
    "har": {"log": {"entries": [{"startedDateTime": "2024-05-31T12:00:0#.000+02:00", "time": 50.5}]}},
    "cloudtrail": {"Records": [{"eventTime": "2024-05-31T10:00:0#Z", "eventName": "RunInstances"}]},
    "kubernetes": {"kind": "List", "items": [{"reason": "R", "lastTimestamp": "2024-05-31T10:00:0#Z"}]},
}  # fmt: skip
"""Of each list the first item, of which there are four."""


def repeated(value: object) -> object:
    """Return a document with four items in each list of one; a text that begins with @ is a number."""
    if isinstance(value, list):
        items = [json.dumps(value[0]).replace("#", str(second)) for second in range(ROWS)]
        return [json.loads(re.sub(r'"@([0-9]+)"', r"\1", item)) for item in items]
    if isinstance(value, dict):
        return {name: repeated(field) for name, field in value.items()}
    return value


def check(folder: Path, path: Path, fraction: str) -> None:
    """Check that events are of the four seconds, as nearly as the fraction tells."""
    os.utime(path, (CHANGED, CHANGED))
    proposed = propose([path])
    table = uc.read_traces(path, put(folder / "schema.toml", proposed.text))
    assert table.num_rows == ROWS, proposed.text
    begin = int(dt.datetime(2024, 5, 31, 10, tzinfo=dt.UTC).timestamp()) * 10**6
    part = int(fraction.removeprefix(".") or 0) * 1000
    for second, (lower, upper) in enumerate(sorted(bounds(table))):
        moment = (begin + second * 10**6 + part) * MICROSECONDS
        # A series of stamps a second apart is as wide as that on both sides.
        assert lower <= moment <= upper <= lower + 2 * 10**9, proposed.text


@pytest.mark.parametrize("name", LINES)
def test_lines_of_usual_programs(tmp_path: Path, name: str) -> None:
    line, fraction = LINES[name]
    text = "".join(line.replace("#", str(second)) + "\n" for second in range(ROWS))
    check(tmp_path, put(tmp_path / "app.log", text), fraction)


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_usual_programs(tmp_path: Path, name: str) -> None:
    names, row, fraction = TABLES[name]
    text = names + "".join(row.replace("#", str(second)) + "\n" for second in range(ROWS))
    check(tmp_path, put(tmp_path / "t.csv", text), fraction)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_of_usual_programs(tmp_path: Path, name: str) -> None:
    check(tmp_path, put(tmp_path / "t.json", json.dumps(repeated(DOCUMENTS[name]), indent=1)), "")


TRACES: Final[dict[str, list[float]]] = {
    "since a start": [0, 1.5, 123_456_789.125, 123_456_790.5],
    "whole": [1_000_000, 1_000_007],
    "since 1970": [1_717_149_600_000_000, 1_717_149_600_000_007],
}


@pytest.mark.parametrize("kind", ["object", "array"])
@pytest.mark.parametrize("name", TRACES)
def test_traces_of_chrome(tmp_path: Path, name: str, kind: str) -> None:
    items: list[dict[str, object]] = [
        {"name": "f", "ph": "X", "ts": time, "dur": 5, "pid": 1, "tid": 2} for time in TRACES[name]
    ]
    items.append({"name": "thread_name", "ph": "M", "pid": 1, "args": {"name": "main"}})
    path = put(tmp_path / "t.json", json.dumps({"traceEvents": items} if kind == "object" else items))
    proposed = propose([path])
    table = uc.read_traces(path, put(tmp_path / "schema.toml", proposed.text))
    assert ("us since a start" in proposed.text) == (name != "since 1970")
    assert table.num_rows == len(TRACES[name])
    for (lower, upper), time in zip(sorted(bounds(table)), TRACES[name], strict=True):
        assert lower <= round(time * MICROSECONDS) <= upper + MICROSECONDS
        assert upper - lower <= 10**9


def test_usual_forms_of_a_list(shared_data: Path, tmp_path: Path) -> None:
    listed = shared_data.parent / "cases" / "log_forms.json"
    if not listed.is_file():
        lacking("data", f"there is no list of forms at {listed}")
    forms = json.loads(listed.read_text("utf-8"))
    assert len(forms) >= 42
    wrong = []
    for number, (name, lines) in enumerate(forms.items()):
        path = put(tmp_path / f"{number}.log", "\n".join(lines) + "\n")
        os.utime(path, (CHANGED, CHANGED))
        table = uc.read_traces(path, put(tmp_path / f"{number}.toml", propose([path]).text))
        expected = sorted(moment for line in lines if (moment := moment_of(line)) is not None)
        if not (
            len(expected) == table.num_rows
            and all(
                lower <= moment * MICROSECONDS <= upper + MICROSECONDS and upper - lower <= 2 * 10**9
                for (lower, upper), moment in zip(sorted(bounds(table)), expected, strict=True)
            )
        ):
            wrong.append(name)
    assert wrong == []


_BOOTED: Final = re.compile(r"^ +\S+ +\[[0-9]+\] \S+ +([0-9]+)\.([0-9]{6}): ")
_EPOCH: Final = re.compile(r"(?<![0-9])(17171[0-9]{5})(?:\.([0-9]{1,6}))?")
_CLOCK: Final = re.compile(r"10:00:0([0-9])(?:[.,]([0-9]{1,6}))?[0-9]*(.{0,6})")


def moment_of(line: str) -> int | None:
    """Return the microseconds since 1970 of a line of 2024-05-31, by another way; None if it has no stamp."""
    if (match := _BOOTED.match(line)) is not None:
        return int(match[1]) * 10**6 + int(match[2])
    if clocks := _CLOCK.findall(line):
        # Of HAProxy's lines the last stamp is that of the request.
        second, part, behind = clocks[0 if line.startswith("{") else -1]
        east = 2 if re.match(r" ?\+02:?00", behind) else 0
        begin = int(dt.datetime(2024, 5, 31, 10 - east, tzinfo=dt.UTC).timestamp()) + int(second)
    elif (match := _EPOCH.search(line)) is not None:
        begin, part = int(match[1]), match[2] or ""
    else:
        return None
    return begin * 10**6 + int((part or "0").ljust(6, "0"))
