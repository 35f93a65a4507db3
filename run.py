#!/usr/bin/env python3
"""Set up everything in ``.venv`` and run the main job or the checks.

    python3 run.py demo             set up, then run the main job on local Spark
    python3 run.py test             set up, then ruff, mypy and pytest (--thorough: the long tests too)
    python3 run.py coverage         say which lines of the kernels the tests reach without the compiler
    python3 run.py numba 0.66       run the tests of compiled code with other releases of Numba, else with all
    python3 run.py wheel            build the project, and its kernels compiled, as wheels in dist/
    python3 run.py docs             build the documentation site in build/docs
    python3 run.py pictures         take the pictures of the demo's report for the documents (needs Chromium)
    python3 run.py lock             write requirements/*.lock anew (needs uv)

Only Python 3.11 or newer is needed to begin with. A second call finds everything in place.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - said here, before a syntax error of the code says it worse
    sys.exit(
        f"uncertain-cep needs Python 3.11 or newer; this is {sys.version.split()[0]} ({sys.executable}).\n"
        "Run it with a newer one, for example: python3.11 run.py"
    )

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
BINARIES = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BINARIES / ("python.exe" if os.name == "nt" else "python")
STAMP = ENVIRONMENT / "installed.json"
INSTALL_LOG = ROOT / "build" / "install.log"
RESULTS = ROOT / "build" / "casestudy"
SITE = ROOT / "build" / "docs"
SPARK_TESTS = "tests/spark"
PROCESS_TESTS = ("tests/project", "tests/cli")
APART = (SPARK_TESTS, *PROCESS_TESTS)
SLOWEST_SHOWN = 10
TESTS_FAILED = 1
"""What pytest exits with if all ran and some failed."""
BESIDE_LOGS = ROOT / "build"
"""Where processes of pytest beside the one that is shown write, each to a file of its own."""

NUMBAS = ("0.66", "0.67", "newest")
"""Releases of Numba that the tests of compiled code are run with; the lock has one of them."""
NUMBA_TESTS = (
    "tests/confidence",
    "tests/cli/test_doctor.py",
    "--ignore=tests/confidence/test_without_jit.py",
)
BESIDE_PACKAGES = "packages_beside.pth"

LOCKS = {
    "runtime": ROOT / "requirements" / "runtime.lock",
    "java": ROOT / "requirements" / "java.lock",
    "test": ROOT / "requirements" / "test.lock",
}
LOCKED_EXTRAS = {
    "test": ("dev", "java", "connect", "bench", "plot", "testing", "docs"),
    "runtime": ("streams",),
    "java": ("java", "streams"),
}
SETS_WITHIN = {"runtime": ("java", "test"), "java": ("test",), "test": ()}


INSTALL_HINT = (
    "The packages come from PyPI, or from the mirror that PIP_INDEX_URL (uv: UV_DEFAULT_INDEX) names:\n"
    "check that this machine reaches it and the disk is not full. The same command goes on from here."
)


def say(message: str) -> None:
    """Print a line about the set-up on stderr, which keeps stdout for results."""
    print(f"[run.py] {message}", file=sys.stderr, flush=True)


def stop(message: str) -> NoReturn:
    """End with a clear message and exit code 1."""
    sys.exit(f"[run.py] {message}")


def python_in(environment: Path) -> Path:
    """Return the Python of a virtual environment."""
    return environment / PYTHON.relative_to(ENVIRONMENT)


def installer(uv: str | None, python: Path) -> list[str | Path]:
    """Return the command that installs packages for a Python of a virtual environment."""
    return [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]


def start(command: Sequence[str | Path], output: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    """Start a command with the environment's programs first on PATH."""
    path = os.pathsep.join([str(BINARIES), os.environ.get("PATH", "")])
    given = {**os.environ, "VIRTUAL_ENV": str(ENVIRONMENT), "PATH": path}
    return subprocess.Popen([*map(str, command)], cwd=ROOT, env=given, stdout=output, stderr=output)


