"""Spark that cannot be had is refused by name, and at once."""

from __future__ import annotations

import importlib.util
import os
import socket
from pathlib import Path

import pytest

from tests.needs import lacking
from uncertain_cep.errors import OptionError, RuntimeEnvironmentError
from uncertain_cep.spark import masters
from uncertain_cep.spark.masters import check_home, check_master, check_server
from uncertain_cep.spark.session import check_startable

MASTERS = (
    *("local", "local[*]", "local[2]", "local[2,4]", "local[*,4]", "local-cluster[2,1,1024]", "yarn"),
    *(
        "spark://a:7077",
        "spark://a:7077,b:7077",
        "k8s://https://a:443",
        "sc://a",
        "sc://a:15002/;use_ssl=true",
    ),
)


@pytest.mark.parametrize("master", MASTERS)
def test_masters(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize(
    "master", ["", "locl[2]", "local[]", "local[two]", "local[2", "spark://", "sc:/a", "a:7077"]
)
def test_what_is_no_master(master: str) -> None:
    with pytest.raises(OptionError, match="is no master of Spark: write local"):
        check_master(master)


def test_a_spark_home_that_holds_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for home in (tmp_path, tmp_path / "gone"):
        monkeypatch.setenv("SPARK_HOME", str(home))
        with pytest.raises(RuntimeEnvironmentError, match="holds no Spark"):
            check_home()
    monkeypatch.setenv("SPARK_HOME", str(Path(importlib.import_module("pyspark").__file__ or "").parent))
    check_home()


def test_a_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("grpc") is None:
        lacking("packages", "Spark Connect needs pyspark[connect]")
    monkeypatch.setattr(masters, "CONNECT_SECONDS", 0.5)
    # Bound, but nobody listens.
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        with pytest.raises(RuntimeEnvironmentError, match=f"answers at 127.0.0.1:{port} within 0.5 s"):
            check_server(f"sc://127.0.0.1:{port}")


@pytest.mark.skipif(os.name == "nt", reason="users have names there")
def test_a_user_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    with pytest.raises(RuntimeEnvironmentError, match="Spark needs a name of the user 2147483641"):
        check_startable("local")
