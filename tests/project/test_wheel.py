"""The wheel's contents, and that it works in an environment that has nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from hatchling.metadata.core import CoreMetadata, ProjectMetadata
from hatchling.plugin.manager import PluginManager

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ROOT / "requirements" / "runtime.lock"
PACKAGES = ("confidence", "eventbased", "pointbased", "uncertain_cep")

TRACE = "type,id,lower,upper\nA,1,1,5\nC,2,3,5\nB,3,3,5\nC,4,4,8\n"
QUERY = "PATTERN SEQ(A a, B b, C c) WITHIN 4"
EXAMPLE = """
import uncertain_cep as uc

events, query = uc.examples.events("chemotherapy"), uc.examples.queries("chemotherapy")["low_blood_count"]
print(uc.match(events, query).num_rows)
"""
FIGURE_1 = {("1", "3", "2", "1", "5"): 25 / 225, ("1", "3", "4", "1", "7"): 27 / 225}


TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")


def run(*command: object, folder: Path | str = "/") -> str:
    """Run a command away from the source tree, so that only what is installed can be imported."""
    environment = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution of this source tree."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--sdist", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    (wheel,) = distributions.glob("*.whl")
    return wheel


def test_wheel_holds_the_four_packages_the_examples_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    source = {
        file.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for file in (ROOT / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    examples = {
        f"uncertain_cep/{file.relative_to(ROOT).as_posix()}"
        for file in (ROOT / "datasets").rglob("*")
        if file.is_file()
    }
    # It writes kernels into the source tree.
    generators = {
        "confidence/chain/write_out.py",
        "confidence/shared/write_two_clocks.py",
        "eventbased/write_spans.py",
    }
    assert shipped == source - generators | examples
    assert "uncertain_cep/query/grammar.lark" in shipped
    assert {f"{package}/py.typed" for package in PACKAGES} <= shipped


def test_wheel_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        info = next(name for name in archive.namelist() if name.endswith("/METADATA")).rpartition("/")[0]
        written = archive.read(f"{info}/METADATA").decode()
        commands = archive.read(f"{info}/entry_points.txt").decode()
        assert "uncertain-cep = uncertain_cep.cli.command_process:run" in commands
        assert f"{info}/licenses/LICENSE" in archive.namelist()
    assert "License-Expression: Apache-2.0" in written
    assert "Requires-Python: >=3.11" in written
    assert "Description-Content-Type: text/markdown" in written


def described(folder: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> CoreMetadata:
    """Return the metadata that a build of the project in a folder has."""
    monkeypatch.setenv("UNCERTAIN_CEP_URL", address)
    return ProjectMetadata(str(folder), PluginManager()).core


def targets(text: str) -> list[str]:
    return re.findall(r"\[[^\]]+\]\(([^)\s]+)\)", text)


def test_links_of_the_description_lead_to_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    address = "https://example.org/uncertain-cep"
    description = described(ROOT, f"{address}/", monkeypatch)
    release = f"v{description.version}"
    beside = [
        (name, target.removeprefix(f"{address}/{name}/{release}/").partition("#")[0])
        for target in [*targets(description.readme), *description.urls.values()]
        for name in ("blob", "tree")
        if target.startswith(f"{address}/{name}/{release}/")
    ]
    assert len(beside) == len(targets((ROOT / "README.md").read_text(encoding="utf-8"))) + 2
    assert all((ROOT / file).is_dir() if name == "tree" else (ROOT / file).is_file() for name, file in beside)
    assert {"Homepage": address, "Issues": f"{address}/issues"}.items() <= description.urls.items()


def test_without_an_address_the_description_names_files(monkeypatch: pytest.MonkeyPatch) -> None:
    description = described(ROOT, "", monkeypatch)
    assert (targets(description.readme), description.urls) == ([], {})
    assert "| Tutorial (`docs/tutorial.md`) |" in description.readme
    assert "\n`ARCHITECTURE.md` says how it is built" in description.readme


def test_an_address_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="UNCERTAIN_CEP_URL=example: it must be an address"):
        described(ROOT, "example", monkeypatch)


def test_a_source_distribution_keeps_its_description(
    distributions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sdist,) = distributions.glob("*.tar.gz")
    folder = unpacked(sdist, tmp_path)
    whole = described(ROOT, "", monkeypatch).readme
    assert described(folder, "", monkeypatch).readme.strip() == whole.strip()
    address = "https://example.org/uncertain-cep"
    linked_to = described(ROOT, address, monkeypatch)
    again = described(folder, address, monkeypatch)
    assert (again.readme, again.urls) == (linked_to.readme, linked_to.urls)


def test_source_distribution_holds_what_a_packager_needs(distributions: Path) -> None:
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert {"pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "run.py"} <= set(names)
    assert any(name.startswith("tests/") for name in names)
    assert any(name.startswith("datasets/") for name in names)
    assert {"SECURITY.md", "CITATION.cff", "docs/tutorial.md", "docs/site/build.py"} <= set(names)
    assert "notebooks/hadoop.ipynb" in names
    assert not [
        name for name in names if name.startswith((".venv", "build/", ".git/")) or name.endswith(".nbc")
    ]


def installed(folder: Path, wheel: Path) -> Path:
    """Make an empty environment, install the locked packages and the wheel, and return its programs."""
    run(sys.executable, "-m", "venv", folder / "env")
    pip = (folder / "env" / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile")
    run(*pip, "--require-hashes", "-r", RUNTIME)
    run(*pip, wheel)
    return folder / "env" / "bin"


def linked(folder: Path, wheel: Path, without: tuple[str, ...]) -> Path:
    """Do the same with links to the packages that are installed here, but for some of them."""
    run(sys.executable, "-m", "venv", "--without-pip", folder / "env")
    (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
    names = re.findall(r"^([a-z0-9][a-z0-9-]*)==", RUNTIME.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(without) <= set(names)
    for name in sorted(set(names) - set(without)):
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            # It is locked for another system.
            continue
        for top in {file.parts[0] for file in distribution.files or ()} - {".."}:
            if not (packages / top).exists():
                (packages / top).symlink_to(str(distribution.locate_file(top)))
    pip = (sys.executable, "-m", "pip", "--python", folder / "env" / "bin" / "python", "install")
    run(*pip, "--quiet", "--no-deps", "--no-compile", wheel)
    return folder / "env" / "bin"


def answer_of_figure_1(binaries: Path, folder: Path, *options: str) -> dict[tuple[str, ...], float]:
    """Run the paper's example and return the confidence of each (ids, range)."""
    trace = folder / "figure1.csv"
    trace.write_text(TRACE)
    header, *rows = run(binaries / "uncertain-cep", "match", QUERY, trace, *options).splitlines()
    assert header.replace('"', "") == "a,b,c,range_lower,range_upper,confidence"
    parts = [row.split(",") for row in rows]
    return {tuple(part[:-1]): float(part[-1]) for part in parts}