def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a command and return its exit code."""
    with process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                # The command got the same signal: let it clean up and end by itself.
                continue


def run(command: Sequence[str | Path]) -> int:
    """Run a command and return its exit code."""
    return ended(start(command))


def wanted_stamp(lock_set: str) -> str:
    """Return what an environment that holds this set is stamped with."""
    content = hashlib.sha256(str(ROOT).encode())
    for file in (LOCKS[lock_set], ROOT / "pyproject.toml"):
        content.update(file.read_bytes())
    return content.hexdigest()


def read_stamps() -> dict[str, str]:
    """Return the stamps of the sets that were installed completely."""
    try:
        stamps = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamps if isinstance(stamps, dict) else {}


def is_installed(lock_set: str) -> bool:
    """Whether the environment holds this set, or a larger one, as locked now."""
    stamps = read_stamps()
    return any(stamps.get(name) == wanted_stamp(name) for name in (lock_set, *SETS_WITHIN[lock_set]))


def environment_works() -> bool:
    """Whether ``.venv`` has a Python that starts, is new enough and has its pip."""
    ask = "import sys, pip; print(sys.version_info >= (3, 11))"
    try:
        answer = subprocess.run([str(PYTHON), "-c", ask], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return answer.stdout.strip() == "True"


def logged(command: Sequence[str | Path], what: str, hint: str) -> None:
    """Run a step of the set-up with its output in the log; end with the log's last lines if it fails."""
    INSTALL_LOG.parent.mkdir(exist_ok=True)
    with INSTALL_LOG.open("w", encoding="utf-8") as log:
        log.write(f"$ {' '.join(map(str, command))}\n")
        log.flush()
        code = subprocess.run(
            [*map(str, command)], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
        ).returncode
    if code:
        lines = INSTALL_LOG.read_text(encoding="utf-8", errors="replace").splitlines()
        sys.stderr.write("\n".join(["", *lines[-15:], ""]))
        stop(f"{what} failed (exit code {code}; all it said is in {INSTALL_LOG}).\n{hint}")


def create_environment(uv: str | None, environment: Path, python: str | Path) -> None:
    """Make a virtual environment anew."""
    say(f"making {environment}")
    hint = (
        "This Python comes without its venv or ensurepip module. Install it (on Debian and Ubuntu: the\n"
        "package python3-venv), or install uv, and run this command again."
    )
    maker = [uv, "venv", "--seed", "--python", python] if uv else [python, "-m", "venv"]
    logged([*maker, "--clear", environment], "making the virtual environment", hint)


def install(lock_set: str) -> None:
    """Bring ``.venv`` to a locked set and put the project itself in it, unless it is there already."""
    uv = shutil.which("uv")
    if not environment_works():
        create_environment(uv, ENVIRONMENT, sys.executable)
    elif is_installed(lock_set):
        return
    STAMP.unlink(missing_ok=True)
    say(f"installing {LOCKS[lock_set].relative_to(ROOT)} (at first about 700 MB, a minute or two)")
    started = time.monotonic()
    pip = installer(uv, PYTHON)
    logged([*pip, "--require-hashes", "-r", LOCKS[lock_set]], "installing the packages", INSTALL_HINT)
    logged([*pip, "--no-deps", "--no-build-isolation", "-e", ROOT], "installing the project", INSTALL_HINT)
    STAMP.write_text(json.dumps({lock_set: wanted_stamp(lock_set)}))
    say(f"installed in {time.monotonic() - started:.0f} s")


def demo() -> int:
    """Run the main job: an hour of cluster monitoring, five queries, local Spark."""
    install("runtime")
    if run([PYTHON, "-c", "from uncertain_cep.spark.java import find_java; find_java() or exit(1)"]):
        say("no Java runtime 17 or newer was found: adding one to .venv (35 MB)")
        install("java")
    say("compiling kernels (about a minute the first time on this machine)")
    if code := run([PYTHON, "-c", "import uncertain_cep; uncertain_cep.warm_up()"]):
        return code
    return run([BINARIES / "uncertain-cep", "casestudy", "-o", RESULTS, "--overwrite"])


def pictures() -> int:
    """Take pictures of the demo's report, which is made first if it is not there."""
    install("test")
    if not (RESULTS / "report.html").is_file() and (code := demo()):
        return code
    return run([PYTHON, ROOT / "docs" / "take_pictures.py", RESULTS / "report.html"])


def docs() -> int:
    """Build the documentation site."""
    install("test")
    if not (code := run([PYTHON, "-m", "docs.site.build", SITE])):
        say(f"the site is at {SITE / 'index.html'}")
    return code


def test(thorough: bool, arguments: Sequence[str], *, quick: bool) -> int:
    """Run every check and return 0 only if all hold; with ``quick`` without what starts processes or Java."""
    install("test")
    # Else each of the hundreds of processes that the tests start would translate all modules anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    checks: dict[str, list[str | Path]] = {
        "ruff check": [PYTHON, "-m", "ruff", "check", "."],
        "ruff format": [PYTHON, "-m", "ruff", "format", "--check", "."],
        "mypy": [PYTHON, "-m", "mypy"],
    }
    with tempfile.TemporaryDirectory() as noted:
        pytest: list[str | Path] = [
            PYTHON, "-m", "pytest", f"--durations={SLOWEST_SHOWN}", f"--skipped={noted}"
        ]  # fmt: skip
        if thorough:
            pytest.append("--thorough")
        if quick:
            pytest.append("--few")
        chosen = {**checks, "pytest": [*pytest, *arguments]}
        apart = () if quick else APART
        failed = failing(chosen) if arguments else all_checks(checks, pytest, again=not thorough, apart=apart)
        skipped = what_was_skipped(Path(noted))
    outcome = f"failed: {', '.join(failed)}" if failed else "all checks hold"
    say(f"{outcome}; {skipped}")
    return 1 if failed else 0


