"""A program file that is cut, edited or hostile loads, or is refused by its one error."""

import json
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dspy_rerank as dr
from dspy_rerank.errors import ProgramError
from dspy_rerank.sorters.base import Reranker
from tests.fuzz.harness import VALUES, edited, outcome, tried

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("v*/*.json"))
TEXTS = {path.stem: path.read_text("utf-8") for path in GOLDEN}
CONTENTS = {name: json.loads(text) for name, text in TEXTS.items()}


@pytest.fixture(autouse=True)
def quiet():
    """DSPy warns of every version that it does not know."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def loads_or_is_refused(path, text):
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    path.write_bytes(data)
    reranker, error = outcome(ProgramError, dr.load, path)
    if error is not None:
        assert str(path) in str(error)
        assert len(str(error)) < 4000
        return None
    assert isinstance(reranker, Reranker)
    assert repr(reranker)
    return reranker


def dumped(content):
    return json.dumps(content, allow_nan=True)


@tried(250)
@given(content=st.sampled_from(sorted(CONTENTS)).flatmap(lambda name: edited(CONTENTS[name])))
def test_edited(content, tmp_path):
    loads_or_is_refused(tmp_path / "p.json", dumped(content))


@tried(100)
@given(name=st.sampled_from(sorted(TEXTS)), data=st.data())
def test_cut_anywhere(name, data, tmp_path):
    end = data.draw(st.integers(0, len(TEXTS[name]) - 3))
    assert loads_or_is_refused(tmp_path / "p.json", TEXTS[name][:end]) is None


@tried(100)
@given(content=VALUES | st.binary(max_size=60) | st.text(max_size=60))
def test_anything_else_is_refused(content, tmp_path):
    text = content if isinstance(content, bytes | str) else dumped(content)
    assert loads_or_is_refused(tmp_path / "p.json", text) is None


@tried(100)
@given(name=st.sampled_from(sorted(TEXTS)), data=st.data())
def test_bytes_changed_anywhere(name, data, tmp_path):
    changed = bytearray(TEXTS[name].encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(changed) - 1))
        changed[place] = data.draw(st.integers(0, 255))
    loads_or_is_refused(tmp_path / "p.json", bytes(changed))


def deep(levels):
    inside = {"class": "Consensus", "settings": {}, "children": {}}
    for _ in range(levels):
        inside = {"class": "Consensus", "settings": {}, "children": {"reranker": inside}}
    return {**CONTENTS["scoresort"], "program": inside}


@pytest.mark.parametrize("text", [
    "[" * 100_000, '{"format": "dspy_rerank.program", "version": 1, "program": ' + "[" * 100_000,
    TEXTS["scoresort"].replace('"version": 1', '"version": 1, "version": 99'),
    TEXTS["scoresort"].replace('"version": 1', '"version": NaN'),
    TEXTS["scoresort"].replace('"version": 1', '"version": 1e999'),
    TEXTS["scoresort"].replace('"version": 1', '"version": true'),
    TEXTS["scoresort"].replace('"version": 1', '"version": ' + "9" * 5000),
    TEXTS["scoresort"].replace('"version": 1', '"version": -1'),
    "\ufeff" + TEXTS["scoresort"], dumped(deep(400)),
], ids=range(10))  # fmt: skip
def test_hostile_shapes_are_refused(text, tmp_path):
    assert loads_or_is_refused(tmp_path / "p.json", text) is None


@pytest.mark.parametrize("name", [
    "os.system", "builtins.eval", "../../../etc/passwd", "dspy.Module", "Reranker", "FunctionJudge",
    "subprocess.Popen", "__import__", "ScoreSort\x00", "scoresort", "",
])  # fmt: skip
def test_no_class_is_looked_for_outside_of_the_list(name, tmp_path):
    content = json.loads(TEXTS["scoresort"])
    content["program"]["class"] = name
    with pytest.raises(ProgramError, match="may be loaded"):
        dr.load(_written(tmp_path, content))
    content = json.loads(TEXTS["scoresort"])
    content["program"]["children"]["judge"]["class"] = name
    with pytest.raises(ProgramError, match="may be loaded"):
        dr.load(_written(tmp_path, content))


@pytest.mark.parametrize("votes", [10**9, 10**400, 1e9, -1, True])
def test_no_more_votes_are_loaded_than_anyone_would_pay_for(votes, tmp_path):
    content = json.loads(TEXTS["heapsort"])
    content["program"]["children"]["judge"]["settings"]["votes"] = votes
    with pytest.raises(ProgramError, match="votes"):
        dr.load(_written(tmp_path, content))


@pytest.mark.parametrize("adapter", ["os.system", "PickleAdapter", "dspy.ChatAdapter", "../x", 7])
def test_no_adapter_is_looked_for_outside_of_the_list(adapter, tmp_path):
    content = json.loads(TEXTS["scoresort"])
    content["program"]["children"]["judge"]["adapter"] = adapter
    with pytest.raises(ProgramError):
        dr.load(_written(tmp_path, content))


@pytest.mark.parametrize("lm", ["os.environ/HOME", {"model": "openai/x", "api_key": "k"}, 3, ["x"]])
def test_no_model_is_made_from_a_file(lm, tmp_path):
    content = {**json.loads(TEXTS["scoresort"]), "lm": lm}
    content["state"]["judge.predict"]["lm"] = {"model": "openai/x", "api_base": "http://evil"}
    loaded = dr.load(_written(tmp_path, content))
    assert loaded.judge.predict.lm is None


def _written(folder, content):
    path = folder / "p.json"
    path.write_text(json.dumps(content), "utf-8")
    return path
