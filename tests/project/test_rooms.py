"""Imports between rooms: which may import which, and none in a circle, lazily and for types included."""

from __future__ import annotations

from functools import cache
from graphlib import CycleError, TopologicalSorter
from typing import Final

import pytest

import uncertain_cep as uc
from tests.project.test_imports import PACKAGES, ROOT, files_of, imported

LEVELS: Final = (
    ("boundary", "config", "errors", "files", "plurals", "running", "timeline"),
    ("query",),
    ("expressions",),
    ("traces",),
    ("clocks", "plan"),
    ("candidates",),
    ("optimizer",),
    ("weighers",),
    ("operators",),
    ("results",),
    ("occurrence",),
    ("executor",),
    ("explanation", "happened_before", "resolving", "streaming"),
    ("rule_sets",),
    ("alerting", "reporting"),
    ("spark",),
    ("joining",),
    ("api", "inspection", "intervals", "misses", "validation"),
    ("warming",),
    ("examples", "plot", "testing"),
    ("cli",),
    ("__main__",),
)
"""The rooms of ``uncertain_cep``, from the lowest: each may import those on lower levels, and itself."""

SAME_IN_TWO_ROOMS: Final = frozenset(
    {
        # A kernel, and what prepares its arguments.
        *("backtracking", "bytecode", "compressed", "conditions", "forbidden", "layout", "match_windows"),
        *("incremental", "next_match", "partial_orders", "pivot_join", "tree_join"),
        # The same, for tables and for frames, or for traces and for the command.
        *("intervals", "reading"),
        # The gaps of matches, the thresholds of a package, and what is gathered before it is shown.
        *("gaps", "config", "facts"),
    }
)
"""Names that modules of several rooms share, as they mean the same."""


@cache
def modules() -> dict[str, list[str]]:
    """Return the modules of all packages, and those that each imports."""
    names = {}
    for package in PACKAGES:
        for file in files_of(package):
            parts = file.relative_to(ROOT).with_suffix("").parts
            names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    imports = {}
    for name, file in names.items():
        # Names are those of modules, or of members of one.
        homes = {full if full in names else full.rpartition(".")[0] for full in imported(file)}
        imports[name] = sorted(home for home in homes if home in names and home != name)
    return imports


@cache
def level_of(module: str) -> int:
    room = module.split(".")[1]
    return next(level for level, rooms in enumerate(LEVELS) if room in rooms)


def test_every_module_is_in_a_room_and_imports_no_higher_one() -> None:
    upwards = [
        f"{name} imports {other}"
        for name, imported_modules in modules().items()
        for other in imported_modules
        if name.startswith("uncertain_cep.") and other.startswith("uncertain_cep.")
        if level_of(other) > level_of(name)
    ]
    assert upwards == []


def test_nothing_imports_in_a_circle() -> None:
    try:
        TopologicalSorter(modules()).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' <- '.join(error.args[1])}")


def test_modules_share_a_name_only_if_they_mean_the_same() -> None:
    names = [name.rpartition(".")[2] for name in modules()]
    assert {name for name in names if names.count(name) > 1} == SAME_IN_TWO_ROOMS


def test_no_module_hides_a_public_name() -> None:
    """A module that is imported becomes an attribute of its package."""
    names = {name.split(".")[1] for name in modules() if name.startswith("uncertain_cep.")}
    # These modules are their own public names.
    assert names & set(uc.__all__) == {"examples", "plot", "testing"}


def test_rooms_on_one_level_do_not_import_each_other() -> None:
    beside = [
        f"{name} imports {other}"
        for name, imported_modules in modules().items()
        for other in imported_modules
        if name.startswith("uncertain_cep.") and other.startswith("uncertain_cep.")
        if level_of(other) == level_of(name) and LEVELS[level_of(name)] != LEVELS[0]
        if name.split(".")[1] != other.split(".")[1]
    ]
    assert beside == []


def test_tests_mirror_the_rooms() -> None:
    """A test stands in the folder that is named like the room, or the kernel package, it is about."""
    rooms = {room for rooms in LEVELS for room in rooms if (ROOT / "uncertain_cep" / room).is_dir()}
    beside = {"api", "executor", "cases", "fuzz", "integration", "oracle", "project"}
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert folders == rooms | {"confidence", "eventbased", "pointbased"} | beside
    assert not list((ROOT / "tests").glob("test_*.py"))