def run_the_tutorial(binaries: Path, folder: Path) -> None:
    """Run the commands and the program of the tutorial, and hold that they print what it says."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)
    named: dict[str, list[str]] = {}
    for language, text in blocks:
        named.setdefault(language, []).append(text)
    log, profile, answer = named["text"]
    files = {"jobs.log": log, "memory.csv": named["csv"][0], "schema.toml": named["toml"][0]}
    for name, text in {**files, "failed.query": named["sql"][0]}.items():
        (folder / name).write_text(text)
    commands = re.findall(r"^    uncertain-cep (.*)$", TUTORIAL, re.MULTILINE)
    shown = [run(binaries / "uncertain-cep", *command.split(), folder=folder) for command in commands]
    assert shown[:2] == [profile, answer]
    (folder / "report.html").unlink()
    (program,) = named["python"]
    assert "job-17" in run(binaries / "python", "-c", program, folder=folder)
    assert (folder / "report.html").is_file()


@pytest.fixture(scope="module")
def without_spark(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel. The in-process engine must not need Spark's 450 MB."""
    return linked(tmp_path_factory.mktemp("bare"), wheel, without=("pyspark", "py4j"))


def test_wheel_runs_the_tutorial(without_spark: Path, tmp_path: Path) -> None:
    run_the_tutorial(without_spark, tmp_path)


@pytest.mark.thorough
def test_source_distribution_runs_the_tutorial(distributions: Path, tmp_path: Path) -> None:
    (sdist,) = distributions.glob("*.tar.gz")
    run(
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--wheel",
        "--outdir",
        tmp_path,
        unpacked(sdist, tmp_path),
    )
    (wheel,) = tmp_path.glob("*.whl")
    run_the_tutorial(linked(tmp_path, wheel, without=("pyspark", "py4j")), tmp_path)


def unpacked(sdist: Path, folder: Path) -> Path:
    with tarfile.open(sdist) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:
            # Python 3.11 has it from 3.11.4 on.
            archive.extractall(folder)
    return folder / sdist.name.removesuffix(".tar.gz")


def test_wheel_answers_a_query_in_an_environment_without_spark(without_spark: Path, tmp_path: Path) -> None:
    binaries = without_spark
    assert answer_of_figure_1(binaries, tmp_path) == pytest.approx(FIGURE_1)
    assert int(run(binaries / "python", "-c", EXAMPLE)) > 0


@pytest.mark.thorough
def test_wheel_answers_a_query_on_spark_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    binaries = installed(tmp_path, wheel)
    run(binaries / "python", "-m", "pip", "check")
    assert answer_of_figure_1(binaries, tmp_path, "--engine", "spark") == pytest.approx(FIGURE_1)