def what_was_skipped(noted: Path) -> str:
    """Return how many tests were skipped, and why, of what the processes of pytest noted in a folder."""
    tests: dict[str, set[str]] = {}
    for file in noted.glob("*.json"):
        for reason, names in json.loads(file.read_text(encoding="utf-8")).items():
            tests.setdefault(reason, set()).update(names)
    if not tests:
        return "no test was skipped"
    most_first = sorted(tests.items(), key=lambda each: (-len(each[1]), each[0]))
    return "skipped: " + "; ".join(f"{len(names)}: {reason}" for reason, names in most_first)


def coverage() -> int:
    """Run the tests of the kernels without the compiler, each folder in a process of its own."""
    install("test")
    return run([PYTHON, "-m", "tests.confidence.covering"])


def packages_of(python: Path) -> Path:
    """Return the folder of a Python's packages."""
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(
        subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    )


def environment_with_numba(version: str, environment: Path, others: Path) -> Path:
    """Make a virtual environment that has a release of Numba, and else what another environment has.

    Parameters
    ----------
    version : str
        The begin of a version, or ``newest``.
    environment : Path
        Made anew.
    others : Path
        The Python of the environment that has all else.

    Returns
    -------
    Path
        The Python of the new environment.
    """
    uv = shutil.which("uv")
    create_environment(uv, environment, others)
    python = python_in(environment)
    wanted = "numba" if version == "newest" else f"numba=={version}.*"
    logged([*installer(uv, python), wanted], f"installing numba {version}", INSTALL_HINT)
    # Behind its packages, so that these count.
    (packages_of(python) / BESIDE_PACKAGES).write_text(f"{packages_of(others)}\n", encoding="utf-8")
    return python


def numba(versions: Sequence[str]) -> int:
    """Run the tests of compiled code with releases of Numba, each in an environment beside ``.venv``."""
    install("test")
    checks: dict[str, list[str | Path]] = {}
    for version in versions or NUMBAS:
        python = environment_with_numba(version, ROOT / "build" / f"numba-{version}", PYTHON)
        checks[version] = [python, "-m", "pytest", "-q", *NUMBA_TESTS]
    failed = failing(checks)
    say(f"failed with numba: {', '.join(failed)}" if failed else "the tests hold with each numba")
    return 1 if failed else 0


def failing(checks: Mapping[str, Sequence[str | Path]]) -> list[str]:
    """Run one check after the other, and return the names of those that failed."""
    failed = []
    for name, command in checks.items():
        say(f"{name}: {' '.join(map(str, command[1:]))}")
        if run(command):
            failed.append(name)
    return failed


def orders_of_tests(apart: Sequence[str]) -> dict[str, list[str]]:
    """Return for each process of pytest the folders of tests in the order in which it comes to them.

    Each file is run by the process that comes to it first; all begin at different places, so they end at
    about the same time. The folders ``apart`` are begun by one, that with a Spark session. While that waits,
    there is time for two others, which help with Spark when nothing else is left.
    """
    every = {f"tests/{file.parent.name}" for file in (ROOT / "tests").glob("*/test_*.py")}
    folders = sorted(every - set(APART))
    half = len(folders) // 2
    return {
        "pytest with Spark": [*apart, *reversed(folders)],
        "pytest beside it": [*folders[half:], *folders[:half], *apart[1:], *apart[:1]],
        "pytest": [*folders, *reversed(apart)],
    }


def start_beside(name: str, command: Sequence[str | Path]) -> subprocess.Popen[bytes]:
    """Start a process whose output goes to a file of its name."""
    log = BESIDE_LOGS / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    say(f"{name}, shown when it has ended: {' '.join(map(str, command[1:]))} > {log}")
    with log.open("wb") as output:
        return start(command, output)


