"""The common part of all tests: the quick and the thorough profile, and the place of the real traces."""

from __future__ import annotations

import gc
import json
import os
import platform
import signal
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import hypothesis
import pytest

from tests.needs import check_needs, is_gate, lacking
from uncertain_cep.config import tuning

ROOT = Path(__file__).resolve().parents[1]

# How long something takes, drawing included, says more of the machine than of what is tested.
hypothesis.settings.register_profile(
    "sample",
    deadline=None,
    print_blob=True,
    max_examples=2,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
sample = hypothesis.settings.get_profile("sample")
# A gate says the same twice; whoever runs the tests by hand, or thoroughly, draws anew each time.
gate = is_gate()
hypothesis.settings.register_profile("quick", sample, max_examples=6 if gate else 25, derandomize=gate)
hypothesis.settings.register_profile("thorough", sample, max_examples=2000)
hypothesis.settings.register_profile("few", sample, max_examples=6)


def _profile(config: pytest.Config) -> str:
    """Return the profile of Hypothesis that the options ask for."""
    if config.getoption("--thorough"):
        return "thorough"
    return "few" if config.getoption("--few") else "quick"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--thorough",
        action="store_true",
        help="also run the tests marked thorough, and many more Hypothesis examples in every property",
    )
    parser.addoption(
        "--few",
        action="store_true",
        help="few Hypothesis examples in every property, for a look at a change while it is made",
    )
    parser.addoption(
        "--share",
        type=Path,
        metavar="FOLDER",
        help="leave out the files of tests that other processes with this empty folder have begun",
    )
    parser.addoption(
        "--skipped", type=Path, metavar="FOLDER", help="write there which tests were skipped, and why"
    )


class Skipped:
    """Writes to a folder which tests were skipped, by the reason."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tests: dict[str, list[str]] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a whole file that is skipped."""
        self._note(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that is skipped."""
        if not hasattr(report, "wasxfail"):
            self._note(report)

    def _note(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            self._tests.setdefault(report.longrepr[2].removeprefix("Skipped: "), []).append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write what was noted to a file of this process."""
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / f"{os.getpid()}.json").write_text(json.dumps(self._tests), encoding="utf-8")


class Share:
    """Runs the files of tests that no other process with the same folder has taken."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._taken: dict[Path, bool] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests of this process, each with the next one of them: fixtures end by it."""
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            raise session.Interrupted(f"{session.testsfailed} errors while tests were collected")
        items = iter(() if session.config.option.collectonly else filter(self.takes, session.items))
        item = next(items, None)
        while item is not None:
            following = next(items, None)
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            item = following
        return True

    def takes(self, item: pytest.Item) -> bool:
        """Return whether the file of a test is one of this process, which takes it if no other one has."""
        if item.path not in self._taken:
            self._taken[item.path] = self._take(item.path)
        return self._taken[item.path]

    def _take(self, file: Path) -> bool:
        try:
            (self._folder / "-".join(file.relative_to(ROOT).parts)).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def pytest_configure(config: pytest.Config) -> None:
    check_needs()
    # An explicit --hypothesis-profile goes on to win: its plugin loads it after this.
    hypothesis.settings.load_profile(_profile(config))
    # Kernels as plain Python have tests of their own.
    tuning.FEW_EVENTS = 0
    # What Java compiles well for Spark takes longer than the tests would without.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")
    if (folder := config.getoption("--share")) is not None:
        config.pluginmanager.register(Share(folder))
    if (notes_folder := config.getoption("--skipped")) is not None:
        config.pluginmanager.register(Skipped(notes_folder))


def pytest_collection_finish() -> None:
    # Nothing of what thousands of tests are made is garbage: to look at it took up to a tenth of their time.
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    # At the end of the process, libraries say what was not freed.
    gc.unfreeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--thorough"):
        return
    skip = pytest.mark.skip(reason="takes minutes: run with --thorough")
    for item in items:
        if "thorough" in item.keywords:
            item.add_marker(skip)


def pytest_report_header(config: pytest.Config) -> list[str]:
    packages = ("numpy", "numba", "pyarrow", "pandas", "pyspark")
    profile = _profile(config)
    return [
        f"uncertain-cep: Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in packages),
        f"uncertain-cep: {profile} profile, real traces: {_shared_data()}",
    ]


@pytest.fixture(autouse=True, scope="session")
def _statistics_of_their_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the statistics that commands write to disk out of the user's cache directory."""
    with pytest.MonkeyPatch.context() as patched:
        folder = tmp_path_factory.mktemp("cache")
        patched.setattr("uncertain_cep.optimizer.memory.cache_folder", lambda: folder)
        yield


def _shared_data() -> Path:
    return ROOT.parent / "shared" / "data"


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT interrupt this process and those it starts, though whoever started it had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the real traces; they are too large to be part of the project."""
    folder = _shared_data()
    if not folder.is_dir():
        lacking("data", f"the real traces are not at {folder}")
    return folder
