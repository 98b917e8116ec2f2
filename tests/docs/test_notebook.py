"""The notebook runs from top to bottom, and what it shows is what it prints today."""

from __future__ import annotations

import nbformat
import pytest

from tests.docs.notebook import executed, stored


@pytest.fixture(scope="module")
def fresh() -> nbformat.NotebookNode:
    return executed()  # raises where a cell does


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """What each cell prints; tables look different from one pandas to the next."""
    return [
        "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == "stdout")
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def kinds(notebook: nbformat.NotebookNode) -> list[list[str]]:
    return [
        sorted({kind for o in cell.outputs for kind in o.get("data", {})})
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_the_stored_outputs_are_what_the_cells_print(fresh: nbformat.NotebookNode) -> None:
    assert printed(fresh) == printed(stored()), "run: python -m tests.docs.notebook"
    assert kinds(fresh) == kinds(stored())


def test_it_shows_tables_a_picture_an_account_and_verdicts() -> None:
    shown = kinds(stored())
    assert sum("text/html" in kind for kind in shown) >= 2
    assert sum("image/svg+xml" in kind for kind in shown) == 1
    text = "\n".join(printed(stored()))
    assert "0 divergences" in text
    assert "back-off" in text
    assert "Traceback" not in str(stored())


def test_it_names_no_path_of_the_machine_that_ran_it() -> None:
    text = str(stored())
    assert "/tmp" not in text  # noqa: S108 - the word, not a file
    assert "/home" not in text
    assert "/root" not in text
