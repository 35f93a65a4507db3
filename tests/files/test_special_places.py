"""Special files and links: every command ends at once, and says what is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import uncertain_cep as uc
from tests.needs import is_demanded
from uncertain_cep.cli import main
from uncertain_cep.files.special_files import special_kind
from uncertain_cep.traces.folders import contents_of_folder, files_of_folder
from uncertain_cep.traces.sizes import unpacked_bytes

QUERY = "PATTERN SEQ(A a, B b) WITHIN 5"
ROWS = "type,id,lower,upper\nA,1,1,1\nB,2,2,2\n"
# Of the same kind as those that wait for the kernel to say something, such as /proc/kmsg.
KERNEL = Path("/proc/version")

of_linux = pytest.mark.skipif(
    not KERNEL.exists() and not is_demanded("proc"), reason="needs what Linux tells in /proc"
)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@of_linux
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.log", "t.jhist"])
def test_files_of_the_kernel_are_refused(tmp_path: Path, name: str) -> None:
    trace = tmp_path / name
    trace.symlink_to(KERNEL)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "t.csv").write_text(ROWS)
    (tmp_path / "folder" / f"x{name}").symlink_to(KERNEL)
    out = tmp_path / "out"
    commands: tuple[tuple[object, ...], ...] = (
        ("match", QUERY), ("explain", QUERY), ("validate",), ("init", "-o", out),
        ("report", QUERY, "-o", out), ("infer-offsets", "--schema", trace),
    )  # fmt: skip
    for command in commands:
        result = run(*command, trace)
        assert result.exit_code == 2, command
        assert "is a file of the kernel" in result.output, command
    assert run("match", QUERY, tmp_path / "folder").exit_code == 0
    result = run("match", QUERY, tmp_path / "folder" / "t.csv", "--schema", trace)
    assert "the schema file is a file of the kernel" in result.stderr
    assert "is a file of the kernel" in run("match", trace, tmp_path / "folder" / "t.csv").stderr
    for call in (uc.load_schema, uc.read_traces, lambda file: uc.read_clock_log(file, "chrony", host="h")):
        with pytest.raises(uc.TraceError, match="is a file of the kernel"):
            call(trace)
    if name != "t.jhist":
        with pytest.raises(uc.TraceError, match="is a file of the kernel"):
            uc.clock_offset(trace)
    assert "is a folder of the kernel" in run("match", QUERY, KERNEL.parent).stderr
    assert unpacked_bytes([str(trace), str(tmp_path / "folder"), str(KERNEL.parent)]) == len(ROWS)


def test_what_is_no_special_file(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "gone", Path(os.devnull).parent, Path(__file__)):
        assert special_kind(place) is None
    os.mkfifo(tmp_path / "pipe")
    assert special_kind(tmp_path / "pipe") == "a named pipe"
    assert files_of_folder(tmp_path) == []


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder with two links to its parent, one to another folder, and one to a file."""
    folder, other = tmp_path / "folder", tmp_path / "other"
    for place in (folder, other, folder / "below", folder / "_hidden"):
        place.mkdir()
    (folder / "up").symlink_to("..")
    (folder / "below" / "up").symlink_to("../..")
    (folder / "other").symlink_to(other)
    (tmp_path / "a.csv").write_text("type,id,lower,upper\nA,1,1,1\n")
    (folder / "a.csv").symlink_to("../a.csv")
    (folder / "below" / "b.csv").write_text("type,id,lower,upper\nB,2,2,2\n")
    for aside in (other / "c.csv", folder / "_hidden" / "c.csv"):
        aside.write_text("type,id,lower,upper\nA,3,3,1\n")
    return folder


def test_links_to_folders_are_not_followed(linked: Path) -> None:
    below = linked / "below"
    assert files_of_folder(linked) == [linked / "a.csv", below / "b.csv"]
    assert contents_of_folder(linked).links == [below / "up", linked / "other", linked / "up"]
    assert unpacked_bytes([str(linked)]) == sum(file.stat().st_size for file in files_of_folder(linked))
    said = f"{linked}: links to other folders are not followed: below/up, other, up; give a folder"
    for command in (("match", QUERY), ("explain", QUERY), ("validate",)):
        result = run(*command, linked)
        assert result.exit_code == 0, result.output
        assert result.output.count(said) == 1
    with pytest.warns(uc.UncertainCepWarning, match="links to other folders are not followed"):
        assert uc.read_traces(linked).num_rows == 2
    # A link that is given by its name is what it leads to.
    assert run("validate", linked / "other").exit_code == 2
