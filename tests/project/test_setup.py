"""The set-up: ``run.py`` and the lock files it installs from."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import runpy
import subprocess
import sys
import tomllib
from copy import copy
from pathlib import Path
from types import ModuleType
from unittest.mock import Mock, call

import pytest
from packaging.requirements import Requirement

from tests.conftest import Share

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def locked(lock: Path) -> dict[str, set[str]]:
    """Return the versions that a lock has of each package (several for several versions of Python)."""
    versions: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9][a-z0-9-]*)==([^ ]+)", lock.read_text(), re.MULTILINE):
        versions.setdefault(name, set()).add(version)
    return versions


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_lock_satisfies_the_project(lock: Path) -> None:
    versions = locked(lock)
    extras = PROJECT["optional-dependencies"]
    chosen = {
        "runtime": extras["streams"],
        "java": [*extras["java"], *extras["streams"]],
        # What the project itself is built into is not locked.
        "test": [each for name, part in extras.items() for each in part if name != "compiled"],
    }
    for text in [*PROJECT["dependencies"], *chosen[lock.stem]]:
        requirement = Requirement(text)
        assert all(requirement.specifier.contains(version) for version in versions[requirement.name])


def test_all_locks_have_the_same_versions() -> None:
    assert [lock.stem for lock in LOCKS] == ["java", "runtime", "test"]
    everything = locked(ROOT / "requirements" / "test.lock")
    for lock in LOCKS:
        assert locked(lock).items() <= everything.items()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_lock_names_hashes_and_no_addresses(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    for entry in re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]:
        assert "--hash=sha256:" in entry


@pytest.fixture
def run_py(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The set-up as a module, with its environment elsewhere."""
    spec = importlib.util.spec_from_file_location("run_py", ROOT / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "STAMP", tmp_path / "installed.json")
    return module


def test_a_file_of_tests_is_that_of_the_process_that_comes_to_it_first(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    one, other = Share(tmp_path), Share(tmp_path)
    first, second = (copy(request.node) for _ in range(2))
    first.path, second.path = Path(__file__), Path(__file__).with_name("test_wheel.py")
    pairs = ((one, first), (other, first), (other, second), (one, second), (one, first))
    assert [part.takes(item) for part, item in pairs] == [True, False, True, False, True]


def test_a_test_is_run_with_the_next_one_of_its_process(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The next one in the order of all tests may be another process's: fixtures would end too late."""
    one, other, last = (copy(request.node) for _ in range(3))
    other.path = Path(__file__).with_name("test_wheel.py")
    Share(tmp_path).takes(other)
    hook, config = Mock(), Mock()
    config.hook, config.option.collectonly = hook, False
    session = Mock(items=[one, other, last], config=config, testsfailed=0, shouldfail=False, shouldstop=False)
    Share(tmp_path).pytest_runtestloop(session)
    assert hook.pytest_runtest_protocol.mock_calls == [
        call(item=one, nextitem=last),
        call(item=last, nextitem=None),
    ]


def test_too_old_a_python_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 13))
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or newer"):
        runpy.run_path(str(ROOT / "run.py"))


def test_a_set_is_installed_if_it_or_a_larger_one_is(run_py: ModuleType) -> None:
    assert not run_py.is_installed("runtime")
    run_py.STAMP.write_text(json.dumps({"test": run_py.wanted_stamp("test")}))
    assert all(run_py.is_installed(name) for name in ("runtime", "java", "test"))
    run_py.STAMP.write_text(json.dumps({"runtime": run_py.wanted_stamp("runtime")}))
    assert not run_py.is_installed("java")
    assert not run_py.is_installed("test")