def all_checks(
    checks: Mapping[str, Sequence[str | Path]],
    pytest: Sequence[str | Path],
    *,
    again: bool,
    apart: Sequence[str],
) -> list[str]:
    """Run the tests in three processes, the checks before the last, and return the names of what failed.

    With ``again``, tests that failed are tried once more, alone and in a new process.
    """
    with tempfile.TemporaryDirectory() as kept:
        taken = Path(kept, "taken")
        taken.mkdir()
        orders = orders_of_tests(apart)
        caches = {name: f"cache_dir={Path(kept, name)}" for name in orders}
        *beside, (last, shown) = (
            (name, [*pytest, f"--share={taken}", "-o", caches[name], *order])
            for name, order in orders.items()
        )
        processes = {name: start_beside(name, command) for name, command in beside}
        failed = failing(checks)
        say(f"{last}: {' '.join(map(str, shown[1:]))}")
        codes = {last: run(shown)}
        for name, process in processes.items():
            codes[name] = ended(process)
            sys.stdout.write((BESIDE_LOGS / f"{name}.log").read_text(errors="replace"))
        sys.stdout.flush()
        for name, code in codes.items():
            if code and not (again and code == TESTS_FAILED and hold_alone(pytest, caches[name])):
                failed.append(name)
    return failed


def hold_alone(pytest: Sequence[str | Path], cache: str) -> bool:
    """Return whether the tests that failed hold in a process of their own, with nothing beside it."""
    say("what failed is tried once more, alone; a test that holds now depends on what else runs: mend it")
    return not run([*pytest, "-o", cache, "--last-failed", "--last-failed-no-failures=none", "--maxfail=3"])


def wheel() -> int:
    """Build the wheel of the project, and that of the kernels compiled for this Python and machine."""
    install("test")
    for what, folder in (("the project", ROOT), ("its kernels, which takes some minutes", ROOT / "kernels")):
        say(f"building {what}")
        command: list[str | Path] = [
            PYTHON,
            "-m",
            "build",
            "--no-isolation",
            "--wheel",
            "--outdir",
            ROOT / "dist",
            folder,
        ]
        if code := run(command):
            return code
    return 0


def lock() -> int:
    """Write the lock files anew from pyproject.toml, the test set first and the others as parts of it."""
    uv = shutil.which("uv")
    if uv is None:
        stop("writing the lock files needs uv: install it, for example with pip install uv")
    for lock_set, extras in LOCKED_EXTRAS.items():
        within: list[str | Path] = [] if lock_set == "test" else ["-c", LOCKS["test"]]
        command: list[str | Path] = [
            uv, "pip", "compile", "pyproject.toml", "--quiet", "--upgrade", "--universal",
            # One release for all Pythons, where there is one: mypy passes with the types of one NumPy.
            "--fork-strategy", "fewest", "--python-version", "3.11", "--generate-hashes",
            "--no-emit-index-url", "--no-emit-find-links", "--no-annotate", "--no-header", "--group", "build",
            *(f"--extra={extra}" for extra in extras), *within, "-o", LOCKS[lock_set],
        ]  # fmt: skip
        say(f"locking {LOCKS[lock_set].relative_to(ROOT)}")
        code = run(command)
        if code:
            return code
    return 0


def main() -> int:
    """Read the command line and run it."""
    parser = argparse.ArgumentParser(
        description="Set up everything in .venv and run the main job or the checks.", allow_abbrev=False
    )
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="{demo,test,coverage,numba,wheel,docs,pictures,lock}"
    )
    commands.add_parser("demo", help="set up, then run the main job on local Spark")
    tests = commands.add_parser("test", help="set up, then run ruff, mypy and pytest")
    tests.add_argument("--thorough", action="store_true", help="run the tests that take minutes, too")
    tests.add_argument(
        "--quick", action="store_true", help="without Spark, commands and set-up, and with few examples"
    )
    tests.add_argument("arguments", nargs="*", help="passed on to pytest (after --)")
    commands.add_parser("coverage", help="run the kernels' tests without the compiler; show what they miss")
    numbas = commands.add_parser("numba", help="run the tests of compiled code with other releases of Numba")
    numbas.add_argument("versions", nargs="*", help=f"by default {', '.join(NUMBAS)}")
    commands.add_parser("wheel", help="build wheels of the project and of its compiled kernels in dist/")
    commands.add_parser("docs", help="build the documentation site in build/docs")
    commands.add_parser("pictures", help="take the pictures of the demo's report for the documents")
    commands.add_parser("lock", help="write requirements/*.lock anew (needs uv)")
    chosen = parser.parse_args()
    if chosen.command == "demo":
        return demo()
    if chosen.command == "test":
        return test(chosen.thorough, chosen.arguments, quick=chosen.quick)
    if chosen.command == "numba":
        return numba(chosen.versions)
    others = {"coverage": coverage, "wheel": wheel, "docs": docs, "pictures": pictures, "lock": lock}
    return others[chosen.command]()


if __name__ == "__main__":
    sys.exit(main())
