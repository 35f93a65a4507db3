"""Folders with links that lead back into them come to an end, by every way that reads a folder."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncertain_cep as uc
from uncertain_cep.cli.match import choose_engine
from uncertain_cep.errors import OptionError
from uncertain_cep.spark.file_streams import stream_of_files
from uncertain_cep.traces.folders import contents_of_folder, files_of_folder, link_in_circle
from uncertain_cep.traces.formats import list_files
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


def slow_contents(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return files and linked folders, all paths gone through and sorted."""
    inside = sorted(
        path
        for path in folder.rglob("*")
        if not any(part[0] in "_." for part in path.relative_to(folder).parts)
    )
    files = [path for path in inside if path.is_file()]
    return files, [path for path in inside if path.is_symlink() and path.is_dir()]


def slow_circle(folder: Path, above: tuple[str, ...] = ()) -> Path | None:
    """Return the first link that leads back to a folder above it, all paths gone through."""
    real = os.path.realpath(folder)
    if real in above:
        return folder
    inside = sorted(place for place in folder.iterdir() if place.name[0] not in "_." and place.is_dir())
    circles = (slow_circle(place, (*above, real)) for place in inside)
    return next((circle for circle in circles if circle is not None), None)


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abcd_"), st.integers(0, 5)), max_size=8))
def test_a_link_in_a_circle_is_the_first_on_the_way(
    tmp_path_factory: pytest.TempPathFactory, links: list[tuple[int, str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("circles")
    folders = [
        folder,
        folder / "b",
        folder / "b" / "c",
        folder / "d",
        folder / "d" / "_e",
        folder / "d" / "f",
    ]
    for place in folders[1:]:
        place.mkdir()
    for number, name, to in links:
        with suppress(FileExistsError):
            (folders[number] / name).symlink_to(folders[to], target_is_directory=True)
    assert link_in_circle(folder) == slow_circle(folder)


NAMES = st.sampled_from(["a", "a.csv", "b", "B", "_a", ".b", "a b", "ä", "a-"])
KINDS = st.sampled_from(["file", "folder", "link", "link to a file", "link to nothing"])


@given(st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=3), KINDS), max_size=12))
def test_a_folder_is_listed_once_in_the_order_of_names(
    tmp_path_factory: pytest.TempPathFactory, places: list[tuple[list[str], str]]
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "f").touch()
    for parts, kind in places:
        place = folder.joinpath(*parts)
        with suppress(FileExistsError, NotADirectoryError):
            place.parent.mkdir(parents=True, exist_ok=True)
            if kind == "folder":
                place.mkdir()
            elif kind == "file":
                place.touch()
            else:
                places_of = {"link": elsewhere, "link to a file": elsewhere / "f"}
                place.symlink_to(places_of.get(kind, elsewhere / "gone"))
    listed: list[str] = []
    scandir = os.scandir

    def counted(place: str) -> Iterator[os.DirEntry[str]]:
        listed.append(place)
        return scandir(place)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "scandir", counted)
        contents = contents_of_folder(folder)
        # One for each folder, and none for what list_files needs besides.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            list_files([folder])
    assert contents == slow_contents(folder)
    assert sorted(listed) == sorted([*set(listed)] * 2)


def test_folders_can_be_nested_deeper_than_calls(tmp_path: Path) -> None:
    places = [tmp_path]
    for _ in range(1_100):
        places.append(places[-1] / "d")
        places[-1].mkdir()
    file = places[-1] / "t.csv"
    file.touch()
    assert contents_of_folder(tmp_path) == ([file], [])
    assert link_in_circle(tmp_path) is None
    back = places[-1] / "z"
    back.symlink_to(places[500], target_is_directory=True)
    assert link_in_circle(tmp_path) == back
    back.unlink()
    # What removes the folders of tests calls itself.
    file.unlink()
    for place in reversed(places[1:]):
        place.rmdir()


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
