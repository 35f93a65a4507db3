"""The oracle knows nothing of the engine: an error in either cannot hide in both."""

from __future__ import annotations

import sys

from tests.project.test_imports import ROOT, imported, loaded_by

ORACLE = ("group_copies", "model", "patterns", "worlds")


def test_the_oracle_imports_itself_alone() -> None:
    names = {
        name.rpartition(".")[0]
        for module in ORACLE
        for name in imported(ROOT / "uncertain_cep" / "testing" / f"{module}.py")
        if name.partition(".")[0] not in sys.stdlib_module_names
    }
    assert names <= {f"uncertain_cep.testing.{module}" for module in ORACLE}


def test_hypothesis_is_needed_to_draw_alone() -> None:
    assert loaded_by("import uncertain_cep.testing", ("hypothesis", "numba", "pandas", "polars")) == ""
