"""Every notebook's code runs, cell after cell, on the embedded model."""

import json
from pathlib import Path

import pytest

from dspy_rerank import models

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


def cells(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.local_model
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    if not models.available():
        pytest.skip("the embedded model is not installed")
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for source in cells(path):
        exec(compile(source, str(path), "exec"), namespace)
    assert "ranking" in namespace
