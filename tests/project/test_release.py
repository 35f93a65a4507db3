"""The files of a release beside the code agree with it."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]

import uncertain_cep as uc

ROOT: Final = Path(__file__).resolve().parents[2]
PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OF_CONDA: Final = {"msgspec": "msgspec-python"}
"""Names that conda packages have instead of those of wheels."""


def test_one_version() -> None:
    kernels = tomllib.loads((ROOT / "kernels" / "pyproject.toml").read_text())["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text())
    versions = {uc.__version__, PROJECT["version"], kernels["version"], cited, recipe["context"]["version"]}
    assert len(versions) == 1
    (version,) = versions
    assert f"uncertain-cep=={version}" in kernels["dependencies"]
    assert PROJECT["optional-dependencies"]["compiled"] == [f"uncertain-cep-kernels=={version}"]
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_recipe_of_conda_needs_what_the_wheel_does() -> None:
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text())
    needed = {f"python {PROJECT['requires-python']}"}
    for one in PROJECT["dependencies"]:
        name, bounds = re.fullmatch(r"([a-z]+)(.*)", one).groups()  # type: ignore[union-attr]
        needed.add(f"{OF_CONDA.get(name, name)} {bounds}")
    assert set(recipe["requirements"]["run"]) == needed
    (entry,) = recipe["build"]["python"]["entry_points"]
    assert entry == "uncertain-cep = " + PROJECT["scripts"]["uncertain-cep"]
    assert recipe["about"]["license"] == PROJECT["license"]
    assert (ROOT / recipe["about"]["license_file"]).is_file()


def steps() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile, each with what it is told."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def test_the_image_has_all_that_a_wheel_is_built_from() -> None:
    copied = [words for step, words in steps() if step == "COPY" and not words.startswith("--")]
    sources = {name for words in copied for name in words.split() if (ROOT / name).exists() and name != "./"}
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert kept == {name.partition("/")[0] for name in sources}
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {*wheel["packages"], *wheel["force-include"], "pyproject.toml", "build_metadata.py"} <= sources
    assert {PROJECT["license-files"][0], "README.md", "requirements/runtime.lock"} <= sources


def test_the_images_run_the_command_and_executors_without_root() -> None:
    stages: list[list[tuple[str, str]]] = []
    for step in steps():
        if step[0] == "FROM":
            stages.append([])
        if stages:
            stages[-1].append(step)
    executor, command = (dict(stage) for stage in stages[-2:])
    assert executor["FROM"].endswith("AS executor")
    assert command["FROM"] == "package"
    assert json.loads(command["ENTRYPOINT"]) == ["uncertain-cep"]
    assert command["USER"] == executor["USER"] == "cep"
    values = dict(words.split("=") for step, words in steps() if step == "ARG")
    lock = (ROOT / "requirements" / "runtime.lock").read_text()
    assert f"pyspark=={values['SPARK']} " in lock
    assert f"Programming Language :: Python :: {values['PYTHON']}" in PROJECT["classifiers"]


@pytest.mark.parametrize(
    "form", sorted(path.name for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
)
def test_issue_forms(form: str) -> None:
    read = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / form).read_text())
    assert {"name", "description", "body"} <= set(read)
    ids = [field["id"] for field in read["body"]]
    assert len(set(ids)) == len(ids)
    assert all(field["attributes"]["label"] for field in read["body"])


def test_the_page_on_tests_names_what_is_there() -> None:
    page = (ROOT / "docs" / "tested.md").read_text()
    places = re.findall(r"`((?:tests|uncertain_cep)/[\w/.]*)`", page)
    assert len(places) > 30
    assert [place for place in places if not (ROOT / place).exists()] == []
    tests = list((ROOT / "tests").rglob("test_*.py"))
    properties = sum(path.read_text().count("\n@given(") for path in tests)
    (claimed,) = re.findall(r"There are (\d+) properties", page)
    assert int(claimed) <= properties
