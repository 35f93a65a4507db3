"""The notebooks run, and print what they printed when they were saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"


def printed(notebook: Any) -> list[str]:
    """Return the output of each cell of a notebook, in however many pieces it came."""
    return [
        "".join(
            output["text"]
            for output in cell.outputs
            if output.output_type == "stream" and output.name == "stdout"
        )
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


# Jupyter's kernel warns of sockets that are not encrypted.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.ipynb")), ids=lambda file: file.stem)
def test_a_notebook(file: Path, shared_data: Path) -> None:
    saved, ran = (nbformat.reads(file.read_text(encoding="utf-8"), as_version=4) for _ in range(2))  # type: ignore[no-untyped-call]
    resources = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(ran, timeout=3600, startup_timeout=1800, resources=resources).execute()
    assert printed(ran) == printed(saved)
    assert any(printed(saved))
