"""A Spark session: the active one, or a new one that starts fast and quietly on one machine."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import Popen
from typing import TYPE_CHECKING, Any, Final, Protocol

from uncertain_cep.boundary import public
from uncertain_cep.config.limits import BATCH_ROWS
from uncertain_cep.errors import RuntimeEnvironmentError
from uncertain_cep.running.installation import needed
from uncertain_cep.spark.java import ensure_java
from uncertain_cep.spark.masters import check_home, check_master, check_server, check_user
from uncertain_cep.spark.shims import python_of_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "STATE_PROVIDER",
    "STATE_SETTINGS",
    "JavaStart",
    "check_startable",
    "get_session",
    "kill_java",
    "start_session",
]

STATE_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
STATE_SETTINGS: Final = {
    STATE_PROVIDER: "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""The settings that a session needs for the state of streams."""

_JVM_OPTIONS: Final = "spark.driver.extraJavaOptions"
_LOOPBACK: Final = "127.0.0.1"
_LOCAL: Final = re.compile(r"local(?:\[([0-9]+|\*)\])?")
_LOGGING: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
appender.console.type = Console
appender.console.name = stderr
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""

_LARGEST_HEAP_MEBIBYTES: Final = 8192
"""Most memory that a local session gives the JVM."""

TASK_TRIES: Final = 2
"""How often a local session tries a task that fails or loses its worker. An error that comes at each try is
computed as often."""


@public
def get_session(
    master: str = "local[*]",
    app_name: str = "uncertain-cep",
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return the active Spark session, or start one.

    Parameters
    ----------
    master : str
        ``local[2]``, ``local[*]``, the URL of a cluster's master or, for Spark Connect, ``sc://host``. Under
        ``spark-submit`` its ``--master`` is used instead. A local session tries a task again if its worker is
        lost; ``local[2,1]`` fails at once.
    app_name : str
    conf : mapping of str to str, optional
        Spark settings, which override those chosen here. ``{"spark.ui.enabled": "true"}`` turns on the web
        page of a local session.

    Returns
    -------
    pyspark.sql.SparkSession

    Raises
    ------
    OptionError
        If there is no such master.
    RuntimeEnvironmentError
        If pyspark, or a Java for it, is not installed, or no server answers.

    Notes
    -----
    Starting a local session sets ``JAVA_HOME``, ``PYSPARK_PYTHON``, ``PYSPARK_DRIVER_PYTHON`` and, if it is
    not set, ``SPARK_LOCAL_IP`` of this process, since Spark reads those and nothing else.
    """
    return start_session(master, app_name, conf)


def start_session(
    master: str,
    app_name: str = "uncertain-cep",
    conf: Mapping[str, str] | None = None,
    java: JavaStart | None = None,
) -> SparkSession:
    """Return the session of `get_session`; ``java`` says how its Java process is to be started."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise RuntimeEnvironmentError(
            f"Spark is not installed ({error}): pip install 'pyspark>=4.1'"
        ) from error
    if (active := SparkSession.getActiveSession()) is not None:
        return active
    check_startable(master)
    settings = dict(_common_conf())
    builder = SparkSession.builder.appName(app_name)
    if master.startswith("sc://"):
        check_server(master)
        builder = builder.remote(master)
        settings = {}
    elif "PYSPARK_GATEWAY_PORT" not in os.environ:
        builder = builder.master(_with_retries(master))
        if master.startswith("local"):
            # Otherwise workers would run the first python3 of PATH, without the packages of this one.
            os.environ["PYSPARK_PYTHON"] = python_of_workers()
            os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
            # Otherwise Java looks the machine's own name up, and ends where nothing knows it.
            os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
            settings |= _local_conf()
    for key, value in (conf or {}).items():
        # Options of the JVM add up; the later one of two holds.
        options = settings.get(key) if key == _JVM_OPTIONS else None
        settings[key] = f"{options} {value}" if options else value
    for key, value in settings.items():
        builder = builder.config(key, value)
    if not master.startswith("sc://") and "PYSPARK_GATEWAY_PORT" not in os.environ:
        # Who starts Java prepares it for the master.
        _start_java({"spark.app.name": app_name, "spark.master": _with_retries(master), **settings}, java)
    return builder.getOrCreate()


