"""Every notebook's code runs, cell after cell, and its outputs were written by such a run."""

import json
import re
from pathlib import Path

import pytest

from dspy_rerank import models

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SCRIPTED = {"choosing_a_sorter", "swapping_models"}
"""They ask scripted models only."""

NEEDS = {"rag": ["bm25s"]}
"""Packages beyond the extras; all but the quickstart draw pictures, too."""


def code_cells(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in content["cells"] if cell["cell_type"] == "code"]


def as_case(path):
    return pytest.param(
        path, id=path.stem, marks=() if path.stem in SCRIPTED else pytest.mark.local_model
    )


def test_there_are_notebooks():
    assert {path.stem for path in NOTEBOOKS} >= SCRIPTED | set(NEEDS) | {"quickstart"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_those_of_one_run_from_top_to_bottom(path):
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert outputs
    assert not [output for output in outputs if output["output_type"] == "error"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_say_nothing_of_the_machine_that_wrote_them(path):
    outputs = [output for cell in code_cells(path) for output in cell["outputs"]]
    for output in outputs:
        output.get("data", {}).pop("image/png", None)
    shown = json.dumps(outputs)
    assert not re.findall(r"Warning:|/(?:tmp|root|home|Users|work|usr)/", shown)
    assert json.loads(path.read_text())["metadata"]["language_info"] == {"name": "python"}


@pytest.mark.parametrize("path", [as_case(path) for path in NOTEBOOKS])
def test_a_notebook_runs(path, monkeypatch):
    for package in [*NEEDS.get(path.stem, ()), *(["matplotlib"] * (path.stem != "quickstart"))]:
        pytest.importorskip(package)
    if path.stem not in SCRIPTED and not models.available():
        pytest.skip("the embedded model is not installed")
    monkeypatch.chdir(FOLDER)
    namespace = {}
    for cell in code_cells(path):
        exec(compile("".join(cell["source"]), str(path), "exec"), namespace)
    assert len(namespace["ranking"])
