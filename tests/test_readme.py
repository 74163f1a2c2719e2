"""Every Python block of the README runs, in order, as one program."""

import re
from pathlib import Path

import pytest

from dspy_rerank import models

README = Path(__file__).parent.parent / "README.md"


def blocks():
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_the_readme_has_blocks():
    assert len(blocks()) >= 3


@pytest.mark.local_model
def test_every_block_runs(tmp_path, monkeypatch, capsys):
    if not models.available():
        pytest.skip("the embedded model is not installed")
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in blocks():
        exec(compile(block, str(README), "exec"), namespace)
    shown = capsys.readouterr().out
    assert "Paris is the capital" in shown
    assert "incoming order" in shown