class JavaStart(Protocol):
    """How a Java process is to be started, and who hears of it."""

    options: Mapping[str, Any]
    """More arguments of `subprocess.Popen`."""

    def launched(self, process: Popen[bytes]) -> None:
        """Hear of the process."""


def _start_java(settings: Mapping[str, str], java: JavaStart | None) -> None:
    """Start Java in a session of its own: a signal for the group of this process is not for Java."""
    from pyspark import SparkConf, SparkContext, java_gateway

    # Java outlives the context of an earlier session.
    if SparkContext._gateway is not None:
        return
    options: dict[str, Any] = {} if os.name == "nt" else {"start_new_session": True}
    if java is not None:
        options |= java.options
    started: list[Popen[bytes]] = []

    def start(*args: Any, **kwargs: Any) -> Popen[bytes]:
        started.append(Popen(*args, **kwargs))
        if java is not None:
            java.launched(started[0])
        return started[0]

    conf = SparkConf().setAll(list(settings.items()))
    # The process is not handed out before Java answers, and Java that is left alone until then never ends.
    plain, java_gateway.Popen = java_gateway.Popen, start  # type: ignore[assignment,attr-defined]
    try:
        gateway = java_gateway.launch_gateway(conf, options)  # type: ignore[no-untyped-call]
    except BaseException:
        for process in started:
            kill_java(process)
        raise
    finally:
        java_gateway.Popen = plain  # type: ignore[attr-defined]
    SparkContext._ensure_initialized(gateway=gateway)


def kill_java(process: Popen[bytes]) -> None:
    """Kill a Java process, and what shares its session's group, such as the scripts that start it."""
    if sys.platform == "win32":
        process.kill()
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def check_startable(master: str) -> None:
    """Raise an error if there is no such master, or what a session needs on this machine is missing."""
    check_master(master)
    if master.startswith("sc://"):
        needed("connect")
    elif "PYSPARK_GATEWAY_PORT" not in os.environ:
        check_home()
        check_user()
        ensure_java()


def _with_retries(master: str) -> str:
    """Return the master with retries of tasks, which by default a local master does not have."""
    local = _LOCAL.fullmatch(master)
    return master if local is None else f"local[{local[1] or 1},{TASK_TRIES}]"


def _common_conf() -> dict[str, str]:
    settings = {
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
        # The default, INT96, keeps neither unit nor zone.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        **STATE_SETTINGS,
    }
    if cache := os.environ.get("NUMBA_CACHE_DIR"):
        settings["spark.executorEnv.NUMBA_CACHE_DIR"] = cache
    return settings


def _local_conf() -> dict[str, str]:
    options = [f"-Dlog4j2.configurationFile={_log_configuration().as_uri()}"]
    if (os.cpu_count() or 1) <= 2:
        # The threads of a concurrent collector would take turns with the tasks.
        options.append("-XX:+UseSerialGC")
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.memory": f"{_heap_mebibytes()}m",
        _JVM_OPTIONS: " ".join(options),
    }


def _log_configuration() -> Path:
    """Return a configuration file with which Spark logs only errors, from its start on."""
    folder = Path(tempfile.mkdtemp(prefix="uncertain-cep-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / "log4j2.properties"
    file.write_text(_LOGGING, encoding="utf-8")
    return file


def _heap_mebibytes() -> int:
    """Return a quarter of the machine's memory, since the Python workers need as much again."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1024
    return min(max(total // 4 // 2**20, 1024), _LARGEST_HEAP_MEBIBYTES)
