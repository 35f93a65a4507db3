"""``uncertain-cep doctor``: what is installed here, and what is wrong with it."""

from __future__ import annotations

import importlib
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import click

from uncertain_cep.cli.command_help import HelpfulCommand
from uncertain_cep.cli.progress import show
from uncertain_cep.cli.startup import uncollected
from uncertain_cep.errors import RuntimeEnvironmentError
from uncertain_cep.running.installation import DISTRIBUTION, PARTS, VERSION

__all__ = ["doctor"]

OLDEST_PYTHON: Final = (3, 11)
IMPORTED: Final = ("numpy", "pyarrow", "numba", "lxml.etree")
"""Packages with compiled code, which cannot be imported if it was built for something else."""

WITHOUT_PART: Final = {
    "linking": "kernels are not linked, so first answers take up to 1.5 times as long to compile",
    "storing": "compiled kernels are not kept, so every process compiles anew",
}
"""The effect where Numba lacks what ``confidence.compiled.PRIVATE`` needs."""

_REQUIREMENT: Final = re.compile(r"\s*([\w.-]+)\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?\s*(?:;(.*))?")
_BOUND: Final = re.compile(r"(>=|<=|==|<|>)\s*([0-9][\w.*]*)")


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the diagnosis; ``state`` says whether a part is there, may be missing, or is wrong."""

    state: Literal["ok", "note", "wrong"]
    about: str
    said: str

    def __str__(self) -> str:
        return f"{self.state:<6}{self.about:<10}{self.said}"


@click.command(cls=HelpfulCommand)
def doctor() -> None:
    """Check the installation: list its parts and every fault.

    It checks versions, Java, the folder of compiled kernels, and the optional parts. For a missing part it
    shows the line to type. A note is about a part that only some uses need. The exit code is 1 if a part that
    every use needs is wrong.
    """
    show(f"uncertain-cep {VERSION} in {Path(__file__).parents[2]}")
    wrong = 0
    with uncollected():
        for finding in _findings():
            show(str(finding))
            wrong += finding.state == "wrong"
    if not wrong:
        show("nothing is wrong")
        return
    raise RuntimeEnvironmentError("one thing is wrong" if wrong == 1 else f"{wrong} things are wrong")


def _findings() -> Iterator[Finding]:
    for check in (_python, _packages, _imports, _compiler, _java, _cache, _kernels, _parts):
        yield from check()


def _python() -> Iterator[Finding]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    machine = f"{platform.system()} {platform.machine()}, {cores} cores"
    said = f"{platform.python_version()} ({sys.executable}), {machine}"
    if sys.version_info < OLDEST_PYTHON:
        said += f": it must be {'.'.join(map(str, OLDEST_PYTHON))} or newer"
        yield Finding("wrong", "Python", said)
    else:
        yield Finding("ok", "Python", said)


def _packages() -> Iterator[Finding]:
    """Yield the versions of the packages that the distribution asks for, and those that it does not allow."""
    from importlib.metadata import PackageNotFoundError, requires, version

    try:
        requirements = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        said = f"{DISTRIBUTION} is not installed, its sources alone are on the path: versions are not checked"
        yield Finding("note", "packages", said)
        return
    fit = []
    for text in requirements:
        requirement = _REQUIREMENT.match(text)
        if requirement is None or requirement[1] == DISTRIBUTION:
            continue
        name, bounds, is_optional = requirement[1], requirement[2].strip(), "extra" in (requirement[3] or "")
        try:
            there = version(name)
        except PackageNotFoundError:
            if not is_optional:
                yield Finding("wrong", "packages", f"{name} is missing: pip install '{name}{bounds}'")
            continue
        if not _allows(bounds, there):
            said = f"{name} {there} is not {bounds}: pip install '{name}{bounds}'"
            yield Finding("note" if is_optional else "wrong", "packages", said)
        elif not is_optional:
            fit.append(f"{name} {there}")
    yield Finding("ok", "packages", ", ".join(fit))


def _allows(bounds: str, version: str) -> bool:
    """Whether bounds such as ``>=2.2,<3`` allow a version; parts behind its numbers are not looked at."""

    def numbers(text: str) -> tuple[int, ...]:
        return tuple(int(part) for part in re.findall(r"[0-9]+", re.match(r"[0-9.]*", text)[0]))  # type: ignore[index]

    def padded(one: tuple[int, ...], length: int) -> tuple[int, ...]:
        return one + (0,) * (length - len(one))

    compare: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
        ">=": lambda one, other: one >= other,
        "<=": lambda one, other: one <= other,
        "==": lambda one, other: one == other,
        "<": lambda one, other: one < other,
        ">": lambda one, other: one > other,
    }
    for sign, bound in _BOUND.findall(bounds):
        one, other = numbers(version), numbers(bound)
        length = max(len(one), len(other))
        if not compare[sign](padded(one, length), padded(other, length)):
            return False
    return True


def _imports() -> Iterator[Finding]:
    for name in IMPORTED:
        try:
            importlib.import_module(name)
        except Exception as error:
            package = name.partition(".")[0]
            said = f"{package} cannot be imported ({error}): pip install --force-reinstall {package}"
            yield Finding("wrong", "packages", said)


def _compiler() -> Iterator[Finding]:
    """Yield a note if this release of Numba is not one whose private parts are known."""
    try:
        from confidence.compiled import private_parts
        from confidence.uninterrupted import uninterrupted

        missing = uninterrupted(private_parts).missing
    except ImportError:
        # Numba cannot be imported, which is said already.
        return
    for part, reason in missing.items():
        yield Finding("note", "Numba", f"{WITHOUT_PART[part]} ({reason}); answers are the same")


def _java() -> Iterator[Finding]:
    from uncertain_cep.spark.java import MINIMUM_JAVA, answer_of, search_java
    from uncertain_cep.spark.masters import check_home, check_user

    java, rejected = search_java()
    advice = f"only Spark needs it: pip install '{DISTRIBUTION}[java]'"
    if java is None:
        looked = f" ({'; '.join(rejected)})" if rejected else ""
        yield Finding("note", "Java", f"no Java {MINIMUM_JAVA} or newer{looked}; {advice}")
    elif answered := answer_of(java):
        yield Finding("ok", "Java", f"{answered} ({java.source}: {java.home})")
    else:
        yield Finding("note", "Java", f"{java.home} ({java.source}) does not start; {advice}")
    for check in (check_home, check_user):
        try:
            check()
        except RuntimeEnvironmentError as error:
            yield Finding("note", "Spark", str(error))


def _cache() -> Iterator[Finding]:
    from confidence.kernel_cache import cache_folder, kept_by_group, why_not_kept

    folder = cache_folder()
    if reason := why_not_kept():
        said = (
            f"compiled kernels cannot be kept, so every process compiles anew: {reason}; "
            "set NUMBA_CACHE_DIR to a folder of your own"
        )
        yield Finding("note", "cache", said)
        return
    yield Finding("ok", "cache", str(folder))
    if (shared := kept_by_group()) is not None:
        said = f"members of a group may write to {shared}, and so run code as you: chmod g-w {shared}"
        yield Finding("note", "cache", said)


def _kernels() -> Iterator[Finding]:
    from confidence.kernel_cache import is_marked
    from uncertain_cep.config.tuning import KERNELS

    compiled = [group for group in KERNELS if is_marked(group)]
    if compiled:
        yield Finding("ok", "kernels", f"compiled: {', '.join(compiled)}")
    if uncompiled := [group for group in KERNELS if group not in compiled]:
        said = (
            f"not compiled yet: {', '.join(uncompiled)}; the first use does, or {DISTRIBUTION} warm-up --all"
        )
        yield Finding("note", "kernels", said)


def _parts() -> Iterator[Finding]:
    for name, part in PARTS.items():
        if missing := part.missing:
            yield Finding(
                "note", name, f"for {part.what}, {', '.join(missing)} not installed: {part.command}"
            )
        else:
            yield Finding("ok", name, part.what)
