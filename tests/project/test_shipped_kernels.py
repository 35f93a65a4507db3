"""Compiled kernels that are installed are found wherever they lie, and nothing is compiled then."""

from __future__ import annotations

import re
import sys
import tomllib
import zipfile
from pathlib import Path

import numba
import pytest

from confidence.kernel import NEVER_COMPILED
from tests.project.test_wheel import ROOT, distributions, linked, run, wheel
from uncertain_cep.warming import GROUPS

__all__ = ["distributions", "wheel"]

WARM_UP = """
import sys
from confidence.kernel_cache import is_marked, when_compiling
from uncertain_cep.warming import warm_up

assert all(map(is_marked, sys.argv[1:]))
found = []
when_compiling(lambda name, there: found.append(there))
warm_up(sys.argv[1:])
print(len(found), found.count(False))
"""


def project(folder: Path) -> dict[str, object]:
    table: dict[str, object] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    return table


def test_both_distributions_have_one_version_and_the_numba_that_is_tested() -> None:
    main, kernels = project(ROOT), project(ROOT / "kernels")
    assert kernels["version"] == main["version"]
    assert kernels["dependencies"] == [f"numba=={numba.__version__}", f"uncertain-cep=={main['version']}"]
    extras = main["optional-dependencies"]
    assert isinstance(extras, dict)
    assert extras["compiled"] == [f"uncertain-cep-kernels=={main['version']}"]


def check(wheel: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, groups: tuple[str, ...]) -> None:
    """Build the kernels of some groups, install them elsewhere, and see that nothing is compiled there."""
    monkeypatch.setenv("UNCERTAIN_CEP_KERNELS", ",".join(groups))
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder, ROOT / "kernels")
    (kernels,) = folder.glob("*.whl")
    assert re.fullmatch(r"uncertain_cep_kernels-[\d.]+-cp3\d+-none-\w+\.whl", kernels.name)
    with zipfile.ZipFile(kernels) as archive:
        assert {Path(name).suffix for name in archive.namelist() if "/compiled/" in name} == {
            ".nbc",
            ".whole",
        }
    binaries = linked(folder, wheel, without=("pyspark", "py4j", "pandas"))
    pip = (sys.executable, "-m", "pip", "--python", binaries / "python", "install")
    run(*pip, "--quiet", "--no-deps", "--no-compile", kernels)
    empty = folder / "empty"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(empty))
    kernels_used, compiled = map(int, run(binaries / "python", "-c", WARM_UP, *groups).split())
    assert kernels_used > 5
    assert compiled == 0
    assert not list(empty.rglob("*.nbc"))


@pytest.mark.skipif(NEVER_COMPILED, reason="nothing compiles")
def test_installed_kernels_are_found(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(wheel, tmp_path, monkeypatch, ("expected counts",))


@pytest.mark.thorough
def test_all_installed_kernels_are_found(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(wheel, tmp_path, monkeypatch, tuple(GROUPS))
