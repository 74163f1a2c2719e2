"""What earlier versions saved still loads, asks the same and ranks the same."""

import json

import pytest

import dspy_rerank as dr
from dspy_rerank.errors import ProgramError
from dspy_rerank.program import JUDGES, VERSION
from dspy_rerank.sorters import SORTERS
from tests.golden.programs import FOLDER, PROGRAMS, asked

FILES = sorted(FOLDER.glob("v*/*.json"))


def test_there_is_a_file_of_every_sorter_and_judge():
    held = " ".join(path.read_text("utf-8") for path in FILES)
    missing = [c.__name__ for c in (*SORTERS, *JUDGES) if f'"class": "{c.__name__}"' not in held]
    assert not missing, "add it to tests/golden/programs.py and run that"
    assert {path.stem for path in FILES} >= set(PROGRAMS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_it_loads_asks_and_ranks_as_it_did(path):
    reranker = dr.load(path)
    expected = json.loads(path.with_suffix(".asked").read_text("utf-8"))
    assert len(expected["prompts"]) >= 1
    assert asked(reranker) == expected


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_nothing_is_lost_when_it_is_saved_again(path, tmp_path):
    again = json.loads(dr.save(dr.load(path), tmp_path / "again.json").read_text("utf-8"))
    before = json.loads(path.read_text("utf-8"))
    for content in (before, again):
        del content["versions"]
    assert held(before, again)


def held(before, after):
    """Whether all that was saved is there still; later versions may save more."""
    if isinstance(before, dict):
        return all(name in after and held(before[name], after[name]) for name in before)
    if isinstance(before, list):
        pairs = zip(before, after, strict=False)
        return len(before) == len(after) and all(held(b, a) for b, a in pairs)
    return before == after


@pytest.mark.parametrize("version", [VERSION + 1, 10**30])
def test_a_newer_format_is_refused_with_what_to_do(version, tmp_path):
    content = json.loads(FILES[0].read_text("utf-8"))
    path = tmp_path / "newer.json"
    path.write_text(json.dumps({**content, "version": version}), "utf-8")
    with pytest.raises(ProgramError, match=r"newer\.json: format version .* upgrade dspy-rerank"):
        dr.load(path)
