"""The installation: checks that our packages are ours, and names missing optional packages."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from uncertain_cep.errors import RuntimeEnvironmentError

if TYPE_CHECKING:
    from importlib.metadata import Distribution

__all__ = ["DISTRIBUTION", "PARTS", "VERSION", "Part", "check_at_import", "check_ours", "is_there", "needed"]

DISTRIBUTION: Final = "uncertain-cep"
VERSION: Final = "0.2.0"

_OURS: Final[Mapping[str, bytes]] = {
    "confidence": b'"""Confidence kernels: ',
    "eventbased": b'"""Event-based evaluation: ',
    "pointbased": b'"""Point-based evaluation: ',
}
"""Package -> what its source begins with. Each could be overwritten by another distribution, or hidden."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the library that needs packages which not everybody installs."""

    what: str
    """What the part is for."""
    modules: tuple[str, ...]
    """The modules that it imports."""
    extra: str
    """The extra of the distribution that brings them."""
    verb: str = "need"

    @property
    def command(self) -> str:
        """The line to type."""
        return f"pip install '{DISTRIBUTION}[{self.extra}]'"

    @property
    def missing(self) -> tuple[str, ...]:
        """The modules that are not there."""
        return tuple(module for module in self.modules if not is_there(module))


PARTS: Final[Mapping[str, Part]] = {
    "streams": Part("streams on Spark", ("google.protobuf",), "streams"),
    "kafka": Part("Kafka topics as streams", ("google.protobuf", "confluent_kafka"), "kafka"),
    "connect": Part(
        "Spark Connect",
        ("grpc", "grpc_status", "google.rpc", "google.protobuf", "zstandard"),
        "connect",
        "needs",
    ),
    "sigma": Part("rules of Sigma", ("yaml",), "sigma"),
    "plot": Part("charts", ("altair",), "plot"),
    "notebook": Part("widgets of pages", ("anywidget",), "notebook"),
    "testing": Part("uc.testing.strategies", ("hypothesis",), "testing", "needs"),
}


def is_there(module: str) -> bool:
    """Whether a module can be imported, as far as can be seen without importing it."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        # The package that it is in is missing, or stands for none.
        return False


def needed(part: str) -> None:
    """Raise an error if what a part needs is not installed; called before anything is started.

    Raises
    ------
    RuntimeEnvironmentError
        With what is missing and the command that installs it.
    """
    requirement = PARTS[part]
    if missing := requirement.missing:
        raise RuntimeEnvironmentError(
            f"{requirement.what} {requirement.verb} packages that are not "
            f"installed ({', '.join(missing)}): {requirement.command}"
        )


def check_at_import() -> None:
    """Raise the error of :func:`check_ours`; the command line ends with one line instead."""
    try:
        check_ours()
    except RuntimeEnvironmentError as error:
        if _is_command():
            sys.exit(f"error: {error}")
        raise


def check_ours() -> None:
    """Raise an error if one of our packages is another one of the same name.

    Raises
    ------
    RuntimeEnvironmentError
        With the distribution or the file that stands in its place, and what mends it.
    """
    for name, begins in _OURS.items():
        spec = find_spec(name)
        if spec is None:
            raise RuntimeEnvironmentError(
                f"the package {name}, a part of {DISTRIBUTION}, is missing. Run\n    {_reinstall()}"
            )
        if spec.origin is None:
            # A folder without code.
            raise RuntimeEnvironmentError(
                _overwritten(name, next(iter(spec.submodule_search_locations or "?")))
            )
        try:
            source = spec.loader.get_data(spec.origin)  # type: ignore[union-attr]
        except (AttributeError, OSError):
            # Without the sources, as in a program frozen into one file, it cannot be told.
            continue
        if spec.origin.endswith(".py") and not source.startswith(begins):
            raise RuntimeEnvironmentError(_overwritten(name, spec.origin))


def _overwritten(name: str, place: str) -> str:
    said = f"the package {name} at {place} is not that of {DISTRIBUTION}"
    from importlib.metadata import distributions

    owners = [other for other in distributions() if _name(other) != DISTRIBUTION and _has(other, name)]
    if owners:
        other = _name(owners[0])
        how = f"the distribution {other} has overwritten it. Run\n    pip uninstall -y {other}"
    else:
        how = "if it is yours, rename it or start Python in another folder. Else run"
    return f"{said}: {how}\n    {_reinstall()}"


def _name(distribution: Distribution) -> str:
    return (distribution.metadata["Name"] or "").lower().replace("_", "-")


def _has(distribution: Distribution, package: str) -> bool:
    """Whether a distribution installs a package of this name."""
    if package in (distribution.read_text("top_level.txt") or "").split():
        return True
    return any(file.parts[:1] in ((package,), (f"{package}.py",)) for file in distribution.files or ())


def _reinstall() -> str:
    """Return the command that installs the library again as it was installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    command = "pip install --force-reinstall --no-deps"
    try:
        origin = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        origin = {}
    url = str(origin.get("url", ""))
    if not url:
        return f"{command} {DISTRIBUTION}"
    editable = " -e" if origin.get("dir_info", {}).get("editable") else ""
    return f"{command}{editable} {url.removeprefix('file://')}"


def _is_command() -> bool:
    """Whether this process was started as the command line."""
    started = os.path.basename(sys.argv[0]) if sys.argv else ""
    as_module = started == "-m" and "uncertain_cep" in sys.orig_argv
    return as_module or started.removesuffix(".exe") == DISTRIBUTION
