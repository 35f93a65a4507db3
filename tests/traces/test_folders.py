"""Folders with links that lead back into them come to an end, by every way that reads a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import uncertain_cep as uc
from uncertain_cep.cli.match import choose_engine
from uncertain_cep.errors import OptionError
from uncertain_cep.spark.file_streams import stream_of_files
from uncertain_cep.traces.folders import files_of_folder, link_in_circle
from uncertain_cep.traces.sizes import unpacked_bytes

EVENTS = "type,id,lower,upper\nA,1,1,2\nB,2,2,3\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of a file, one in a folder, and links to a file, to another folder and to one that is gone."""
    folder = tmp_path / "events"
    (folder / "deep").mkdir(parents=True)
    (folder / "events.csv").write_text(EVENTS)
    (folder / "deep" / "more.csv").write_text(EVENTS.replace("A,1", "A,3").replace("B,2", "B,4"))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "others.csv").write_text(EVENTS)
    (folder / "elsewhere").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (folder / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "linked.csv").write_text(EVENTS.replace("A,1", "A,5").replace("B,2", "B,6"))
    (folder / "linked.csv").symlink_to(tmp_path / "linked.csv")
    return folder


def linked(folder: Path) -> Path:
    """Add two links to the folder that each is in, and some in a circle: 2**40 paths for who follows them."""
    for place in (folder, folder / "deep"):
        for name in ("one", "two"):
            (place / name).symlink_to(folder, target_is_directory=True)
    return folder


@pytest.mark.parametrize("has_links", [False, True])
@pytest.mark.filterwarnings("ignore:.*links to other folders are not followed")
def test_every_file_is_read_once(folder: Path, has_links: bool) -> None:
    if has_links:
        linked(folder)
    assert [str(file.relative_to(folder)) for file in files_of_folder(folder)] == [
        "deep/more.csv", "events.csv", "linked.csv"
    ]  # fmt: skip
    assert sorted(uc.read_traces(folder).column("id").to_pylist()) == [1, 2, 3, 4, 5, 6]
    assert unpacked_bytes([str(folder)]) == 3 * len(EVENTS)
    assert choose_engine("auto", (str(folder),), None)[0] == "local"
    assert uc.validate(folder) == []


def test_spark_would_follow_links_for_ever(folder: Path) -> None:
    assert link_in_circle(folder) is None
    # Two folders that each lead to the other.
    for one, other in (("left", "right"), ("right", "left")):
        (folder / one).mkdir()
        (folder / one / "to").symlink_to(folder / other, target_is_directory=True)
    assert link_in_circle(folder) == folder / "left" / "to" / "to"
    spark: Any = None
    columns: Any = None
    with pytest.raises(OptionError, match="left/to/to is a link to a folder that it is in"):
        stream_of_files(spark, folder, None, columns)
    assert link_in_circle(linked(folder)) == folder / "deep" / "one"
