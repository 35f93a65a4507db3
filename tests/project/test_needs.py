"""Needs that a machine lacks are skipped, and the run says so; it fails if its caller demands them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.needs import VARIABLE, check_needs, lacking

BARE = """
import pytest
from tests.needs import lacking

def test_of_data(shared_data):
    pass

@pytest.mark.parametrize("number", range(2))
def test_of_a_package(number):
    lacking("packages", "there is no such package")

@pytest.mark.xfail(raises=ValueError)
def test_that_fails_as_expected():
    raise ValueError
"""
WHOLE_FILE = """
from tests.needs import lacking
lacking("packages", "there is no other package", whole_file=True)
"""


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A checkout with nothing beside it, and with tests of this file."""
    checkout = tmp_path / "checkout"
    (checkout / "tests").mkdir(parents=True)
    for name in ("pyproject.toml", "tests/conftest.py", "tests/needs.py"):
        shutil.copy(ROOT / name, checkout / name)
    (checkout / "tests" / "test_bare.py").write_text(BARE)
    (checkout / "tests" / "test_whole_file.py").write_text(WHOLE_FILE)
    return checkout


def ran(checkout: Path) -> tuple[str, dict[str, list[str]]]:
    """Return the last lines of pytest in a checkout, on a machine of a CI, and the skips that it notes."""
    noted = checkout.parent / "noted"
    shutil.rmtree(noted, ignore_errors=True)
    noted.mkdir()
    options = ["-q", "--assert=plain", "-p", "no:cacheprovider", f"--skipped={noted}"]
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=checkout,
        env=environment | {"CI": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    skipped = [json.loads(file.read_text()) for file in noted.iterdir()]
    return (done.stdout or done.stderr).splitlines()[-1], skipped[0] if skipped else {}


def test_what_is_lacking_is_skipped_whatever_ci_says(bare: Path) -> None:
    said, skipped = ran(bare)
    assert said.startswith("4 skipped, 1 xfailed in")
    counts = {reason: len(names) for reason, names in skipped.items()}
    assert counts == {
        f"the real traces are not at {bare.parent / 'shared' / 'data'}": 1,
        "there is no such package": 2,
        "there is no other package": 1,
    }


def test_what_is_demanded_is_not_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "data browser")
    check_needs()
    with pytest.raises(pytest.fail.Exception, match=f"no data, and {VARIABLE} demands it"):
        lacking("data", "no data")
    for is_file in (False, True):
        with pytest.raises(pytest.skip.Exception, match="no package"):
            lacking("packages", "no package", whole_file=is_file)
    monkeypatch.setenv(VARIABLE, "packages chromium")
    with pytest.raises(pytest.UsageError, match="names chromium: it takes browser data packages proc"):
        check_needs()


PYTHON = """#!/bin/sh
[ "$1" = run.py ] && echo "needs: $UNCERTAIN_CEP_TESTS_NEED"
exit 0
"""


@pytest.mark.parametrize(
    ("has_data", "browser", "is_root"),
    [(True, "chromium", True), (False, "google-chrome", False), (True, None, True), (False, None, False)],
)
def test_the_gate_demands_what_it_knows_to_be_there(
    has_data: bool, browser: str | None, is_root: bool, tmp_path: Path
) -> None:
    gate = tmp_path / "checkout" / ".ci" / "run"
    gate.parent.mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", gate)
    programs = tmp_path / "bin"
    programs.mkdir()
    scripts = {"python3": PYTHON, "id": f"#!/bin/sh\necho {0 if is_root else 1000}\n"}
    # It installs no browser here: the machine may have no network.
    scripts |= {"apt-get": "#!/bin/sh\nexit 1\n"} | ({} if browser is None else {browser: "#!/bin/sh\n"})
    for name, script in scripts.items():
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    for name in ("bash", "dirname", "timeout"):
        (programs / name).symlink_to(shutil.which(name) or "")
    if has_data:
        (tmp_path / "shared" / "data").mkdir(parents=True)
    environment = {"PATH": str(programs), "CI": "true"}
    done = subprocess.run(["bash", str(gate)], env=environment, capture_output=True, text=True, check=True)
    named = ["packages", "proc", *(["browser"] if browser else []), *(["data"] if has_data else [])]
    assert done.stdout == f"needs: {' '.join(named)}\n"
