"""Another package in the place of one of ours is named with what mends it, and so is one that is missing."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tomllib
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from tests.conftest import ROOT
from uncertain_cep.cli import main
from uncertain_cep.errors import RuntimeEnvironmentError
from uncertain_cep.running import installation
from uncertain_cep.spark.streamed import check_state_store

PACKAGES = ("confidence", "eventbased", "pointbased")


def test_our_packages_are_ours() -> None:
    assert set(installation._OURS) == set(PACKAGES)
    installation.check_ours()


def another(place: Path, name: str, distribution: str | None) -> Path:
    """Install another package of this name in a folder, as pip does with one of a distribution."""
    package = place / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""Another one."""\n')
    if distribution is not None:
        info = place / f"{distribution}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (info / "RECORD").write_text(f"{name}/__init__.py,,\n{info.name}/METADATA,,\n")
    return place


def said(place: Path, *command: str) -> str:
    """Return the last lines of what a Python with a folder first on its path says on stderr."""
    environment = os.environ | {"PYTHONPATH": f"{place}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, *command], env=environment, cwd=place, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("name", PACKAGES)
def test_another_package_of_the_same_name(name: str, tmp_path: Path) -> None:
    another(tmp_path, name, "Its_Distribution")
    shown = said(tmp_path, "-c", "import uncertain_cep")
    first, *commands = shown[shown.index("RuntimeEnvironmentError: ") :].splitlines()
    assert f"the package {name} at {tmp_path / name / '__init__.py'} is not that of uncertain-cep" in first
    assert "the distribution its-distribution has overwritten it" in first
    assert commands[0].strip() == "pip uninstall -y its-distribution"
    assert commands[1].strip().startswith("pip install --force-reinstall --no-deps ")


@pytest.mark.parametrize("command", [["-m", "uncertain_cep"], ["uncertain-cep"]])
def test_the_command_says_so_without_a_traceback(command: list[str], tmp_path: Path) -> None:
    another(tmp_path, "confidence", None)
    (tmp_path / "uncertain-cep").write_text("from uncertain_cep.cli import main\nmain()\n")
    shown = said(tmp_path, *command, "validate", "nothing")
    assert shown.startswith("error: the package confidence at ")
    assert "if it is yours, rename it or start Python in another folder" in shown
    assert "Traceback" not in shown


def test_a_package_that_is_gone_and_one_without_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    def spec(loader: object, origin: str | None) -> ModuleSpec:
        return ModuleSpec("confidence", loader, origin=origin)  # type: ignore[arg-type]

    package_spec: ModuleSpec | None = None
    monkeypatch.setattr(installation, "find_spec", lambda name: package_spec)
    with pytest.raises(RuntimeEnvironmentError, match=r"confidence, a part of uncertain-cep, is missing"):
        installation.check_ours()
    package_spec = spec(None, None)
    with pytest.raises(RuntimeEnvironmentError, match="is not that of uncertain-cep"):
        installation.check_ours()
    package_spec = spec(object(), "frozen")
    installation.check_ours()


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ({}, "uncertain-cep"),
        ({"url": "file:///home/me/checkout", "dir_info": {"editable": True}}, "-e /home/me/checkout"),
        ({"url": "file:///home/me/checkout", "dir_info": {}}, "/home/me/checkout"),
        ({"url": "https://example.org/wheel.whl"}, "https://example.org/wheel.whl"),
    ],
)
def test_it_is_installed_again_as_it_was(
    origin: dict[str, object], command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "uncertain_cep-0.2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: uncertain-cep\nVersion: 0.2.0\n")
    (info / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    assert installation._reinstall() == f"pip install --force-reinstall --no-deps {command}"


def hide(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Have some modules not be there."""
    find = importlib.util.find_spec
    monkeypatch.setattr(installation, "find_spec", lambda name: None if name in modules else find(name))


EVERY = [(part, module) for part, requirement in installation.PARTS.items() for module in requirement.modules]


@pytest.mark.parametrize(("part", "module"), EVERY)
def test_every_package_that_is_missing(part: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    installation.needed(part)
    hide(monkeypatch, module)
    with pytest.raises(RuntimeEnvironmentError) as raised:
        installation.needed(part)
    assert f"({module}): pip install 'uncertain-cep[{installation.PARTS[part].extra}]'" in str(raised.value)


def test_a_part_that_needs_several_and_a_package_within_a_missing_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hide(monkeypatch, "google.protobuf", "confluent_kafka")
    with pytest.raises(RuntimeEnvironmentError, match=r"\(google\.protobuf, confluent_kafka\)"):
        installation.needed("kafka")
    assert not installation.is_there("no_such_package.within")
    monkeypatch.setitem(sys.modules, "none_of_it", None)
    assert not installation.is_there("none_of_it")


def test_extras_bring_what_parts_need() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    distributions = {"google.protobuf": "protobuf", "confluent_kafka": "confluent-kafka"}
    for part in installation.PARTS.values():
        brought = " ".join(extras[part.extra])
        # pyspark's own extra brings what Connect needs.
        packages = ["pyspark[connect]"] if part.extra == "connect" else part.modules
        assert all(distributions.get(module, module) in brought for module in packages)
    # The set that brings Java to a machine brings all that a stream needs.
    assert set(extras["streams"]) <= set(extras["java"])


STREAM = [
    *("stream", "PATTERN SEQ(A a, B b) WITHIN 5", "--largest-interval", "10s"),
    *("--checkpoint", "state", "-o", "out", "--source"),
]
COMMANDS = {
    "a stream": ("google.protobuf", [*STREAM, "folder"]),
    "a stream of Kafka": ("confluent_kafka", [*STREAM, "kafka://here:1/topic"]),
    "a stream of Kafka without protobuf": ("google.protobuf", [*STREAM, "kafka://here:1/topic"]),
    "Spark Connect": (
        "grpc_status",
        ["match", "PATTERN SEQ(A a, B b) WITHIN 5", "trace.parquet", "--master", "sc://here", "-o", "out"],
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_asks_before_it_starts_anything(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, command = COMMANDS[name]
    hide(monkeypatch, module)
    monkeypatch.chdir(tmp_path)
    # Another test may have started a session.
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda self: pytest.fail("Spark was started"))
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert f"({module}): pip install 'uncertain-cep[" in last
    assert not list(tmp_path.iterdir())


def test_python_asks_before_it_starts_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    class Session:
        class conf:  # noqa: N801
            @staticmethod
            def get(name: str, default: str) -> str:
                return {"spark.master": "local[2]"}[name]

    hide(monkeypatch, "google.protobuf", "hypothesis")
    with pytest.raises(RuntimeEnvironmentError, match=r"pip install 'uncertain-cep\[streams\]'"):
        check_state_store(Session)  # type: ignore[arg-type]
    monkeypatch.delitem(sys.modules, "uncertain_cep.testing.strategies", raising=False)
    with pytest.raises(RuntimeEnvironmentError, match=r"pip install 'uncertain-cep\[testing\]'"):
        importlib.import_module("uncertain_cep.testing.strategies")