def test_a_changed_lock_is_installed_anew(
    run_py: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run_py.STAMP.write_text(json.dumps({"runtime": run_py.wanted_stamp("runtime")}))
    assert run_py.is_installed("runtime")
    changed = tmp_path / "runtime.lock"
    changed.write_text(run_py.LOCKS["runtime"].read_text() + "# changed\n")
    monkeypatch.setitem(run_py.LOCKS, "runtime", changed)
    assert not run_py.is_installed("runtime")


@pytest.mark.parametrize("content", ["", "[]", "{not json"])
def test_a_damaged_stamp_counts_as_none(run_py: ModuleType, content: str) -> None:
    run_py.STAMP.write_text(content)
    assert not run_py.is_installed("runtime")


def test_an_environment_whose_making_failed_is_made_anew(
    run_py: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where Debian's Python lacks ensurepip, venv leaves an environment without pip behind."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    monkeypatch.setattr(run_py, "PYTHON", run_py.python_in(tmp_path / "env"))
    assert subprocess.run([run_py.PYTHON, "-c", ""], check=False).returncode == 0
    assert not run_py.environment_works()


def test_a_failing_step_shows_what_it_said(
    run_py: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_py, "INSTALL_LOG", tmp_path / "build" / "install.log")
    with pytest.raises(SystemExit, match=r"(?s)the step failed \(exit code 3.*look here"):
        run_py.logged([sys.executable, "-c", "print('no luck'); exit(3)"], "the step", "look here")
    assert "no luck" in capsys.readouterr().err


@pytest.mark.parametrize("failing", ["", "lint", "pytest with Spark", "pytest beside it", "pytest"])
@pytest.mark.parametrize("again", [False, True])
def test_all_checks_and_all_parts_of_the_tests_run_and_each_can_fail(
    failing: str,
    again: bool,
    run_py: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(run_py, "BESIDE_LOGS", tmp_path / "build")
    program = """
import json, sys
again = "--last-failed" in sys.argv
print(json.dumps(sys.argv[2:]))
sys.exit(again or any(argument.endswith("/" + sys.argv[1]) for argument in sys.argv))
"""
    checks = {"lint": [sys.executable, "-c", f"exit({failing == 'lint'})"]}
    failed = run_py.all_checks(
        checks, [sys.executable, "-c", program, failing], again=again, apart=run_py.APART
    )
    assert failed == ([failing] if failing else [])
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines() if line.startswith("[")]
    (share, _, _, *shown), (same, _, _, *spark), (also, _, _, *beside), *tried = lines
    assert share == same == also
    assert share.startswith("--share=")
    # Spark comes first in one of them and last in the others; all else begins at another place in each.
    assert spark[:3] == ["tests/spark", "tests/project", "tests/cli"]
    assert shown == [*reversed(spark[3:]), "tests/cli", "tests/project", "tests/spark"]
    assert beside[-1] == "tests/spark"
    assert sorted(beside) == sorted(shown)
    assert len({spark[3], shown[0], beside[0]}) == 3
    folders = {file.parent for file in (ROOT / "tests").glob("*/test_*.py")}
    assert {ROOT / folder for folder in spark} == folders
    # What failed in one of them, and nothing else, is tried again.
    caches = [Path(line[1]).name for line in tried]
    assert caches == ([failing] if again and failing.startswith("pytest") else [])


@pytest.mark.parametrize("then", [1, 0])
def test_a_test_that_fails_is_tried_once_more_alone(
    then: int,
    run_py: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """With pytest itself, over a test of each part that fails the first time, or always."""
    monkeypatch.setattr(run_py, "BESIDE_LOGS", tmp_path / "build")
    monkeypatch.setattr(run_py, "ROOT", tmp_path)
    for folder in ("spark", "query"):
        tests = tmp_path / "tests" / folder
        tests.mkdir(parents=True)
        (tests / f"test_{folder}.py").write_text(
            "from pathlib import Path\n"
            "def test_holds(): print('held')\n"
            "def test_fails_first(pytestconfig):\n"
            "    mark = Path(__file__ + '.mark')\n"
            f"    fails = not mark.exists() or {then}\n"
            "    mark.touch()\n"
            "    assert not fails, 'a race'\n"
        )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(
        "from pathlib import Path\n"
        "def pytest_addoption(parser):\n    parser.addoption('--share')\n"
        "def pytest_collection_modifyitems(config, items):\n"
        "    of_query = [item for item in items if 'query' in item.nodeid]\n"
        "    if config.args[0] == 'tests/spark':\n"
        "        items[:] = [item for item in items if item not in of_query]\n"
        "    elif config.getoption('--share'):\n"
        "        items[:] = of_query\n"
        "        try:\n"
        "            Path(config.getoption('--share'), 'query').touch(exist_ok=False)\n"
        "        except FileExistsError:\n"
        "            del items[1:]\n"
    )
    monkeypatch.setattr(run_py, "APART", (run_py.SPARK_TESTS,))
    pytest_of_it = [sys.executable, "-m", "pytest", "-rA"]
    failed = run_py.all_checks({}, pytest_of_it, again=True, apart=run_py.APART)
    assert len(failed) == 2 * then
    assert ("pytest with Spark" in failed) == then
    said = capfd.readouterr().out
    assert said.count("AssertionError: a race") >= 2
    assert said.count("PASSED tests/spark/test_spark.py::test_holds") == 1
    assert said.count("PASSED tests/query/test_query.py::test_fails_first") == (not then)


@pytest.mark.parametrize("arguments", [[], ["-k", "spark"]])
def test_the_ten_slowest_tests_are_shown(
    arguments: list[str], run_py: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(run_py, "BESIDE_LOGS", tmp_path / "build")
    started: list[list[str]] = []

    def start(command: list[object], output: object = None) -> subprocess.Popen[bytes]:
        started.append([str(part) for part in command])
        return subprocess.Popen([sys.executable, "-c", ""])

    monkeypatch.setattr(run_py, "install", lambda lock_set: None)
    monkeypatch.setattr(run_py, "start", start)
    assert run_py.test(False, arguments, quick=False) == 0
    tests = [command for command in started if "pytest" in command]
    assert len(tests) == (1 if arguments else 3)
    assert all("--durations=10" in command for command in tests)


def test_the_last_line_says_what_was_skipped(
    run_py: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_py.what_was_skipped(tmp_path) == "no test was skipped"
    # Both processes come by a file that is skipped as a whole.
    noted = [
        {"no data": ["a"], "no browser": ["c"]},
        {"no data": ["b", "d"], "no browser": ["c"]},
    ]

    def failing(checks: dict[str, list[str]]) -> list[str]:
        (folder,) = (
            part.removeprefix("--skipped=") for part in map(str, checks["pytest"]) if "--skipped" in part
        )
        for number, each in enumerate(noted):
            Path(folder, f"{number}.json").write_text(json.dumps(each))
        return ["pytest"]

    monkeypatch.setattr(run_py, "install", lambda lock_set: None)
    monkeypatch.setattr(run_py, "failing", failing)
    assert run_py.test(False, ["-k", "data"], quick=False) == 1
    assert capsys.readouterr().err == "[run.py] failed: pytest; skipped: 3: no data; 1: no browser\n"


@pytest.fixture
def without_an_index(run_py: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make environments, and install of Numba no more than its name; return what was to be installed."""
    requirements: list[str] = []

    def logged(command: list[str | Path], what: str, hint: str) -> None:
        if "--clear" in command:
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", command[-1]], check=True)
            return
        requirements.append(str(command[-1]))
        (python,) = (part for part in command if Path(part).stem == "python")
        module = run_py.packages_of(Path(python)) / "numba.py"
        module.write_text(f"__version__ = {requirements[-1]!r}\n", encoding="utf-8")

    monkeypatch.setattr(run_py, "logged", logged)
    return requirements


@pytest.mark.parametrize("version", ["0.66", "newest"])
def test_an_environment_has_another_numba_and_all_else_of_this_one(
    version: str, run_py: ModuleType, without_an_index: list[str], tmp_path: Path
) -> None:
    python = run_py.environment_with_numba(version, tmp_path / "beside", Path(sys.executable))
    assert without_an_index == ["numba" if version == "newest" else "numba==0.66.*"]
    ask = "import numba, numpy, pytest; print(numba.__version__, numpy.__file__)"
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == [without_an_index[0], importlib.import_module("numpy").__file__]


def test_the_tests_run_with_each_numba_and_can_fail(
    run_py: ModuleType, monkeypatch: pytest.MonkeyPatch, without_an_index: list[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(run_py, "install", lambda lock_set: None)
    monkeypatch.setattr(run_py, "ROOT", tmp_path)
    monkeypatch.setattr(run_py, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(run_py, "NUMBA_TESTS", ("test_numba.py",))
    (tmp_path / "test_numba.py").write_text(
        "import numba\ndef test_version(): assert numba.__version__ != 'numba==0.67.*'\n"
    )
    assert run_py.numba(["0.66"]) == 0
    assert run_py.numba([]) == 1
    assert without_an_index == ["numba==0.66.*", "numba==0.66.*", "numba==0.67.*", "numba"]


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["0.66", "0.67", "newest"])
def test_compiled_code_with_another_numba(version: str, run_py: ModuleType, tmp_path: Path) -> None:
    """The lock has one release of Numba; a package index has the others."""
    python = run_py.environment_with_numba(version, tmp_path / "beside", Path(sys.executable))
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *run_py.NUMBA_TESTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
