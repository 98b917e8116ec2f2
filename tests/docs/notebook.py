"""Running docs/notebook.ipynb: `python -m tests.docs.notebook` stores its outputs anew."""

from __future__ import annotations

import nbformat
from nbclient import NotebookClient

from tests.support.traces import ROOT

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
_SECONDS_A_CELL = 300


def stored() -> nbformat.NotebookNode:
    return nbformat.read(NOTEBOOK, as_version=4)


def executed() -> nbformat.NotebookNode:
    """The notebook, run from its first cell to its last, in a kernel of its own."""
    notebook = stored()
    NotebookClient(
        notebook,
        timeout=_SECONDS_A_CELL,
        kernel_name="python3",
        resources={"metadata": {"path": str(NOTEBOOK.parent)}},
    ).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of the run
        if cell.cell_type == "code":  # talk, with the run's own paths in it
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
    notebook.metadata.pop("language_info", None)  # the version of Python that ran it
    return notebook


if __name__ == "__main__":
    nbformat.write(executed(), NOTEBOOK)
